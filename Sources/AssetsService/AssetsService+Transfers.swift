// One running download: begin, progress, interruption, end.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer

/// A download that has a slot.
struct RunningTransfer {
    var record: DownloadRecord
    var received: Int64
    var expected: Int64
    /// Bytes at the last progress message, so that the next can tell the difference.
    var told: Int64
    /// The engine has not taken it yet.
    var isStarting = true
    /// The engine is done with it, but what came of it is not written yet.
    var isEnding = false
    var isCancelled = false
    /// Wait for engine and service to let go of the partial file.
    var stopWaiters: [CheckedContinuation<Void, Never>] = []
}

extension AssetsService {
    func start(_ record: DownloadRecord) async {
        var record = record
        record.attempts += 1
        slots.begin(record.id, slotEntry(of: record))
        running[record.id] = RunningTransfer(
            record: record, received: record.received, expected: record.request.size, told: record.received)
        let spec = transferSpec(for: record)
        let id = record.id
        await seams.transfers.start(spec) { event in
            self.perform { $0.transferEvent(event, of: id) }
        }
        running[id]?.isStarting = false
        guard running[id]?.isCancelled == true, running[id]?.isEnding == false else { return }
        await seams.transfers.cancel(id)
        release(id)
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
            partialPath: record.partialPath, resume: record.resume, expectedSize: request.size,
            sizeMustMatch: request.isEssential, sizeLimit: limit,
            admits: { host in restricted?.admits(host: host) ?? true },
            allowsLoopbackHTTP: settings.isDeveloperModeOn, trustsExtraAuthorities: settings.isDeveloperModeOn,
            pins: { host in PinnedDomain.keys(of: host, in: pinned) }, authentication: authentication(for: record),
            transferClass: record.transferClass)
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
        case .began(let resumedAt, let expected): began(transfer, at: resumedAt, expected: expected)
        case .authenticated(let entry): authenticated(entry, of: id)
        case .progress(let received, let expected): progressed(id, received: received, expected: expected)
        case .checkpoint(let resume): keep(resume, of: id)
        case .ended(let outcome): ended(transfer, outcome)
        }
    }

    private func began(_ transfer: RunningTransfer, at offset: Int64, expected: Int64) {
        let record = transfer.record
        running[record.id]?.received = offset
        running[record.id]?.told = offset
        if expected > 0 { running[record.id]?.expected = expected }
        guard !transfer.isCancelled else { return }
        journal(
            .downloadBegan, .none, app: record.app, download: record.id,
            "\(record.request.identifier), \(record.transferClass)" + (offset > 0 ? ", from byte \(offset)" : ""))
        tellDelegates(of: record.app, .began(record))
        installationProgressed(record)
    }

    private func progressed(_ id: String, received: Int64, expected: Int64) {
        guard let transfer = running[id], !transfer.isCancelled else { return }
        running[id]?.received = received
        if expected > 0 { running[id]?.expected = expected }
        running[id]?.told = received
        let event = SessionEvent.progress(
            transfer.record, written: max(0, received - transfer.told), total: received,
            expected: max(expected, transfer.expected))
        tellDelegates(of: transfer.record.app, event)
        installationProgressed(transfer.record)
    }

    private func keep(_ resume: ResumePoint, of id: String) {
        running[id]?.record.resume = resume
        guard let transfer = running[id], !transfer.isCancelled else { return }
        let received = transfer.received
        launch { service in
            guard service.running[id]?.isCancelled == false else { return }
            _ = try? await service.commit([.setDownloadResume(id: id, resume, received: received)])
        }
    }

    private func ended(_ transfer: RunningTransfer, _ outcome: TransferOutcome) {
        let record = transfer.record
        slots.end(record.id)
        guard !transfer.isCancelled, !isStopping else { return release(record.id) }
        running[record.id]?.isEnding = true
        launch { service in
            var step: ChallengeLife.Step?
            switch outcome {
            case .received(let length, let inode, _):
                await service.finish(record, length: length, inode: inode)
            case .interrupted(let interruption):
                await service.interrupted(record, interruption)
            case .refused(let failure, let reason):
                await service.fail(record, failure, reason)
            case .challenged(let challenge):
                if service.isWanted(record.id) { step = service.met(challenge, record) }
            }
            service.release(record.id)
            if let step { await service.take(step, record) }
        }
    }

    /// Neither engine nor service works on the download any more.
    private func release(_ id: String) {
        slots.end(id)
        let waiters = running.removeValue(forKey: id)?.stopWaiters ?? []
        for waiter in waiters { waiter.resume() }
        pumpSoon()
    }

    /// Returns when nobody touches the partial file or the finished one any more.
    func stopTransfer(_ id: String) async {
        guard let transfer = running[id] else { return }
        running[id]?.isCancelled = true
        if transfer.isStarting || transfer.isEnding {
            // Asked inside: the transfer may be released before the continuation's body runs.
            return await withCheckedContinuation { continuation in
                if running[id] == nil { continuation.resume() } else { running[id]?.stopWaiters.append(continuation) }
            }
        }
        await seams.transfers.cancel(id)
        if running[id]?.isEnding == false { release(id) }
    }

    /// Whether what came of a download is still of use. One without a transfer was not cancelled, or has no row any more.
    func isWanted(_ id: String, isRunning: Bool = true) -> Bool {
        !isRunning || running[id]?.isCancelled == false
    }

    /// Writes what came of a download until the store takes it; false when nobody wants it any more.
    func save(_ changes: [StoreChange], of id: String, isRunning: Bool = true) async -> Bool {
        var tries = 0
        while !isStopping && isWanted(id, isRunning: isRunning) {
            do throws(AssetsError) {
                try await commit(changes)
                return true
            } catch {
                if error.code == .downloadNotScheduled { return false }
                journal(.warning, .space, download: id, error.description)
            }
            tries += 1
            await seams.loop.pause(for: PolicyNumbers.storagePause(afterTries: tries))
        }
        return false
    }

    // MARK: Interruption and failure

    private func interrupted(_ record: DownloadRecord, _ interruption: Interruption) async {
        var record = running[record.id]?.record ?? record
        record.retry = RetryPolicy.record(interruption, in: record.retry, at: calendarNow)
        let decision = RetryPolicy.decide(
            record.transferClass, record.retry, interruption, now: calendarNow, random: seams.random.next())
        switch decision {
        case .fail(let failure):
            await fail(record, failure, interruption.reason)
        case .retry(let at):
            journal(
                .downloadWaits, interruption.reason, app: record.app, download: record.id,
                "\(interruption.failure.reason); tried again in \(max(.zero, at - calendarNow).shown)")
            let received = running[record.id]?.received ?? record.received
            let changes: [StoreChange] = [
                .setDownloadWait(
                    id: record.id, notBefore: at, reason: interruption.reason, detail: interruption.failure.reason,
                    retry: record.retry, attempts: record.attempts),
                .setDownloadResume(id: record.id, record.resume, received: received),
            ]
            if await save(changes, of: record.id) { await planRetryTimer() }
        }
    }

    /// Ends a download without a file; its message goes out.
    func fail(_ record: DownloadRecord, _ failure: DownloadFailure, _ reason: Reason, isRunning: Bool = true) async {
        var record = record
        journal(
            .downloadFailed, reason, app: record.app, download: record.id,
            "\(record.request.identifier): \(failure.reason)")
        let changes: [StoreChange] = [.setDownloadState(id: record.id, .failed(failure))]
        guard await save(changes, of: record.id, isRunning: isRunning) else { return }
        record.state = .failed(failure)
        let partial = record.partialPath
        let files = seams.files
        try? await seams.disk.run { () throws(SystemCallError) in try files.remove(partial) }
        foregroundHolders[record.id] = nil
        noteEssentialEnded(record, received: 0)
        ended(record)
    }

    /// A download reached its end, with a file or without: archives and manifests belong to an installation,
    /// everything else to the app.
    func ended(_ record: DownloadRecord) {
        forgetChallenges(of: record.id)
        switch record.request.kind {
        case .archive, .manifest: installationDownloadEnded(record)
        case .url: deliver(record)
        }
    }
}

extension Duration {
    /// "12 s" or "350 ms".
    package var shown: String {
        let (seconds, attoseconds) = components
        return seconds >= 1 ? "\(seconds) s" : "\(attoseconds / 1_000_000_000_000_000) ms"
    }
}
