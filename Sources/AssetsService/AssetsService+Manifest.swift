// Manifest of an installation, and what the extension wants because of it.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    func fetchManifest(_ record: InstallationRecord) async {
        guard let app = apps[record.app] else { return }
        if let known = try? await manifestRecord(of: app.id) { return resumeWaiting(for: known) }
        let unique = seams.random.uuid()
        let request = DownloadRequest(
            identifier: "\(app.id).Manifest-\(unique)", uniqueIdentifier: unique, url: app.description.manifestURL,
            group: app.description.sharedGroups.first ?? "", kind: .manifest)
        await queueForInstallation(DownloadRecord(app: app.id, request: request, transferClass: .essential))
    }

    func manifestRecord(of app: String) async throws(StoreError) -> DownloadRecord? {
        try await seams.store.downloads(app: app, after: 0, limit: PolicyNumbers.queueWindowMax)
            .first { $0.request.kind == .manifest }
    }

    func askExtension(_ record: InstallationRecord, _ request: ContentRequest) async {
        guard let manifest = try? await manifestRecord(of: record.app), case .finished(let intent) = manifest.state
        else { return installationEvent(.extensionFailed, of: record.id) }
        callExtension(of: record.app, .contentRequest(request, manifest: intent.target))
    }

    /// Archive or manifest arrived, or never will.
    func installationDownloadEnded(_ record: DownloadRecord) {
        guard let id = installation(of: record) else { return }
        switch (record.request.kind, record.state) {
        case (.archive, .failed(let failure)):
            let error = AssetsError(
                .sourceUnreachable, "\(record.request.url): \(failure.reason)",
                remedy: "check the address and try again")
            installationEvent(.archiveFailed(error), of: id)
        case (.archive, _): installationEvent(.archiveFetched, of: id)
        case (_, .failed):
            installationEvent(.manifestFailed, of: id)
            // Where the gate is shut, its opening tells.
            deliver(record)
        default:
            if case .finished(let intent) = record.state {
                journal(.manifestFetched, .none, app: record.app, download: record.id, "\(intent.length) bytes")
            }
            installationEvent(.manifestFetched, of: id)
        }
    }

    /// What an app may have once its manifest was charged. The charge is saved with the answer.
    func admission(for app: AppRecord, manifest row: DownloadRecord?) -> Admission {
        var admission = Admission(app: app, allowsLoopbackHTTP: settings.isDeveloperModeOn)
        admission.chargeManifest(bytes: row?.finishedLength ?? 0)
        return admission
    }

    /// The extension answered a content request, or did not: queue what it wants and forget the manifest.
    func contentRequestEnded(
        _ appID: String, _ request: ContentRequest, manifest: String, _ outcome: EntryPointOutcome
    ) async {
        let row = try? await manifestRecord(of: appID)
        // An extension that was interrupted by the service's own end has not answered: manifest and phase stay.
        guard !isStopping, var app = apps[appID], let id = runningInstallation(of: appID) else { return }
        guard let manifestRow = row else { return installationEvent(.extensionFailed, of: id) }
        var wanted: [DownloadRequest] = []
        var isAnswered = true
        switch outcome {
        case .downloads(let downloads): wanted = downloads.map(normalized)
        case .handled, .answered, .notImplemented: break
        case .died: isAnswered = false
        }
        var admission = admission(for: app, manifest: manifestRow)
        app.ledger = admission.ledger
        do throws(AssetsError) {
            try admission.answer(wanted, to: request)
            app.ledger = admission.ledger
        } catch {
            journal(.downloadRefused, reason(of: error), app: appID, error.description)
            wanted = []
        }
        apps[appID]?.ledger = app.ledger
        // A stable order, so that equal priorities start in the same order on every device.
        let records = wanted.sorted { $0.identifier < $1.identifier }.map {
            DownloadRecord(app: appID, request: $0, transferClass: $0.isEssential ? .essential : .background)
        }
        let essentials = wanted.filter(\.isEssential)
        installations[id]?.progress.asked(essentialBytes: essentials.reduce(0) { $0 + $1.size })
        installations[id]?.essentialRemaining = essentials.count
        let forgetting: [StoreChange] = [
            .removeDownload(id: manifestRow.id),
            .openIntent(id: manifestRow.id, kind: "delete", payload: manifest.parentPath),
        ]
        var changes = [.saveApp(app)] + forgetting + records.map { .insertDownload($0) }
        // Also without essentials: what is left to do after a restart is to open the gate, not to ask again.
        if var record = installations[id]?.record, isAnswered, app.gate == .shut {
            record.phase = .essential
            installations[id]?.record = record
            changes.append(.saveInstallation(record))
        }
        for record in records {
            journal(.downloadQueued, .requested, app: appID, download: record.id, record.request.identifier)
        }
        let saved = changes
        let isSaved = await retryingStore { () async throws(AssetsError) in
            do throws(AssetsError) { try await self.commit(saved) } catch {
                guard error.code == .downloadAlreadyScheduled else { throw error }
                self.journal(.downloadRefused, .duplicate, app: appID, error.description)
                try await self.commit(forgetting)
                isAnswered = false
            }
        }
        guard isSaved else { return }
        if await removeFolders([manifest.parentPath]) { closeSoon(intent: manifestRow.id) }
        for transferClass in TransferClass.allCases { invalidateWindow(transferClass) }
        installationEvent(isAnswered ? .answered(essentials: essentials.count) : .extensionFailed, of: id)
        pumpSoon()
    }

    /// The values as the queue takes them.
    func normalized(_ request: DownloadRequest) -> DownloadRequest {
        var request = request
        request.priority = min(max(request.priority, PolicyNumbers.priorityMin), PolicyNumbers.priorityMax)
        request.kind = .url
        return request
    }

    func invalidateWindow(_ transferClass: TransferClass) {
        windowVersions[transferClass, default: 0] += 1
        windows[transferClass]?.invalidate()
    }
}

extension DownloadRecord {
    /// Bytes of its file; nil while there is none.
    var finishedLength: Int64? {
        if case .finished(let intent) = state { intent.length } else { nil }
    }
}
