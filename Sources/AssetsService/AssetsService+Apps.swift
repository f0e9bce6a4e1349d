// Installed apps: list, launch, remove.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore

/// What a launcher needs to start an app.
package struct LaunchPlan: Hashable, Sendable {
    /// Absolute path.
    package var executable: String
    package var environment: [String: String]
}

extension AssetsService {
    package func installedApps() -> [AppRecord] { apps.values.sorted { $0.id < $1.id } }

    package func isInstalling(_ app: String) -> InstallPhase? {
        runningInstallation(of: app).flatMap { installations[$0]?.record.phase }
    }

    func installedApp(_ id: String) throws(AssetsError) -> AppRecord {
        guard let app = apps[id] else {
            throw AssetsError(
                .callerConnectionNotAccepted, "no app \(id) is installed on this device",
                remedy: "install it with: backgroundassets install")
        }
        return app
    }

    /// Asks the launch gate; the answer counts as a launch.
    package func launchPlan(for id: String) async throws(AssetsError) -> LaunchPlan {
        switch LaunchGate.decide(app: apps[id], identifier: id, installing: isInstalling(id)) {
        case .failure(let error):
            journal(.launchRefused, error.code == .gateShut ? .gate : .invalid, app: id, error.reason)
            throw error
        case .success(let app):
            journal(.launched, .none, app: id)
            try await noteLaunch(of: id)
            let executable =
                "Applications/\(id)/current/\(app.description.bundleFolder)/\(app.description.executable)"
            return LaunchPlan(
                executable: absolute(executable), environment: seams.launchEnvironment)
        }
    }

    /// A launch, or an accepted connection of the app, counts as use of it; the first one ends its restrictions for good.
    package func noteLaunch(of id: String) async throws(AssetsError) {
        guard var app = apps[id] else { return }
        var changes = [planAfterUse(of: id)].compactMap(\.self)
        if app.launchedAt == nil {
            journal(.launched, .requested, app: id, "for the first time")
            app.launchedAt = calendarNow
            apps[id]?.launchedAt = calendarNow
            changes.append(.saveApp(app))
        }
        if !changes.isEmpty { try await commit(changes) }
    }

    /// Removes an app with its builds, downloads and containers.
    package func uninstall(_ id: String) async throws(AssetsError) {
        guard let app = apps[id] else {
            throw AssetsError(
                .notInstalled, "no app \(id) is installed on this device",
                remedy: "list the apps with: backgroundassets apps")
        }
        if let phase = isInstalling(id) {
            throw AssetsError(
                .busy, "\(app.description.name) is still being installed",
                remedy: "cancel the installation with Ctrl-C where it runs, or wait (\(phase.rawValue))")
        }
        journal(.uninstalled, .requested, app: id, "\(app.description.name) \(app.description.version)")
        await removeApp(app)
    }

    /// What an installation that failed or was cancelled left.
    func removeEverything(_ record: InstallationRecord) async {
        await removeDownloads(of: record.id)
        let staging = "Applications/.staging/\(record.buildFolder)"
        let files = seams.files
        try? await seams.unpacking.run { () throws(SystemCallError) in try files.remove(staging) }
        if let app = apps[record.app], app.buildFolder == record.buildFolder { await removeApp(app) }
    }

    private func removeApp(_ app: AppRecord) async {
        await endExtension(of: app.id)
        apps[app.id] = nil
        forgetPlan(of: app.id)
        forgetExtension(of: app.id)
        forgetMessages(of: app.id)
        credentials[app.id] = nil
        await removeDownloads(of: app.id)
        let folders = ["Applications/\(app.id)"] + releaseContainers(of: app)
        let payload = folders.joined(separator: "\n")
        // The app may be installed and removed again before this removal is completed.
        let intent = "\(app.id) \(app.buildFolder)"
        let isSaved = await retryingStore { () async throws(AssetsError) in
            try await self.commit([.removeApp(app.id), .openIntent(id: intent, kind: "remove", payload: payload)])
        }
        guard isSaved else { return }
        if await removeFolders(folders) { _ = try? await commit([.closeIntent(id: intent)]) }
    }

    /// False when one of them is still there: its intent is not to be closed.
    @discardableResult
    func removeFolders(_ folders: [String]) async -> Bool {
        let files = seams.files
        var areGone = true
        for folder in folders {
            do throws(SystemCallError) {
                try await seams.unpacking.run { () throws(SystemCallError) in
                    try files.remove(folder)
                    let parent = folder.parentPath
                    if try files.status(parent)?.kind == .directory { try files.syncDirectory(parent) }
                }
                if let shared = Self.vendedFolder(of: folder) { try await tidy(shared) }
            } catch {
                journal(.warning, .volume, "\(folder) could not be removed: \(error)")
                areGone = false
            }
        }
        return areGone
    }

    private func removeDownloads(of app: String) async {
        while let records = try? await seams.store.downloads(app: app, after: 0, limit: PolicyNumbers.queueWindowMax),
            !records.isEmpty
        {
            leaving.formUnion(records.map(\.id))
            defer { forgetLeaving(records.map(\.id)) }
            for record in records {
                forgetChallenges(of: record.id)
                await stopTransfer(record.id)
                foregroundHolders[record.id] = nil
                await removeFiles(of: record)
            }
            guard (try? await commit(records.map { .removeDownload(id: $0.id) })) != nil else { return }
        }
    }
}
