// Those who follow an installation, and what they are told.
internal import AssetsModel
internal import AssetsOS

extension AssetsService {
    /// Followers are told of progress at most this often.
    private static let updateInterval = Duration.milliseconds(100)

    func installation(of record: DownloadRecord) -> String? {
        if record.request.kind == .archive { return installations[record.app] == nil ? nil : record.app }
        return runningInstallation(of: record.app)
    }

    /// The installation of an app that has not ended; there is at most one.
    func runningInstallation(of app: String) -> String? {
        installations.values.first { $0.record.app == app && !$0.life.isEnded }?.record.id
    }

    func planUpdate(_ id: String) {
        guard installations[id]?.isUpdatePlanned == false, installations[id]?.followers.isEmpty == false else { return }
        installations[id]?.isUpdatePlanned = true
        _ = seams.loop.schedule(after: Self.updateInterval) { self.assumeIsolated { $0.tellFollowers(id) } }
    }

    func tellFollowers(_ id: String) {
        installations[id]?.isUpdatePlanned = false
        guard let status = installStatus(id), let followers = installations[id]?.followers else { return }
        for number in followers.keys.sorted() { followers[number]?(status) }
    }

    func installStatus(_ id: String) -> InstallStatus? {
        guard let installation = installations[id] else { return nil }
        let fraction = installations[id]?.progress.fraction() ?? 0
        let record = installation.record
        return InstallStatus(
            install: id, app: record.app, phase: record.phase, fraction: fraction,
            received: installation.progress.received, expected: installation.progress.expected,
            detail: detail(of: installation), error: record.error)
    }

    func detail(of installation: Installation) -> String {
        switch installation.record.phase {
        case .archive: return "fetching the app"
        case .unpacking: return "unpacking and checking the app"
        case .manifest: return "fetching the manifest"
        case .asking: return "the app's extension decides what to fetch"
        case .essential:
            let left = installation.essentialRemaining
            return "\(left) essential \(left == 1 ? "asset" : "assets") to come"
        case .launchable:
            let app = apps[installation.record.app]?.description
            return "\(app?.name ?? installation.record.app) \(app?.version ?? "") is ready to launch"
        case .failed: return installation.record.error?.reason ?? "failed"
        case .cancelled: return "cancelled; nothing is left"
        }
    }
}
