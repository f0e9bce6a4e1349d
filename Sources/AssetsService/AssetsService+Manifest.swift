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
        case (_, .failed): installationEvent(.manifestFailed, of: id)
        default:
            if case .finished(let intent) = record.state {
                let ledger = charged(record.app, manifest: intent.length)
                apps[record.app]?.ledger = ledger
                journal(.manifestFetched, .none, app: record.app, download: record.id, "\(intent.length) bytes")
            }
            installationEvent(.manifestFetched, of: id)
        }
    }

    func charged(_ app: String, manifest bytes: Int64) -> AllowanceLedger {
        guard let app = apps[app] else { return AllowanceLedger() }
        var admission = Admission(app: app, allowsLoopbackHTTP: settings.isDeveloperModeOn)
        admission.chargeManifest(bytes: bytes)
        return admission.ledger
    }

    /// The extension answered a content request, or did not: queue what it wants and forget the manifest.
    func contentRequestEnded(
        _ appID: String, _ request: ContentRequest, manifest: String, _ outcome: EntryPointOutcome
    ) async {
        // An extension that was interrupted by the service's own end has not answered: manifest and phase stay.
        guard !isStopping, var app = apps[appID], let id = runningInstallation(of: appID),
            let manifestRow = try? await manifestRecord(of: appID)
        else { return }
        var wanted: [DownloadRequest] = []
        var isAnswered = true
        switch outcome {
        case .downloads(let downloads): wanted = downloads.map(normalized)
        case .handled, .notImplemented: break
        case .died: isAnswered = false
        }
        var admission = Admission(app: app, allowsLoopbackHTTP: settings.isDeveloperModeOn)
        do throws(AssetsError) { try admission.answer(wanted, to: request) } catch {
            journal(.downloadRefused, reason(of: error), app: appID, error.description)
            wanted = []
        }
        app.ledger = isAnswered && !wanted.isEmpty ? admission.ledger : app.ledger
        apps[appID]?.ledger = app.ledger
        // A stable order, so that equal priorities start in the same order on every device.
        let records = wanted.sorted { $0.identifier < $1.identifier }.map {
            DownloadRecord(app: appID, request: $0, transferClass: $0.isEssential ? .essential : .background)
        }
        let essentials = wanted.filter(\.isEssential)
        installations[id]?.progress.asked(essentialBytes: essentials.reduce(0) { $0 + $1.size })
        installations[id]?.essentialRemaining = essentials.count
        var changes: [StoreChange] =
            [.saveApp(app), .removeDownload(id: manifestRow.id)] + records.map { .insertDownload($0) }
        if var record = installations[id]?.record, !essentials.isEmpty, app.gate == .shut {
            record.phase = .essential
            installations[id]?.record = record
            changes.append(.saveInstallation(record))
        }
        for record in records {
            journal(.downloadQueued, .requested, app: appID, download: record.id, record.request.identifier)
        }
        do throws(AssetsError) { try await commit(changes) } catch {
            journal(.downloadRefused, .duplicate, app: appID, error.description)
            _ = try? await commit([.removeDownload(id: manifestRow.id)])
            isAnswered = false
        }
        let files = seams.files
        try? await seams.disk.run { () throws(SystemCallError) in try files.remove(manifest.parentPath) }
        for transferClass in TransferClass.allCases { invalidateWindow(transferClass) }
        installationEvent(isAnswered ? .answered(essentials: essentials.count) : .extensionFailed, of: id)
        pumpSoon()
    }

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
