// What becomes of a download that did not get its file: it waits, or it fails.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    /// Writes what came of an attempt. The answer is the record where it may be started again at once.
    func interrupted(_ record: DownloadRecord, _ interruption: Interruption) async -> DownloadRecord? {
        let transfer = running[record.id]
        var record = transfer?.record ?? record
        // The user waits: once for each change of its class it goes on at once.
        if RetryPolicy.isOfPause(interruption, pausedAt: transfer?.changedClassAt, now: seams.loop.now) {
            let why = "the server closed the paused connection; goes on with another one"
            return await requeue(record, interruption.reason, why)
        }
        let interruption = seen(interruption, of: record)
        record.received = transfer?.received ?? record.received
        record.retry =
            interruption.reason == .offline && connectivity.isOffline
            ? RetryPolicy.record(untriedAt: calendarNow, in: interruption.hasAdvanced ? RetryHistory() : record.retry)
            : RetryPolicy.record(interruption, in: record.retry, at: calendarNow)
        let surroundings = RetrySurroundings(
            isWatched: isWatched(interruption), hasNewNetwork: hasNewNetwork(since: transfer?.startedAt))
        let decision = retryPolicy.decide(
            record.transferClass, record.retry, interruption, now: calendarNow, random: seams.random.next(),
            surroundings)
        switch decision {
        case .fail(let failure):
            await fail(record, failure, interruption.reason)
        case .retry(let at):
            note(
                interruption, of: record, "; tried again in \(max(.zero, at - calendarNow).shown)")
            await wait(record, until: at, interruption)
        case .wait(let until):
            note(interruption, of: record, "; given up in \(max(.zero, until - calendarNow).shown)")
            await wait(record, until: until, interruption)
            await watch(for: interruption.reason, wantedFree: interruption.wantedFree)
        }
        return nil
    }

    /// The attempt has stopped for others, and another one will go on where it was.
    func stopped(_ record: DownloadRecord) async -> DownloadRecord? {
        let record = running[record.id]?.record ?? record
        if running[record.id]?.isChangingClass == false { tellDelegates(of: record.app, .paused(record)) }
        let cause = running[record.id]?.stopCause ?? .turn(stepsBack: false)
        return await requeue(record, cause.reason, cause.sentence)
    }

    private func requeue(_ record: DownloadRecord, _ reason: Reason, _ why: String) async -> DownloadRecord? {
        let received = running[record.id]?.received ?? record.received
        journal(
            .downloadPaused, reason, app: record.app, download: record.id,
            "\(record.request.identifier), after \(received) bytes: \(why)")
        var changes: [StoreChange] = [
            .setDownloadWait(
                id: record.id, notBefore: nil, reason: reason, detail: why, retry: record.retry,
                attempts: record.attempts),
            .setDownloadResume(id: record.id, record.resume, received: received),
        ]
        if running[record.id]?.stepsBack == true { changes.append(.stepBack(id: record.id)) }
        guard await save(changes, of: record.id) == .done else { return nil }
        return try? await downloadRecord(id: record.id)
    }

    var retryPolicy: RetryPolicy { RetryPolicy(patience: settings.patience) }

    /// What broke because the network went away did not break because of its server.
    private func seen(_ interruption: Interruption, of record: DownloadRecord) -> Interruption {
        guard connectivity.isOffline, needsNetwork(record), Reason.ofNetwork.contains(interruption.reason) else {
            return interruption
        }
        var offline = Interruption.offline
        offline.hasAdvanced = interruption.hasAdvanced
        return offline
    }

    private func isWatched(_ interruption: Interruption) -> Bool {
        interruption.reason == .offline && connectivity.isOffline || interruption.wantedFree != nil
    }

    private func note(_ interruption: Interruption, of record: DownloadRecord, _ next: String) {
        journal(
            .downloadWaits, interruption.reason, app: record.app, download: record.id,
            interruption.failure.reason + next)
    }

    private func wait(_ record: DownloadRecord, until: Duration, _ interruption: Interruption) async {
        let changes =
            waiting(record, until: until, interruption) + [
                .setDownloadResume(id: record.id, record.resume, received: record.received)
            ]
        if await save(changes, of: record.id) == .done { await planRetryTimer() }
    }

    /// Sees to it that what was written down as waiting goes on. What it waits for may have come while it was written.
    private func watch(for reason: Reason, wantedFree: Int64?) async {
        if let wantedFree { watchSpace(wantedFree) }
        if reason == .offline, !connectivity.isOffline { await retryWaiting(for: [.offline]) }
    }

    private func waiting(_ record: DownloadRecord, until: Duration, _ interruption: Interruption) -> [StoreChange] {
        [
            .setDownloadWait(
                id: record.id, notBefore: until, reason: interruption.reason, detail: interruption.failure.reason,
                retry: record.retry, attempts: record.attempts)
        ]
    }

    // MARK: Not even tried

    /// False when something is missing without which an attempt would be in vain: then it waits for that.
    func mayStart(_ record: DownloadRecord) async -> Bool {
        if connectivity.isOffline, needsNetwork(record) {
            await hold(record, for: .offline) { service, record in service.needsNetwork(record) ? .offline : nil }
            return false
        }
        if let lacking = await lacksSpace(record) {
            await hold(record, for: lacking) { service, record in
                // One that has a partial file may have its room as well.
                record.received > 0
                    ? await service.lacksSpace(record) : service.lackingSpace(record, allocated: 0)
            }
            return false
        }
        return true
    }

    /// Lets a download wait without an attempt, and with it others of its app and class that lack the same: a queue of
    /// many thousands is written down in few transactions, with one journal row each.
    private func hold(
        _ record: DownloadRecord, for interruption: Interruption,
        with lack: (isolated AssetsService, DownloadRecord) async -> Interruption?
    ) async {
        let number = classChangeNumber
        var lacking = [(record, interruption)]
        for other in await startable(beside: record) {
            if let lack = await lack(self, other) { lacking.append((other, lack)) }
        }
        var changes: [StoreChange] = []
        var held: [(record: DownloadRecord, interruption: Interruption)] = []
        var failed: [(DownloadRecord, DownloadFailure, Reason)] = []
        var wantedFree: Int64?
        var earliest = Duration.seconds(Int64.max)
        // While they were looked at, some may have been removed, or have become what must not wait so.
        guard lacking.allSatisfy({ isOfItsClass($0.0, since: number) }) else { return queue.invalidate() }
        for (var record, interruption) in lacking where record.id == lacking[0].0.id || isStartable(record) {
            queue.remove(id: record.id, app: record.app)
            let wasHeld = record.reason == interruption.reason
            record.retry = RetryPolicy.record(untriedAt: calendarNow, in: record.retry)
            let decision = retryPolicy.decideUntried(
                record.transferClass, record.retry, interruption, now: calendarNow, connectivity, at: seams.loop.now)
            switch decision {
            case .fail(let failure): failed.append((record, failure, interruption.reason))
            case .retry(let time), .wait(let time):
                if !wasHeld { held.append((record, interruption)) }
                changes += waiting(record, until: time, interruption)
                earliest = min(earliest, time)
                if let wanted = interruption.wantedFree { wantedFree = min(wantedFree ?? .max, wanted) }
            }
        }
        if let (record, interruption) = held.first {
            let isOne = held.count == 1
            journal(
                .downloadWaits, interruption.reason, app: isOne ? record.app : "", download: isOne ? record.id : "",
                isOne
                    ? interruption.failure.reason : "\(held.count) downloads; the first: \(interruption.failure.reason)"
            )
        }
        do throws(AssetsError) { try await commit(changes) } catch {
            // Removed meanwhile, one of them spoils the others: all are read again.
            queue.invalidate()
            if error.code != .downloadNotScheduled {
                journal(.warning, .space, error.description)
                await seams.loop.pause(for: PolicyNumbers.storagePauseMin)
            }
        }
        await watch(for: interruption.reason, wantedFree: wantedFree)
        for (record, failure, reason) in failed { await fail(record, failure, reason, isRunning: false) }
        await planRetryTimer()
        // Due already, which no timer tells.
        if earliest <= calendarNow { queue.invalidate() }
    }

    /// The next of the same app and class.
    private func startable(beside record: DownloadRecord) async -> [DownloadRecord] {
        let entries = try? await seams.store.queue(
            record.transferClass, app: record.app, at: calendarNow, limit: PolicyNumbers.queueWindowMax)
        var others: [DownloadRecord] = []
        for entry in entries ?? [] where entry.id != record.id {
            if let other = try? await seams.store.download(id: entry.id), isStartable(other) { others.append(other) }
        }
        return others
    }

    /// What waits for one of these is tried now, whatever its pause; pauses after failures begin anew.
    func retryWaiting(for reasons: [Reason]) async {
        var released = PolicyNumbers.releasedAtOnceMax
        while released == PolicyNumbers.releasedAtOnceMax, !isStopping {
            let changes = [StoreChange.releaseWaits(reasons, limit: PolicyNumbers.releasedAtOnceMax)]
            guard let result = try? await seams.store.apply(changes) else { break }
            released = result.released
        }
        queue.invalidate()
        pumpSoon()
    }

    // MARK: Failure

    /// Ends a download without a file; its message goes out.
    func fail(_ record: DownloadRecord, _ failure: DownloadFailure, _ reason: Reason, isRunning: Bool = true) async {
        var record = record
        journal(
            .downloadFailed, reason, app: record.app, download: record.id,
            "\(record.request.identifier): \(failure.reason)")
        let changes: [StoreChange] = [.setDownloadState(id: record.id, .failed(failure))]
        guard await save(changes, of: record.id, isRunning: isRunning) == .done else { return }
        record.state = .failed(failure)
        let partial = record.partialPath
        let files = seams.files
        try? await seams.disk.run { () throws(SystemCallError) in try files.remove(partial) }
        foregroundHolders[record.id] = nil
        noteEssentialEnded(record, received: 0)
        ended(record)
    }

    /// A download reached its end, with a file or without: archives and manifests belong to an installation
    /// or another occasion, everything else to the app.
    func ended(_ record: DownloadRecord) {
        forgetChallenges(of: record.id)
        switch record.request.kind {
        case .archive, .manifest: installationDownloadEnded(record)
        case .url: deliver(record)
        }
    }
}
