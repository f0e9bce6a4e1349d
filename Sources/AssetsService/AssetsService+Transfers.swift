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
    var isCancelled = false
    /// The engine is done with it; its end is being written down.
    var isEnding = false
    /// Told when that is over.
    var endWaiters: [CheckedContinuation<Void, Never>] = []
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
    }

    private func transferSpec(for record: DownloadRecord) -> TransferSpec {
        let request = record.request
        let admission = apps[record.app].map { Admission(app: $0, allowsLoopbackHTTP: settings.isDeveloperModeOn) }
        let restricted = request.kind == .archive ? nil : admission
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
            allowsLoopbackHTTP: settings.isDeveloperModeOn, transferClass: record.transferClass)
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
        guard !transfer.isCancelled, !isStopping else {
            running[record.id] = nil
            return pumpSoon()
        }
        running[record.id]?.isEnding = true
        launch { service in
            switch outcome {
            case .received(let length, let inode, _):
                await service.finish(record, length: length, inode: inode)
            case .interrupted(let interruption):
                await service.interrupted(record, interruption)
            case .refused(let failure, let reason):
                await service.fail(record, failure, reason)
            }
            let waiters = service.running[record.id]?.endWaiters ?? []
            service.running[record.id] = nil
            for waiter in waiters { waiter.resume() }
            service.pumpSoon()
        }
    }

    /// Returns when nobody touches the download's files any more: the transfer is gone, or its end is written down.
    func stopTransfer(_ id: String) async {
        guard let transfer = running[id] else { return }
        running[id]?.isCancelled = true
        if transfer.isEnding {
            // Asked inside: the end may be written down before the continuation's body runs.
            await withCheckedContinuation { continuation in
                if running[id] == nil { continuation.resume() } else { running[id]?.endWaiters.append(continuation) }
            }
        } else {
            await seams.transfers.cancel(id)
            slots.end(id)
            running[id] = nil
        }
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
            _ = try? await commit([
                .setDownloadWait(
                    id: record.id, notBefore: at, reason: interruption.reason, detail: interruption.failure.reason,
                    retry: record.retry, attempts: record.attempts),
                .setDownloadResume(id: record.id, record.resume, received: received),
            ])
            await planRetryTimer()
        }
    }

    /// Ends a download without a file; its message goes out.
    func fail(_ record: DownloadRecord, _ failure: DownloadFailure, _ reason: Reason) async {
        var record = record
        journal(
            .downloadFailed, reason, app: record.app, download: record.id,
            "\(record.request.identifier): \(failure.reason)")
        let id = record.id
        let isNoted = await insist(on: record) { () async throws(AssetsError) in
            try await self.commit([.setDownloadState(id: id, .failed(failure))])
        }
        guard isNoted else { return }
        record.state = .failed(failure)
        let partial = record.partialPath
        let files = seams.files
        try? await seams.disk.run { () throws(SystemCallError) in try files.remove(partial) }
        foregroundHolders[record.id] = nil
        noteEssentialEnded(record, received: 0)
        ended(record)
    }

    /// Repeats a step that the download cannot go on without until store and disk take it. False when it was cancelled
    /// or the service stops: then the rows say where to go on.
    func insist(on record: DownloadRecord, _ step: () async throws(AssetsError) -> Void) async -> Bool {
        while !isStopping, running[record.id]?.isCancelled != true {
            do throws(AssetsError) {
                try await step()
                return true
            } catch {
                journal(.warning, .space, app: record.app, download: record.id, error.description)
                await seams.loop.pause(for: PolicyNumbers.storageRetryPause)
            }
        }
        return false
    }

    /// A download reached its end, with a file or without: archives and manifests belong to an installation,
    /// everything else to the app.
    func ended(_ record: DownloadRecord) {
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
