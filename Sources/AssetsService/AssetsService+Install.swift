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

    func performActions(of id: String) async {
        while let action = installations[id]?.actions.first, !isStopping {
            installations[id]?.actions.removeFirst()
            await perform(action, of: id)
        }
        installations[id]?.isPerforming = false
        activityChanged?()
    }

    func perform(_ action: InstallLife.Action, of id: String) async {
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

    func enter(_ phase: InstallPhase, _ id: String) async {
        guard var record = installations[id]?.record else { return }
        record.phase = phase
        installations[id]?.record = record
        if phase == .launchable { installations[id]?.progress.finished() }
        var changes: [StoreChange] = [.saveInstallation(record)]
        if phase == .failed || phase == .cancelled { changes.append(.closeIntent(id: id)) }
        let isSaved = await retryingStore { () async throws(AssetsError) in try await self.commit(changes) }
        guard isSaved else { return }
        tellFollowers(id)
        guard phase.isFinal else { return }
        armPlanTimer()
        forgetLater(id)
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

    func forget(install id: String) async {
        installations[id] = nil
        _ = try? await commit([.removeInstallation(id)])
    }

    func translating<Value>(_ body: () async throws(SystemCallError) -> Value) async throws(AssetsError) -> Value {
        do throws(SystemCallError) { return try await body() } catch {
            throw AssetsError(.storageFailed, "the device folder: \(error)", remedy: "check space and permissions")
        }
    }
}
