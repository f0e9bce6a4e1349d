// Manifests: of an installation, and of any other occasion on which an extension is asked.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    func fetchManifest(_ record: InstallationRecord) async {
        guard let app = apps[record.app] else { return }
        if let known = try? await manifestRecord(of: app.id) { return resumeWaiting(for: known) }
        await queueForInstallation(manifestDownload(for: app, .essential))
    }

    /// A download of the app's manifest, as it is put into the queue.
    func manifestDownload(for app: AppRecord, _ transferClass: TransferClass) -> DownloadRecord {
        let unique = seams.random.uuid()
        let request = DownloadRequest(
            identifier: "\(app.id).Manifest-\(unique)", uniqueIdentifier: unique, url: app.description.manifestURL,
            group: app.description.sharedGroups.first ?? "", kind: .manifest)
        return DownloadRecord(app: app.id, request: request, transferClass: transferClass)
    }

    /// The manifest of an installation: its app has nothing else in the queue yet.
    func manifestRecord(of app: String) async throws(StoreError) -> DownloadRecord? {
        try await seams.store.downloads(app: app, after: 0, limit: PolicyNumbers.queueWindowMax)
            .first { $0.request.kind == .manifest }
    }

    func askExtension(_ record: InstallationRecord, _ request: ContentRequest) async {
        guard let manifest = try? await manifestRecord(of: record.app), case .finished = manifest.state
        else { return installationEvent(.extensionFailed, of: record.id) }
        callExtension(of: record.app, .contentRequest(request, manifest: manifest.id))
    }

    /// Archive or manifest arrived, or never will.
    func installationDownloadEnded(_ record: DownloadRecord) {
        if let event = event(of: record) { return eventManifestEnded(event, record) }
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

    /// The values as the queue takes them.
    func normalized(_ request: DownloadRequest) -> DownloadRequest {
        var request = request
        request.priority = min(max(request.priority, PolicyNumbers.priorityMin), PolicyNumbers.priorityMax)
        request.kind = .url
        return request
    }
}

extension DownloadRecord {
    /// Bytes of its file; nil while there is none.
    var finishedLength: Int64? {
        if case .finished(let intent) = state { intent.length } else { nil }
    }
}
