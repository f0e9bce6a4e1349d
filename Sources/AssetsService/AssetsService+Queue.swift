// The queue: scheduling, cancelling, promoting, and choosing what starts next.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer

extension AssetsService {
    // MARK: What clients ask for

    /// Queues a download for an installed app.
    package func schedule(_ request: DownloadRequest, for appID: String, as transferClass: TransferClass = .background)
        async throws(AssetsError) -> DownloadRecord
    {
        var app = try installedApp(appID)
        if isInContentRequest(appID) {
            throw AssetsError(
                .downloadFailedToStart,
                "\(request.shownIdentifier): the manager does not schedule while downloads(for:) runs",
                remedy: "return the download from downloads(for:manifestURL:extensionInfo:)")
        }
        var admission = Admission(app: app, allowsLoopbackHTTP: settings.isDeveloperModeOn)
        admission.reserveManifest(bytes: unchargedManifest(of: appID))
        let request = normalized(request)
        do throws(AssetsError) { try admission.schedule(request) } catch {
            journal(.downloadRefused, reason(of: error), app: appID, error.reason)
            throw error
        }
        var changes: [StoreChange] = []
        if app.ledger != admission.ledger {
            app.ledger = admission.ledger
            apps[appID]?.ledger = admission.ledger
            changes.append(.saveApp(app))
        }
        var record = DownloadRecord(app: appID, request: request, transferClass: transferClass)
        changes.append(.insertDownload(record))
        journal(.downloadQueued, .requested, app: appID, download: record.id, record.request.identifier)
        record.sequence = try await commit(changes).first ?? 0
        enqueue(record)
        return record
    }

    /// Starts or promotes a download; it stays in the foreground while `connection` is open.
    package func startForeground(_ request: DownloadRequest, for appID: String, connection: Int)
        async throws(AssetsError) -> DownloadRecord
    {
        let known = try await downloadRecord(id: request.uniqueIdentifier)
        guard let record = known, record.app == appID else {
            foregroundHolders[request.uniqueIdentifier, default: []].insert(connection)
            do throws(AssetsError) { return try await schedule(request, for: appID, as: .foreground) } catch {
                foregroundHolders[request.uniqueIdentifier] = nil
                throw error
            }
        }
        switch record.state {
        case .failed:
            throw AssetsError(
                .downloadAlreadyFailed, "\(record.request.identifier) has already failed", remedy: "make a new download"
            )
        case .finished, .finishing: return record
        case .waiting: break
        }
        foregroundHolders[record.id, default: []].insert(connection)
        guard record.transferClass == .background else { return record }
        return try await change(record, to: .foreground, .downloadPromoted)
    }

    /// Ends a queued or running download; its bytes are gone.
    package func cancel(id: String, app: String) async throws(AssetsError) {
        guard let record = try await downloadRecord(id: id), record.app == app, record.isLive else {
            throw AssetsError(.downloadNotScheduled, "no such download is queued or running", remedy: "")
        }
        journal(.downloadCancelled, .requested, app: app, download: id, record.request.identifier)
        try await remove(record)
    }

    /// Takes a download out of queue, store and disk.
    func remove(_ record: DownloadRecord) async throws(AssetsError) {
        leaving.insert(record.id)
        defer { forgetLeaving([record.id]) }
        running[record.id]?.isCancelled = true
        forgetChallenges(of: record.id)
        let folder = mayBeMoving(record) ? Self.ownPlace(finishTarget(of: record)) : nil
        var changes: [StoreChange] = [.removeDownload(id: record.id)]
        if let folder { changes.append(.openIntent(id: record.id, kind: "delete", payload: folder)) }
        try await commit(changes)
        await stopTransfer(record.id)
        if let folder, await removeFolders([folder]) { closeSoon(intent: record.id) }
        foregroundHolders[record.id] = nil
        let partial = record.partialPath
        let files = seams.files
        try? await seams.disk.run { () throws(SystemCallError) in try files.remove(partial) }
        noteEssentialEnded(record, received: 0)
    }

    /// Removed downloads are gone from the store: what was read before is read again.
    func forgetLeaving(_ ids: [String]) {
        leaving.subtract(ids)
        for transferClass in TransferClass.allCases { invalidateWindow(transferClass) }
        pumpSoon()
    }

    /// Removes what a download left on the disk.
    func removeFiles(of record: DownloadRecord) async {
        let files = seams.files
        var paths = [record.partialPath]
        switch record.state {
        case .finishing(let intent): paths.append(Self.ownPlace(intent.target))
        case .finished(let intent) where record.request.kind == .archive: paths.append(intent.target)
        case .waiting, .finished, .failed: break
        }
        for path in paths {
            try? await seams.disk.run { () throws(SystemCallError) in try files.remove(path) }
        }
    }

    /// True when its file may be on the way to its place, or there already.
    private func mayBeMoving(_ record: DownloadRecord) -> Bool {
        if case .finishing = record.state { return true }
        return running[record.id]?.isEnding ?? false
    }

    /// A connection of an app closed: what it held in the foreground goes on in the background.
    package func foregroundConnectionEnded(_ connection: Int) async {
        for id in foregroundHolders.keys.sorted() where foregroundHolders[id]?.contains(connection) == true {
            foregroundHolders[id]?.remove(connection)
            guard foregroundHolders[id]?.isEmpty == true else { continue }
            foregroundHolders[id] = nil
            guard let record = try? await downloadRecord(id: id), record.isLive, record.transferClass == .foreground
            else { continue }
            _ = try? await change(record, to: .background, .downloadDemoted)
        }
    }

    private func change(_ record: DownloadRecord, to transferClass: TransferClass, _ event: JournalEvent)
        async throws(AssetsError) -> DownloadRecord
    {
        var record = record
        let before = record.transferClass
        let isWaiting = record.notBefore != nil
        journal(
            event, event == .downloadPromoted ? .requested : .disconnected, app: record.app, download: record.id,
            "\(before) to \(transferClass)")
        var changes: [StoreChange] = [.setDownloadClass(id: record.id, transferClass)]
        if isWaiting {
            changes.append(
                .setDownloadWait(
                    id: record.id, notBefore: nil, reason: .none, detail: "", retry: record.retry,
                    attempts: record.attempts))
        }
        try await commit(changes)
        record.transferClass = transferClass
        record.notBefore = nil
        if running[record.id] != nil {
            running[record.id]?.record.transferClass = transferClass
            slots.change(record.id, to: transferClass)
            tellDelegates(of: record.app, .paused(record))
            await seams.transfers.setClass(record.id, transferClass)
        } else {
            windows[before]?.remove(id: record.id)
            enqueue(record)
        }
        return record
    }

    func downloadRecord(id: String) async throws(AssetsError) -> DownloadRecord? {
        do throws(StoreError) { return try await seams.store.download(id: id) } catch { throw AssetsError(error) }
    }

    /// Queued and running downloads of an app, oldest first.
    package func currentDownloads(of app: String, after sequence: Int64, limit: Int) async throws(AssetsError)
        -> [DownloadRecord]
    {
        do throws(StoreError) {
            return try await seams.store.liveDownloads(app: app, after: sequence, limit: limit)
        } catch { throw AssetsError(error) }
    }

    /// All downloads, also those whose message waits.
    package func downloads(of app: String?, after sequence: Int64, limit: Int) async throws(AssetsError)
        -> [DownloadRecord]
    {
        do throws(StoreError) {
            return try await seams.store.downloads(app: app, after: sequence, limit: limit)
        } catch { throw AssetsError(error) }
    }

    /// What runs now of a download.
    package func progress(of id: String) -> (received: Int64, expected: Int64)? {
        running[id].map { ($0.received, $0.expected) }
    }

    // MARK: What starts next

    /// A record became startable.
    func enqueue(_ record: DownloadRecord) {
        windowVersions[record.transferClass, default: 0] += 1
        windows[record.transferClass, default: QueueWindow()].insert(record)
        pumpSoon()
    }

    /// Fills free slots soon.
    func pumpSoon() {
        mustPumpAgain = true
        guard !isPumping else { return }
        isPumping = true
        launch { service in await service.pump() }
    }

    private func pump() async {
        while mustPumpAgain && !isStopping {
            mustPumpAgain = false
            for transferClass in TransferClass.allCases.reversed() { await fill(transferClass) }
        }
        isPumping = false
        activityChanged?()
    }

    private func fill(_ transferClass: TransferClass) async {
        while !isStopping, slots.hasRoom(for: transferClass) {
            var window = windows[transferClass] ?? QueueWindow()
            if let next = window.entries.first(where: { slots.obstacle(for: slotEntry(of: $0)) == nil }) {
                window.remove(id: next.id)
                windows[transferClass] = window
                if running[next.id] == nil, challenges[next.id] == nil, !isHeld(next), !leaving.contains(next.id) {
                    await start(next)
                }
                continue
            }
            guard window.entries.isEmpty, !window.isComplete, await reload(transferClass) else { return }
        }
    }

    /// Reads the window again; true when it got entries.
    private func reload(_ transferClass: TransferClass) async -> Bool {
        let version = windowVersions[transferClass, default: 0]
        let held = apps.values.filter { app in
            transferClass != .essential && app.gate == .shut || isHeldByChallenges(app.id)
        }.map(\.id).sorted()
        do throws(StoreError) {
            // Those that run or ask are among the answers: the store's state does not tell them from those that wait.
            let limit = PolicyNumbers.queueWindowMax + running.count + challenges.count
            let found = try await seams.store.next(transferClass, at: calendarNow, excluding: held, limit: limit)
            let records = found.filter { running[$0.id] == nil && challenges[$0.id] == nil }
            var window = QueueWindow()
            window.load(records, isComplete: found.count < limit)
            windows[transferClass] = window
            if version != windowVersions[transferClass, default: 0] { windows[transferClass]?.invalidate() }
            await planRetryTimer()
            return version != windowVersions[transferClass, default: 0] || !records.isEmpty
        } catch {
            journal(.warning, .space, "the queue cannot be read: \(error)")
            return false
        }
    }

    /// Non-essential downloads wait until the gate is open: essential goes first. And those of an app that has too many
    /// questions to answer wait for its answers.
    func isHeld(_ record: DownloadRecord) -> Bool {
        record.transferClass != .essential && apps[record.app]?.gate == .shut || isHeldByChallenges(record.app)
    }

    func slotEntry(of record: DownloadRecord) -> TransferSlots.Entry {
        let origin = try? RequestOrigin(url: record.request.url, allowsLoopbackHTTP: true)
        return TransferSlots.Entry(app: record.app, host: origin?.host ?? "", transferClass: record.transferClass)
    }

    /// Wakes the queue when the next postponed download is due.
    func planRetryTimer() async {
        var earliest: Duration?
        for transferClass in TransferClass.allCases {
            guard let due = try? await seams.store.earliestNotBefore(transferClass, after: calendarNow) else {
                continue
            }
            earliest = min(earliest ?? due, due)
        }
        guard let due = earliest else {
            if let timer = retryTimer { seams.loop.cancel(timer.token) }
            retryTimer = nil
            return
        }
        if let timer = retryTimer {
            guard due != timer.at else { return }
            seams.loop.cancel(timer.token)
        }
        let delay = max(.milliseconds(1), due - calendarNow)
        let token = seams.loop.schedule(after: delay) { self.assumeIsolated { $0.retryTimerFired() } }
        retryTimer = (token, due)
    }

    private func retryTimerFired() {
        retryTimer = nil
        for transferClass in TransferClass.allCases { windows[transferClass]?.invalidate() }
        pumpSoon()
    }

    func reason(of error: AssetsError) -> Reason {
        switch error.code {
        case .disallowedByDomain: .domain
        case .wouldExceedAllowance, .disallowedByAllowance, .allowanceExceeded: .allowance
        case .downloadAlreadyScheduled: .duplicate
        default: .invalid
        }
    }
}

extension DownloadRecord {
    var partialPath: String { "Transfers/\(id).partial" }

    var isLive: Bool {
        switch state {
        case .waiting, .finishing: true
        case .finished, .failed: false
        }
    }
}
