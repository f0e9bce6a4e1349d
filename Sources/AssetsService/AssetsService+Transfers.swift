// One running download: begin, progress, interruption, end.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer

/// A download that has a slot.
final class RunningTransfer {
    var record: DownloadRecord
    var received: Int64
    var expected: Int64
    /// The first byte that this attempt takes.
    var offset: Int64 = 0
    /// The row still has what failed before this attempt went further.
    var hasOldRetry = false
    /// The engine is done with it, but what came of it is not written yet.
    var isEnding = false
    var isCancelled = false
    /// It was paused to become one of another class, and no byte has come since.
    var isChangingClass = false
    /// When it was last paused for that, in process time.
    var changedClassAt: Duration?
    /// Why the queue has asked it to stop.
    var stopCause: TransferQueue.Cause?
    /// It goes behind those of its app that wait.
    var stepsBack: Bool { stopCause == .turn(stepsBack: true) }
    /// The room for its file was set aside, or is counted by the engine.
    var hasBegun = false
    /// In process time.
    var startedAt: Duration
    /// Where its file goes, once that is decided.
    var target: String?
    /// Wait for engine and service to let go of the partial file.
    var stopWaiters: [CheckedContinuation<Void, Never>] = []

    /// - Parameter now: Process clock.
    init(_ record: DownloadRecord, at now: Duration) {
        self.record = record
        received = record.received
        expected = record.request.size
        startedAt = now
    }
}

extension AssetsService {
    func start(_ record: DownloadRecord) async {
        let number = classChangeNumber
        // While it was found out the download may have been taken out of the queue, or become one of another class.
        guard await mayStart(record), isStartable(record) else { return queue.end(record.id, at: seams.loop.now) }
        guard isOfItsClass(record, since: number) else {
            queue.end(record.id, at: seams.loop.now)
            return queue.invalidate()
        }
        var record = record
        record.attempts += 1
        running[record.id] = RunningTransfer(record, at: seams.loop.now)
        let id = record.id
        seams.transfers.start(transferSpec(for: record)) { self.told($0, of: id) }
    }

    /// What the engine says, on its loop: many files at a time make one job here.
    private nonisolated func told(_ event: TransferEvent, of id: String) {
        let isFirst = transferNews.withLock { news in
            news.append((id, event))
            return news.count == 1
        }
        if isFirst { perform { $0.takeTransferNews() } }
    }

    private func takeTransferNews() {
        let news = transferNews.withLock { news in
            defer { news = [] }
            return news
        }
        for (id, event) in news { transferEvent(event, of: id) }
    }

    private func transferSpec(for record: DownloadRecord) -> TransferSpec {
        let request = record.request
        let admission = apps[record.app].map { Admission(app: $0, allowsLoopbackHTTP: settings.isDeveloperModeOn) }
        let restricted = request.kind == .archive ? nil : admission
        let pinned = apps[record.app]?.description.pinnedDomains ?? []
        let limit: Int64? =
            switch request.kind {
            case .manifest: admission?.manifestLimit ?? PolicyNumbers.manifestMax
            case .url: byteLimit(of: record, admission)
            case .archive: nil
            }
        return TransferSpec(
            id: record.id, url: request.url, method: request.method, headers: request.headers, body: request.body,
            partialPath: record.partialPath, marks: [purgeableAttribute: record.id], resume: record.resume,
            expectedSize: request.size,
            sizeMustMatch: request.isEssential, sizeLimit: limit, isManifest: request.kind == .manifest,
            admits: { host in restricted?.admits(host: host) ?? true },
            allowsLoopbackHTTP: settings.isDeveloperModeOn, trustsExtraAuthorities: settings.isDeveloperModeOn,
            pins: { host in PinnedDomain.keys(of: host, in: pinned) }, authentication: authentication(for: record),
            transferClass: record.transferClass, digest: request.digest, proxies: proxies,
            space: SpacePolicy(ownFloor: settings.freeSpace))
    }

    /// Before the first launch a download may not grow past what was admitted and what is left.
    private func byteLimit(of record: DownloadRecord, _ admission: Admission?) -> Int64? {
        guard let admission, admission.isRestricted, !record.request.isEssential else { return nil }
        let (sum, overflow) = record.request.size.addingReportingOverflow(admission.remaining ?? 0)
        return overflow ? nil : sum
    }

    private func transferEvent(_ event: TransferEvent, of id: String) {
        guard let transfer = running[id] else { return }
        switch event {
        case .startedOver(let lost, let why):
            journal(
                .downloadStartedOver, .none, app: transfer.record.app, download: id,
                "\(transfer.record.request.identifier), \(lost) bytes: \(why)")
        case .began(let resumedAt, let expected): began(transfer, at: resumedAt, expected: expected)
        case .authenticated(let entry): authenticated(entry, of: id)
        case .canStop(let canStop):
            queue.setCanYield(canStop, id)
            pumpSoon()
        case .progress(let received, let expected): progressed(transfer, received: received, expected: expected)
        case .checkpoint(let resume): keep(resume, of: transfer)
        case .gathered(let unwritten):
            // Its connection and its share of the network are free.
            queue.gathered(id, unwritten: unwritten, at: seams.loop.now)
            noteGathered()
            pumpSoon()
        case .ended(let outcome): ended(transfer, outcome)
        }
    }

    private func began(_ transfer: RunningTransfer, at offset: Int64, expected: Int64) {
        let record = transfer.record
        transfer.hasBegun = true
        transfer.received = offset
        transfer.offset = offset
        if expected > 0 { transfer.expected = expected }
        guard !transfer.isCancelled else { return }
        journal(
            .downloadBegan, .none, app: record.app, download: record.id,
            "\(record.request.identifier), \(record.transferClass)" + (offset > 0 ? ", from byte \(offset)" : ""))
        tellDelegates(of: record.app, .began(record))
        installationProgressed(record)
    }

    private func progressed(_ transfer: RunningTransfer, received: Int64, expected: Int64) {
        guard !transfer.isCancelled else { return }
        let written = received - transfer.received
        transfer.received = received
        if expected > 0 { transfer.expected = expected }
        if written > 0 {
            transfer.isChangingClass = false
            noteAdvance(of: transfer)
        }
        let size = transfer.expected
        queue.progressed(transfer.record.id, remaining: size > 0 ? max(0, size - received) : nil)
        let event = SessionEvent.progress(
            transfer.record, written: max(0, written), total: received, expected: max(expected, size))
        tellDelegates(of: transfer.record.app, event)
        installationProgressed(transfer.record)
    }

    /// Bytes that were not there before end the history of failures.
    private func noteAdvance(of transfer: RunningTransfer) {
        guard transfer.record.retry != RetryHistory(),
            transfer.offset > 0 || transfer.received > transfer.record.received
        else { return }
        transfer.record.retry = RetryHistory()
        transfer.hasOldRetry = true
    }

    private func keep(_ resume: ResumePoint, of transfer: RunningTransfer) {
        transfer.record.resume = resume
        guard !transfer.isCancelled else { return }
        let record = transfer.record
        var changes = [StoreChange.setDownloadResume(id: record.id, resume, received: transfer.received)]
        if transfer.hasOldRetry {
            changes.append(
                .setDownloadWait(
                    id: record.id, notBefore: nil, reason: record.reason, detail: record.detail, retry: record.retry,
                    attempts: record.attempts))
            transfer.hasOldRetry = false
        }
        launch { [changes] service in
            // What an end writes goes further.
            guard let transfer = service.running[record.id], !transfer.isCancelled, !transfer.isEnding else { return }
            _ = try? await service.commit(changes)
        }
    }

    private func ended(_ transfer: RunningTransfer, _ outcome: TransferOutcome) {
        let record = transfer.record
        queue.end(record.id, at: seams.loop.now)
        guard !transfer.isCancelled, !isStopping else { return release(record.id) }
        settle(transfer) { service in
            var step: ChallengeLife.Step?
            var next: DownloadRecord?
            switch outcome {
            case .received(let length, let inode, _, let digest):
                await service.finish(record, length: length, inode: inode, digest: digest)
            case .stopped:
                next = await service.stopped(record)
            case .interrupted(let interruption):
                next = await service.interrupted(record, interruption)
            case .refused(let failure, let reason):
                await service.fail(record, failure, reason)
            case .challenged(let challenge):
                if await service.isWanted(record.id) { step = service.met(challenge, record) }
            }
            service.release(record.id)
            if let next { service.enqueue(next) }
            if case .interrupted = outcome { await service.enqueueIfDue(record.id) }
            if let step { await service.take(step, record) }
        }
    }

    /// Does what follows from an attempt that has ended.
    func settle(
        _ transfer: RunningTransfer, _ body: @escaping @Sendable (isolated AssetsService) async -> Void
    ) {
        transfer.isEnding = true
        settling += 1
        launch { service in
            await body(service)
            service.settling -= 1
            service.activityChanged?()
        }
    }

    /// Neither engine nor service works on the download any more.
    func release(_ id: String) {
        queue.end(id, at: seams.loop.now)
        let waiters = running.removeValue(forKey: id)?.stopWaiters ?? []
        for waiter in waiters { waiter.resume() }
        pumpSoon()
    }

    /// Returns when nobody touches the partial file or the finished one any more.
    func stopTransfer(_ id: String) async {
        guard let transfer = running[id] else { return }
        transfer.isCancelled = true
        if transfer.isEnding {
            // Asked inside: the transfer may be released before the continuation's body runs.
            return await withCheckedContinuation { continuation in
                guard let transfer = running[id] else { return continuation.resume() }
                transfer.stopWaiters.append(continuation)
            }
        }
        await seams.transfers.cancel(id)
        if running[id]?.isEnding == false { release(id) }
    }

    /// Whether what came of a transfer is still of use. A cancel under way is waited for: it may fail.
    func isWanted(_ id: String) async -> Bool {
        // Another one may have begun by the time this goes on.
        while cancels[id] != nil { await cancelIsDecided(id) }
        return running[id]?.isCancelled == false
    }

    /// Whether a download that was written just now is still of use: who cancels it may have come into the same transaction.
    private func isStillWanted(_ id: String, isRunning: Bool) async -> Bool {
        if isRunning { return await isWanted(id) }
        while cancels[id] != nil { await cancelIsDecided(id) }
        do throws(AssetsError) { return try await downloadRecord(id: id) != nil } catch { return true }
    }

    /// Writes what came of a download until the store takes it.
    func save(
        _ changes: [StoreChange], of id: String, isRunning: Bool = true, waiting delay: Duration = .zero
    ) async -> StepOutcome {
        var tries = 0
        while !isStopping {
            if isRunning, await !isWanted(id) { return .unwanted }
            do throws(AssetsError) {
                try await commit(changes, waiting: delay)
                return await isStillWanted(id, isRunning: isRunning) ? .done : .unwanted
            } catch {
                if error.code == .downloadNotScheduled { return .unwanted }
                journal(.warning, .space, download: id, error.description)
            }
            tries += 1
            await seams.loop.pause(for: PolicyNumbers.storagePause(afterTries: tries))
        }
        return .stopping
    }
}

/// What came of a step that is tried until the device takes it.
enum StepOutcome {
    case done
    /// The download was cancelled or removed: what was made for it goes.
    case unwanted
    /// The service stops. What is on the disk stays there: the next start goes on from it.
    case stopping
}
