// What clients ask of the queue: scheduling, cancelling, listing.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer

extension AssetsService {
    // MARK: What clients ask for

    /// Queues a download for an installed app. Its extension may not while it is asked what to download; a running app may.
    package func schedule(
        _ request: DownloadRequest, for appID: String, as transferClass: TransferClass = .background,
        byExtension: Bool = false
    ) async throws(AssetsError) -> DownloadRecord {
        var app = try installedApp(appID)
        if byExtension, isInContentRequest(appID) {
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
        record.queued(as: try await commit(changes).first ?? 0)
        enqueue(record)
        return record
    }

    /// Starts or promotes a download; it stays in the foreground while `connection` is open.
    package func startForeground(_ request: DownloadRequest, for appID: String, connection: Int)
        async throws(AssetsError) -> DownloadRecord
    {
        let id = request.uniqueIdentifier
        if let known = try await downloadRecord(id: id), known.app == appID {
            return try await promote(known, connection)
        }
        hold(id, connection)
        do throws(AssetsError) {
            let record = try await schedule(request, for: appID, as: .foreground)
            // Its connection may have closed meanwhile.
            if foregroundHolders[id] == nil { try await followHolders(of: id) }
            return record
        } catch {
            giveUp(id, connection)
            // Somebody else has started it meanwhile.
            guard error.code == .downloadAlreadyScheduled, let known = try await downloadRecord(id: id),
                known.app == appID
            else { throw error }
            return try await promote(known, connection)
        }
    }

    /// A call that was to hold a download in the foreground has failed. Others may have left its class to that call.
    private func giveUp(_ id: String, _ connection: Int) {
        letGo(of: id, connection)
        launch { await $0.followHoldersSurely(of: id) }
    }

    private func promote(_ record: DownloadRecord, _ connection: Int) async throws(AssetsError) -> DownloadRecord {
        switch record.state {
        case .failed:
            throw AssetsError(
                .downloadAlreadyFailed, "\(record.request.identifier) has already failed", remedy: "make a new download"
            )
        case .finished, .finishing: return record
        case .waiting: break
        }
        hold(record.id, connection)
        do throws(AssetsError) { try await followHolders(of: record.id) } catch {
            giveUp(record.id, connection)
            throw error
        }
        return try await downloadRecord(id: record.id) ?? record
    }

    /// Ends a queued or running download; its bytes are gone.
    package func cancel(id: String, app: String) async throws(AssetsError) {
        guard let record = try await beginCancel(id: id, app: app) else {
            throw AssetsError(.downloadNotScheduled, "no such download is queued or running", remedy: "")
        }
        journal(.downloadCancelled, .requested, app: app, download: id, record.request.identifier)
        try await remove(record)
    }

    /// The download, when it can be cancelled. Its end waits from here on: what is being cancelled is not told of.
    private func beginCancel(id: String, app: String) async throws(AssetsError) -> DownloadRecord? {
        guard cancels[id] == nil else { return nil }
        cancels[id] = []
        do throws(AssetsError) {
            if let record = try await downloadRecord(id: id), record.app == app, record.isLive { return record }
        } catch {
            cancelDecided(id)
            throw error
        }
        cancelDecided(id)
        return nil
    }

    private func cancelDecided(_ id: String) {
        for waiter in cancels.removeValue(forKey: id) ?? [] { waiter.resume() }
    }

    /// Waits until it is known whether a download is cancelled.
    func cancelIsDecided(_ id: String) async {
        await withCheckedContinuation { continuation in
            // Asked in here, because this body may run as a job of its own, after others.
            if cancels[id] == nil { continuation.resume() } else { cancels[id]?.append(continuation) }
        }
    }

    /// Takes a download out of queue, store and disk.
    func remove(_ record: DownloadRecord) async throws(AssetsError) {
        leaving.insert(record.id)
        defer { forgetLeaving([record.id]) }
        if cancels[record.id] == nil { cancels[record.id] = [] }
        running[record.id]?.isCancelled = true
        forgetChallenges(of: record.id)
        let folder = movingTarget(of: record).map(Self.ownPlace)
        var changes: [StoreChange] = [.removeDownload(id: record.id)]
        if let folder { changes.append(.openIntent(id: record.id, kind: "delete", payload: folder)) }
        do throws(AssetsError) { try await commit(changes) } catch {
            // It goes on as if nobody had asked.
            running[record.id]?.isCancelled = false
            cancelDecided(record.id)
            throw error
        }
        forgetReads(of: record)
        cancelDecided(record.id)
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
        queue.invalidate()
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

    /// Where its file is on the way to, or already is.
    private func movingTarget(of record: DownloadRecord) -> String? {
        if case .finishing(let intent) = record.state { return intent.target }
        return running[record.id]?.target
    }

    func downloadRecord(id: String) async throws(AssetsError) -> DownloadRecord? {
        do throws(StoreError) { return try await seams.store.downloadHere(id: id) } catch { throw AssetsError(error) }
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
