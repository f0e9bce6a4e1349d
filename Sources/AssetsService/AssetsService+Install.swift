// Installations: the service's side of `InstallLife`.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import Synchronization

/// One installation while the service knows of it.
struct Installation {
    var record: InstallationRecord
    var life = InstallLife()
    var progress = InstallProgress()
    /// Essential downloads that have not ended, and the bytes of those that have.
    var essentialRemaining = 0
    var essentialReceived: Int64 = 0
    var actions: [InstallLife.Action] = []
    var isPerforming = false
    var followers: [Int: @Sendable (InstallStatus) -> Void] = [:]
    var isUpdatePlanned = false
    /// The store knows that everything of it is to be removed.
    var isAbandoned = false
    let isCancelled = CancelFlag()
}

/// Lets a blocking worker see that nobody wants its result any more.
final class CancelFlag: Sendable {
    private let flag = Atomic(false)
    func set() { flag.store(true, ordering: .relaxed) }
    var isSet: Bool { flag.load(ordering: .relaxed) }
}

/// What the followers of an installation are told.
package struct InstallStatus: Hashable, Sendable {
    package var install: String
    package var app: String
    package var phase: InstallPhase
    package var fraction: Double
    package var received: Int64
    package var expected: Int64
    package var detail: String
    package var error: AssetsError?
}

extension AssetsService {
    /// Followers are told of progress at most this often.
    private static let updateInterval = Duration.milliseconds(100)

    // MARK: What clients ask for

    /// Begins an installation and returns its id.
    package func install(source: String, kind: InstallSource) async throws(AssetsError) -> String {
        let isURL = source.contains("://")
        if isURL {
            _ = try RequestOrigin(url: source, allowsLoopbackHTTP: settings.isDeveloperModeOn)
        } else if !source.hasPrefix("/") {
            throw AssetsError(.usage, "\(source): not an absolute path or https URL")
        }
        let id = seams.random.uuid()
        let record = InstallationRecord(
            id: id, source: source, kind: kind, phase: isURL ? .archive : .unpacking, buildFolder: seams.random.uuid(),
            startedAt: calendarNow)
        journal(.installStarted, .requested, source)
        try await commit([.saveInstallation(record)])
        installations[id] = Installation(record: record)
        installationEvent(.begin(sourceIsURL: isURL), of: id)
        return id
    }

    /// Calls `body` with every change until the installation has ended; at once with the present state.
    package func follow(install id: String, _ body: @escaping @Sendable (InstallStatus) -> Void)
        throws(AssetsError) -> Int
    {
        guard installations[id] != nil else {
            throw AssetsError(.notInstalled, "no such installation is known", remedy: "see: backgroundassets apps")
        }
        nextWatcher += 1
        installations[id]?.followers[nextWatcher] = body
        if let status = installStatus(id) { body(status) }
        return nextWatcher
    }

    package func unfollow(install id: String, _ number: Int) { installations[id]?.followers[number] = nil }

    /// Ends an installation; nothing of it is left, also when the service is killed once this has returned.
    package func cancelInstall(_ id: String) async throws(AssetsError) {
        guard let installation = installations[id] else {
            throw AssetsError(.notInstalled, "no such installation is known")
        }
        let hasEnded = AssetsError(
            .busy, "the installation has already ended", remedy: "remove the app with: backgroundassets uninstall")
        guard !installation.life.isEnded else { throw hasEnded }
        guard !installation.isAbandoned else { return }
        installations[id]?.isAbandoned = true
        do throws(AssetsError) {
            try await commit([.openIntent(id: id, kind: "abandon", payload: InstallPhase.cancelled.rawValue)])
        } catch {
            installations[id]?.isAbandoned = false
            throw error
        }
        guard installations[id]?.life.isEnded == false else {
            closeSoon(intent: id)
            throw hasEnded
        }
        installation.isCancelled.set()
        installationEvent(.cancel, of: id)
    }

    // MARK: The rule and its actions

    func installationEvent(_ event: InstallLife.Event, of id: String) {
        guard var installation = installations[id] else { return }
        installation.actions += installation.life.handle(event, at: seams.loop.now)
        let mustStart = !installation.isPerforming && !installation.actions.isEmpty
        installation.isPerforming = installation.isPerforming || mustStart
        installations[id] = installation
        if mustStart { launch { service in await service.performActions(of: id) } }
    }

    private func performActions(of id: String) async {
        while let action = installations[id]?.actions.first, !isStopping {
            installations[id]?.actions.removeFirst()
            await perform(action, of: id)
        }
        installations[id]?.isPerforming = false
        activityChanged?()
    }

    private func perform(_ action: InstallLife.Action, of id: String) async {
        guard let installation = installations[id] else { return }
        let app = installation.record.app
        switch action {
        case .enter(let phase): await enter(phase, id)
        case .fetchArchive: await fetchArchive(installation.record)
        case .stage: await stage(installation)
        case .fetchManifest: await fetchManifest(installation.record)
        case .ask(let request): await askExtension(installation.record, request)
        case .watchEssentials: await watchEssentials(id)
        case .setGateTimer(let deadline):
            _ = seams.loop.schedule(at: deadline) {
                self.assumeIsolated { $0.installationEvent(.gateTimerFired, of: id) }
            }
        case .openGate(let opening): await openGate(of: app, opening)
        case .removeEverything: await abandon(installation)
        case .fail(let error):
            installations[id]?.record.error = error
            journal(.installFailed, reason(of: error), app: app, error.description)
            await enter(.failed, id)
        case .tellCancelled:
            journal(.installCancelled, .requested, app: app, installation.record.source)
            await enter(.cancelled, id)
        }
    }

    private func enter(_ phase: InstallPhase, _ id: String) async {
        guard var record = installations[id]?.record else { return }
        record.phase = phase
        installations[id]?.record = record
        if phase == .launchable { installations[id]?.progress.finished() }
        var changes: [StoreChange] = [.saveInstallation(record)]
        if phase == .failed || phase == .cancelled { changes.append(.closeIntent(id: id)) }
        let isSaved = await retryingStore { () async throws(AssetsError) in try await self.commit(changes) }
        guard isSaved else { return }
        tellFollowers(id)
        if phase.isFinal { forgetLater(id) }
    }

    /// An installation that ended stays known for a while to those who ask how it ended.
    func forgetLater(_ id: String) {
        _ = seams.loop.schedule(after: PolicyNumbers.installationMemory) {
            self.assumeIsolated { service in service.launch { await $0.forget(install: id) } }
        }
    }

    /// Removes what an installation left that failed or was cancelled. The intent says which, should nobody come to
    /// write it down.
    private func abandon(_ installation: Installation) async {
        var record = installation.record
        for case .fail(let error) in installation.actions { record.error = error }
        let outcome: InstallPhase = record.error == nil ? .cancelled : .failed
        var changes: [StoreChange] = [.saveInstallation(record)]
        if !installation.isAbandoned {
            changes.append(.openIntent(id: record.id, kind: "abandon", payload: outcome.rawValue))
        }
        let saved = changes
        let isSaved = await retryingStore { () async throws(AssetsError) in try await self.commit(saved) }
        if isSaved { await removeEverything(record) }
    }

    private func forget(install id: String) async {
        installations[id] = nil
        _ = try? await commit([.removeInstallation(id)])
    }

    // MARK: Archive and bundle

    private func fetchArchive(_ record: InstallationRecord) async {
        if let known = try? await seams.store.downloads(app: record.id, after: 0, limit: 1).first {
            return resumeWaiting(for: known)
        }
        let request = DownloadRequest(
            identifier: record.source, uniqueIdentifier: seams.random.uuid(), url: record.source, group: "",
            kind: .archive)
        await queueForInstallation(DownloadRecord(app: record.id, request: request, transferClass: .essential))
    }

    private func queueForInstallation(_ record: DownloadRecord) async {
        var record = record
        let isSaved = await retryingStore { () async throws(AssetsError) in
            record.sequence = try await self.commit([.insertDownload(record)]).first ?? 0
        }
        if isSaved { enqueue(record) }
    }

    /// After a restart: a download that ended while nobody listened is told now, another runs by itself.
    private func resumeWaiting(for record: DownloadRecord) {
        if !record.isLive { installationDownloadEnded(record) }
    }

    private func stage(_ installation: Installation) async {
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
    private func adopt(
        _ description: AppDescription, _ record: InstallationRecord, staging: String, archive: DownloadRecord?
    ) async throws(AssetsError) {
        let app = description.bundleIdentifier
        let isBusy = installations.values.contains { $0.record.id != record.id && $0.record.app == app && !$0.life.isEnded }
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

    // MARK: Manifest and extension

    private func fetchManifest(_ record: InstallationRecord) async {
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

    private func askExtension(_ record: InstallationRecord, _ request: ContentRequest) async {
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
                .sourceUnreachable, "\(record.request.url): \(failure.reason)", remedy: "check the address and try again")
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
        if case .finished(let intent) = row?.state { admission.chargeManifest(bytes: intent.length) }
        return admission
    }

    /// The extension answered a content request, or did not: queue what it wants and forget the manifest.
    func contentRequestEnded(
        _ appID: String, _ request: ContentRequest, manifest: String, _ outcome: EntryPointOutcome
    ) async {
        let row = try? await manifestRecord(of: appID)
        guard var app = apps[appID], let id = runningInstallation(of: appID) else { return }
        guard let manifestRow = row else { return installationEvent(.extensionFailed, of: id) }
        var wanted: [DownloadRequest] = []
        var isAnswered = true
        switch outcome {
        case .downloads(let downloads): wanted = downloads.map(normalized)
        case .handled, .notImplemented: break
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

    private func normalized(_ request: DownloadRequest) -> DownloadRequest {
        var request = request
        request.priority = min(max(request.priority, PolicyNumbers.priorityMin), PolicyNumbers.priorityMax)
        request.kind = .url
        return request
    }

    func invalidateWindow(_ transferClass: TransferClass) {
        windowVersions[transferClass, default: 0] += 1
        windows[transferClass]?.invalidate()
    }

    // MARK: Essentials and gate

    private func watchEssentials(_ id: String) async {
        guard let app = installations[id]?.record.app,
            let live = try? await seams.store.counts(app: app, .essential)
        else { return }
        installations[id]?.essentialRemaining = live.count
        if let total = installations[id]?.progress.expected, total == 0 {
            installations[id]?.progress.asked(essentialBytes: live.size)
        }
        reportEssentials(id)
    }

    /// An essential download ended, well or not.
    func noteEssentialEnded(_ record: DownloadRecord, received: Int64) {
        guard record.request.isEssential, let id = installation(of: record) else { return }
        installations[id]?.essentialRemaining -= 1
        installations[id]?.essentialReceived += received
        reportEssentials(id)
    }

    /// Bytes came in for a download; tells the gate's patience and the followers.
    func installationProgressed(_ record: DownloadRecord) {
        guard let id = installation(of: record) else { return }
        switch record.request.kind {
        case .archive:
            let transfer = running[record.id]
            installations[id]?.progress.archive(
                received: transfer?.received ?? 0, expected: transfer?.expected ?? record.request.size)
        case .manifest: break
        case .url:
            guard record.request.isEssential else { return }
            reportEssentials(id)
        }
        planUpdate(id)
    }

    private func reportEssentials(_ id: String) {
        guard let installation = installations[id] else { return }
        var received = installation.essentialReceived
        for transfer in running.values
        where transfer.record.app == installation.record.app && transfer.record.request.isEssential {
            if case .waiting = transfer.record.state { received += transfer.received }
        }
        installations[id]?.progress.essential(received: received)
        planUpdate(id)
        guard installation.record.phase == .essential else { return }
        installationEvent(.essentials(remaining: installation.essentialRemaining, received: received), of: id)
    }

    private func openGate(of appID: String, _ opening: InstallLife.GateOpening) async {
        guard var app = apps[appID] else { return }
        await endExtension(of: appID)
        let link = "Applications/\(appID)/current"
        let build = app.buildFolder
        let files = seams.files
        let isLinked = await retryingStore { () async throws(AssetsError) in
            try await self.translating { () async throws(SystemCallError) in
                try await self.seams.disk.run { () throws(SystemCallError) in
                    try files.replaceLink(link, target: build)
                    try files.syncDirectory(link.parentPath)
                }
            }
        }
        guard isLinked else { return }
        app.gate = .open
        app.ledger = apps[appID]?.ledger ?? app.ledger
        apps[appID] = app
        journal(.gateOpened, opening.reason, app: appID, opening.rawValue)
        let saved = app
        let isSaved = await retryingStore { () async throws(AssetsError) in try await self.commit([.saveApp(saved)]) }
        guard isSaved else { return }
        for transferClass in TransferClass.allCases { invalidateWindow(transferClass) }
        pumpSoon()
        launch { service in await service.deliverPending(of: appID) }
    }

    func translating<Value>(_ body: () async throws(SystemCallError) -> Value) async throws(AssetsError) -> Value {
        do throws(SystemCallError) { return try await body() } catch {
            throw AssetsError(.storageFailed, "the device folder: \(error)", remedy: "check space and permissions")
        }
    }

    // MARK: Followers

    func installation(of record: DownloadRecord) -> String? {
        if record.request.kind == .archive { return installations[record.app] == nil ? nil : record.app }
        return runningInstallation(of: record.app)
    }

    /// The installation of an app that has not ended; there is at most one.
    func runningInstallation(of app: String) -> String? {
        installations.values.first { $0.record.app == app && !$0.life.isEnded }?.record.id
    }

    private func planUpdate(_ id: String) {
        guard installations[id]?.isUpdatePlanned == false, installations[id]?.followers.isEmpty == false else { return }
        installations[id]?.isUpdatePlanned = true
        _ = seams.loop.schedule(after: Self.updateInterval) { self.assumeIsolated { $0.tellFollowers(id) } }
    }

    private func tellFollowers(_ id: String) {
        installations[id]?.isUpdatePlanned = false
        guard let status = installStatus(id), let followers = installations[id]?.followers else { return }
        for number in followers.keys.sorted() { followers[number]?(status) }
    }

    private func installStatus(_ id: String) -> InstallStatus? {
        guard let installation = installations[id] else { return nil }
        let fraction = installations[id]?.progress.fraction() ?? 0
        let record = installation.record
        return InstallStatus(
            install: id, app: record.app, phase: record.phase, fraction: fraction,
            received: installation.progress.received, expected: installation.progress.expected,
            detail: detail(of: installation), error: record.error)
    }

    private func detail(of installation: Installation) -> String {
        switch installation.record.phase {
        case .archive: return "fetching the app"
        case .unpacking: return "unpacking and checking the app"
        case .manifest: return "fetching the manifest"
        case .asking: return "the app's extension decides what to fetch"
        case .essential: return "\(installation.essentialRemaining) essential assets to come"
        case .launchable:
            let app = apps[installation.record.app]?.description
            return "\(app?.name ?? installation.record.app) \(app?.version ?? "") is ready to launch"
        case .failed: return installation.record.error?.reason ?? "failed"
        case .cancelled: return "cancelled; nothing is left"
        }
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

/// Renames a staged build to its place and makes the app's containers.
private func placeBuild(_ files: any FileTree, staging: String, app: AppRecord) throws(SystemCallError) {
    let home = "Applications/\(app.id)"
    try files.makeDurableDirectory(home)
    try files.rename(staging, to: "\(home)/\(app.buildFolder)", exclusively: true)
    try files.syncDirectory(home)
    for group in app.description.groups { try makeGroupContainer(files, group) }
    let container = "Containers/Extension/\(app.description.extensionIdentifier)"
    for folder in ["home", "tmp", "Manifests"] { try files.makeDirectory("\(container)/\(folder)") }
    try files.makeDurableDirectory(container)
    try files.syncDirectory(container)
}

/// The signature line that tells backup tools to leave a folder out.
private let cacheDirectoryTag = "Signature: 8a477f597d28d172789f06886806bc55\n"

private func makeGroupContainer(_ files: any FileTree, _ group: String) throws(SystemCallError) {
    let caches = "Containers/Group/\(group)/Library/Caches"
    try files.makeDurableDirectory("\(caches)/.BackgroundAssets")
    if try files.status("\(caches)/CACHEDIR.TAG") == nil {
        try files.replace("\(caches)/CACHEDIR.TAG", with: Array(cacheDirectoryTag.utf8), mode: 0o600)
    }
}

extension InstallLife.GateOpening {
    fileprivate var reason: Reason {
        switch self {
        case .complete, .nothingEssential, .notGated: .none
        case .manifestFailed: .manifest
        case .extensionFailed: .crash
        case .patience: .timeout
        }
    }
}
