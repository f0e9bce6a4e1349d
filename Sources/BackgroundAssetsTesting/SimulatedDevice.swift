// A whole device in one process: the real service on simulated disk, network, extensions and time.
package import AssetsModel
package import AssetsOS
package import AssetsService
package import AssetsStore
internal import AssetsTransfer

/// One simulated device. Its disk, servers and extensions live as long as it does; its service is a process that can be
/// killed between any two steps and started again.
package final class SimulatedDevice {
    /// One run of the service, on the lanes of its loops.
    private final class Process {
        let loop: SimulatedLane
        let storeLoop: SimulatedLane
        let transferLoop: SimulatedLane
        let diskLoop: SimulatedLane
        let hashLoop: SimulatedLane
        let unpackLoop: SimulatedLane
        let backgroundLoop: SimulatedLane
        let writeLoop: SimulatedLane
        let parts = Guarded<(store: Store, transfers: TransferEngine, service: AssetsService)?>(nil)
        let isReady = Guarded(false)
        let failure = Guarded<String?>(nil)

        init(on loop: SimulatedLoop) {
            self.loop = loop.makeLane()
            storeLoop = loop.makeLane()
            transferLoop = loop.makeLane()
            diskLoop = loop.makeLane()
            hashLoop = loop.makeLane()
            unpackLoop = loop.makeLane()
            backgroundLoop = loop.makeLane()
            writeLoop = loop.makeLane()
        }

        var lanes: [SimulatedLane] {
            [loop, storeLoop, transferLoop, diskLoop, unpackLoop, hashLoop, backgroundLoop, writeLoop]
        }
    }

    package let seed: UInt64
    package let loop: SimulatedLoop
    package let calendar: SimulatedCalendar
    package let tree: MemoryTree
    package let vfs: MemoryVFS
    package let server: ScriptedServer
    package let network = SimulatedNetwork()
    package let extensions: ScriptedExtension
    package let staging: ScriptedStaging
    private let random: SeededRandom
    private var process: Process?
    private let lastRow = Guarded<Int64>(0)

    /// Services that were killed and stopped, and power cuts; the one that a power cut ends is not counted as killed.
    package private(set) var kills = 0
    package private(set) var stops = 0
    package private(set) var powerCuts = 0

    package init(seed: UInt64, capacity: Int64 = 1 << 40) {
        self.seed = seed
        loop = SimulatedLoop(seed: seed)
        calendar = SimulatedCalendar(on: loop)
        random = SeededRandom(seed: seed)
        tree = MemoryTree(capacity: capacity)
        vfs = MemoryVFS(seed: seed, calendar: calendar)
        server = ScriptedServer(on: loop)
        extensions = ScriptedExtension(on: loop, files: tree)
        staging = ScriptedStaging(files: tree)
    }

    deinit {
        endProcess()
        tree.erase()
    }

    // MARK: The service's process

    /// Begins a process of the service; `isReady` tells when it has started.
    package func begin() {
        precondition(process == nil, "the device's service runs already")
        let process = Process(on: loop)
        self.process = process
        extensions.attach(to: process.loop)
        network.attach(to: process.loop)
        let start = startWork(process)
        _ = Task(executorPreference: process.loop) { await start() }
    }

    private func startWork(_ process: Process) -> @Sendable () async -> Void {
        let (parts, isReady, failure) = (process.parts, process.isReady, process.failure)
        let lanes = process.lanes
        let (loop, storeLoop, transferLoop, diskLoop) = (lanes[0], lanes[1], lanes[2], lanes[3])
        let (unpackLoop, hashLoop, backgroundLoop, writeLoop) = (lanes[4], lanes[5], lanes[6], lanes[7])
        let (vfs, tree, calendar, random, server) = (vfs, tree, calendar, random, server)
        let (staging, extensions, network) = (staging, extensions, network)
        let follow = journalFollower(loop)
        return {
            do {
                let store = try await Store(path: "/device.sqlite", vfs: vfs.name, on: storeLoop)
                let transfers = TransferEngine(
                    on: transferLoop, disks: [diskLoop, writeLoop], backgroundDisk: backgroundLoop, hashing: hashLoop,
                    files: tree,
                    transport: server.transport)
                let service = AssetsService(
                    seams: ServiceSeams(
                        loop: loop, disk: DiskWorker(on: diskLoop), unpacking: DiskWorker(on: unpackLoop),
                        calendar: calendar, random: random, files: tree, store: store, transfers: transfers,
                        staging: staging, extensions: extensions, network: network))
                parts.withLock { $0 = (store, transfers, service) }
                _ = await service.watchJournal { follow(store) }
                try await service.start()
                // Scripted bundles carry no signature.
                try await service.setDeveloperMode(true)
                isReady.withLock { $0 = true }
            } catch { failure.withLock { $0 = "\(error)" } }
        }
    }

    /// Notes new journal rows in the trace.
    private func journalFollower(_ lane: SimulatedLane) -> @Sendable (Store) -> Void {
        let (loop, lastRow) = (loop, lastRow)
        return { store in
            _ = Task(executorPreference: lane) {
                let last = lastRow.withLock { $0 }
                for row in (try? await store.journal(after: last, limit: Store.pageMax)) ?? [] {
                    let isNew = lastRow.withLock { last in
                        defer { last = max(last, row.number) }
                        return row.number > last
                    }
                    if isNew { loop.note("journal \(row.number) \(row.entry.shown)") }
                }
            }
        }
    }

    /// True from the beginning of a process to its end.
    package var isRunning: Bool { process != nil }

    /// True while a service runs that has started.
    package var isReady: Bool { process?.isReady.withLock { $0 } ?? false }

    /// What a service that could not start said.
    package var startFailure: String? { process?.failure.withLock { $0 } }

    /// Starts the service and waits until it takes calls.
    package func start() throws {
        begin()
        try loop.run(until: { isReady || startFailure != nil })
        if let startFailure { throw SimulatedFailure(seed: seed, reason: "the service did not start: \(startFailure)") }
    }

    /// Kills the service: nothing of it runs any more, all that it wrote is there.
    package func kill() {
        loop.note("killed")
        kills += 1
        endProcess()
    }

    /// Cuts the power: what was not synced is gone, or some of it.
    package func powerCut(_ cut: PowerCut = .forgetsAll) {
        loop.note("power cut")
        powerCuts += 1
        endProcess(cut)
    }

    /// Ends the service as a signal does.
    package func stop() throws {
        try call { await $0.stop() }
        loop.note("stopped")
        stops += 1
        endProcess()
    }

    /// Ends the service as a signal does, and starts another.
    package func restart() throws {
        try stop()
        try start()
    }

    /// Takes the process away, and frees what is large of it. The dead do nothing: neither disk takes anything more.
    private func endProcess(_ cut: PowerCut? = nil) {
        for lane in process?.lanes ?? [] { lane.die() }
        if let cut { tree.powerCut(cut) } else { tree.endProcess() }
        vfs.setFault(.dies(call: 0))
        if let parts = process?.parts.withLock({ $0 }) {
            parts.transfers.assumeIsolated { $0.abandon() }
            parts.store.assumeIsolated { try? $0.close() }
        }
        process = nil
        if let cut { vfs.powerCut(cut) } else { vfs.endProcess() }
    }

    // MARK: The disk

    /// Where a container lies; a path of nothing where there is none.
    package func container(_ kind: ContainerFolders.Kind, of identifier: String) -> String {
        ContainerFolders { (try? tree.list($0)) ?? [] }[kind, identifier] ?? "no container of \(identifier)"
    }

    // MARK: The network

    /// Takes the machine's network away, or gives it back: servers cannot be reached meanwhile.
    package var isOnline: Bool {
        get { server.isReachable }
        set {
            server.isReachable = newValue
            network.view = newValue ? SimulatedNetwork.online : SimulatedNetwork.offline
        }
    }

    // MARK: Using the service

    /// Looks at the running service between two steps.
    package func inspect<Value: Sendable>(_ body: @Sendable (isolated AssetsService) -> Value) -> Value? {
        guard isReady, let process, let service = process.parts.withLock({ $0?.service }) else { return nil }
        return loop.enter(process.loop) { service.assumeIsolated { body($0) } }
    }

    /// Calls the running service and waits for its answer.
    package func call<Value: Sendable>(
        limit: Duration = .seconds(3600), _ body: @escaping @Sendable (isolated AssetsService) async throws -> Value
    ) throws -> Value {
        guard isReady, let service = process?.parts.withLock({ $0?.service }) else {
            throw SimulatedFailure(seed: seed, reason: "no service runs")
        }
        return try loop.complete(limit: limit) { try await body(service) }
    }

    /// Begins a task beside the running service; it ends with it.
    package func spawn(_ body: @escaping @Sendable (AssetsService, Store) async throws -> Void) {
        guard isReady, let process, let parts = process.parts.withLock({ $0 }) else { return }
        let (service, store) = (parts.service, parts.store)
        _ = Task(executorPreference: process.loop) { try? await body(service, store) }
    }

    /// Asks the store of the running service.
    package func query<Value: Sendable>(
        _ body: @escaping @Sendable (isolated Store) throws -> Value
    ) throws -> Value {
        guard let store = process?.parts.withLock({ $0?.store }) else {
            throw SimulatedFailure(seed: seed, reason: "no service runs")
        }
        return try loop.complete { try await body(store) }
    }

    /// Installs an app whose bundle lies at `source`, and returns the installation's id.
    package func install(_ source: String = "/apps/Simulated.app", kind: InstallSource = .store) throws -> String {
        try call { try await $0.install(source: source, kind: kind) }
    }

    /// Runs until an installation has reached a phase; one that has ended otherwise is an error.
    package func wait(for phase: InstallPhase, of app: String, limit: Duration = .seconds(3600)) throws {
        try loop.run(
            until: {
                inspect { service in
                    if let running = service.isInstalling(app) { return running == phase }
                    return phase == .launchable && service.installedApps().contains { $0.id == app && $0.gate == .open }
                } ?? false
            }, limit: limit)
    }

    /// Runs until the service has nothing to do any more, and what it noted is written. An extension that has used up its
    /// runtime is waited for a day, each time.
    package func settle(limit: Duration = .seconds(30 * 86400)) throws {
        try loop.run(until: { inspect { !$0.isBusy } ?? false }, limit: limit)
        try loop.advance(by: .seconds(1))
    }
}

/// What went wrong in a simulation, with the seed to see it again.
package struct SimulatedFailure: Error, CustomStringConvertible {
    package var seed: UInt64
    package var reason: String

    package init(seed: UInt64, reason: String) {
        self.seed = seed
        self.reason = reason
    }

    package var description: String { "simulation with seed \(seed): \(reason)" }
}

extension JournalEntry {
    /// One line for the trace.
    fileprivate var shown: String { "\(event.rawValue) \(reason.rawValue) \(app) \(download) \(detail)" }
}
