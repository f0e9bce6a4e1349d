// Archive and bundle of an installation: fetched, unpacked, checked, put in place.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    func fetchArchive(_ record: InstallationRecord) async {
        if let known = try? await seams.store.downloads(app: record.id, after: 0, limit: 1).first {
            return resumeWaiting(for: known)
        }
        let request = DownloadRequest(
            identifier: record.source, uniqueIdentifier: seams.random.uuid(), url: record.source, group: "",
            kind: .archive)
        await queueForInstallation(DownloadRecord(app: record.id, request: request, transferClass: .essential))
    }

    func queueForInstallation(_ record: DownloadRecord) async {
        var record = record
        let isSaved = await retryingStore { () async throws(AssetsError) in
            record.queued(as: try await self.commit([.insertDownload(record)]).first ?? 0)
        }
        if isSaved { enqueue(record) }
    }

    /// After a restart: a download that ended while nobody listened is told now, another runs by itself.
    func resumeWaiting(for record: DownloadRecord) {
        if !record.isLive { installationDownloadEnded(record) }
    }

    func stage(_ installation: Installation) async {
        let record = installation.record
        let archive = try? await seams.store.downloads(app: record.id, after: 0, limit: 1).first
        var source = record.source
        if case .finished(let intent) = archive?.state { source = absolute(intent.target) }
        let staging = "Applications/.staging/\(record.buildFolder)"
        let seams = seams
        let allowsLoopbackHTTP = settings.isDeveloperModeOn
        let flag = installation.isCancelled
        do throws(AssetsError) {
            let path = source
            let description = try await seams.unpacking.run { () throws(AssetsError) in
                try prepareStaging(seams.files, staging)
                return try seams.staging.stage(
                    source: path, into: staging, allowsLoopbackHTTP: allowsLoopbackHTTP, isCancelled: { flag.isSet })
            }
            try await adopt(description, record, staging: staging, archive: archive)
        } catch {
            try? await seams.unpacking.run { () throws(SystemCallError) in try seams.files.remove(staging) }
            if !flag.isSet { installationEvent(.stagingFailed(error), of: record.id) }
        }
    }

    /// Moves the staged build to its place and makes the app known, gate shut.
    func adopt(
        _ description: AppDescription, _ record: InstallationRecord, staging: String, archive: DownloadRecord?
    ) async throws(AssetsError) {
        guard settings.isDeveloperModeOn else {
            throw AssetsError(
                .developerModeOff, "\(description.name) is not signed, and only Developer Mode admits that",
                remedy: "switch it on with: backgroundassets settings developer-mode on")
        }
        let app = description.bundleIdentifier
        let isBusy = installations.values.contains {
            $0.record.id != record.id && $0.record.app == app && !$0.life.isEnded
        }
        guard apps[app] == nil, !isBusy else {
            throw AssetsError(
                .alreadyInstalled, "\(description.name) (\(app)) is already installed",
                remedy: "remove it first with: backgroundassets uninstall \(app)")
        }
        let isGated = record.kind == .store && description.restrictions.essentialDownloadAllowance != nil
        let appRecord = AppRecord(
            description: description, buildFolder: record.buildFolder, source: record.kind, gate: .shut,
            installedAt: calendarNow)
        let files = seams.files
        try await translating { () async throws(SystemCallError) in
            try await self.seams.unpacking.run { () throws(SystemCallError) in
                try placeBuild(files, staging: staging, app: appRecord)
            }
        }
        var isPlaced = false
        while !isPlaced {
            let places = containerPlaces(of: appRecord)
            try await translating { () async throws(SystemCallError) in
                try await self.seams.unpacking.run { () throws(SystemCallError) in try places.make(files) }
            }
            // An app that was removed meanwhile took the container of a shared group along.
            isPlaced = places == containerPlaces(of: appRecord)
        }
        var record = record
        record.app = app
        record.phase = .manifest
        apps[app] = appRecord
        installations[record.id]?.record = record
        installations[record.id]?.progress.unpacked(
            allowance: isGated ? description.restrictions.essentialDownloadAllowance ?? 0 : 0)
        journal(.installStaged, .none, app: app, "\(description.name) \(description.version)")
        if isGated { journal(.gateShut, .gate, app: app) }
        var changes: [StoreChange] = [.saveApp(appRecord), .saveInstallation(record)]
        if let archive { changes.append(.removeDownload(id: archive.id)) }
        do throws(AssetsError) { try await commit(changes) } catch {
            apps[app] = nil
            await removeFolders(["Applications/\(app)"])
            throw error
        }
        if case .finished(let intent) = archive?.state {
            try? await seams.disk.run { () throws(SystemCallError) in try files.remove(intent.target) }
        }
        installationEvent(.staged(gated: isGated), of: record.id)
    }
}

/// Makes room for a build that is being unpacked.
func prepareStaging(_ files: any FileTree, _ folder: String) throws(AssetsError) {
    do throws(SystemCallError) {
        try files.remove(folder)
        try files.makeDirectory(folder.parentPath)
    } catch {
        throw AssetsError(.storageFailed, "the device folder: \(error)", remedy: "check space and permissions")
    }
}

/// Renames a staged build to its place.
private func placeBuild(_ files: any FileTree, staging: String, app: AppRecord) throws(SystemCallError) {
    let home = "Applications/\(app.id)"
    try files.makeDurableDirectory(home)
    try files.rename(staging, to: "\(home)/\(app.buildFolder)", exclusively: true)
    try files.syncDirectory(home)
}
