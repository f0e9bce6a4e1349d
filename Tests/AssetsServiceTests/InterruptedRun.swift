// One installation whose service is ended at chosen steps and started again until all is done.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting

/// A run of a scenario from the first start of the service to rest.
struct InterruptedRun {
    /// When the service is ended.
    enum Step: Hashable, Sendable {
        /// After so many lines of the trace.
        case note(Int)
        /// After a line that begins so.
        case line(String)
        /// In the middle of this call of the file tree: it and those after it do nothing. A stop comes while it is done.
        case file(Int)
        /// In the middle of this writing call of SQLite's.
        case page(Int)
    }

    /// How it is ended.
    enum End: Hashable, Sendable {
        case kill
        case powerCut(PowerCut)
        /// As a signal ends it.
        case stop
    }

    /// How long a run may take in virtual time: an extension that hangs in every callback uses up a day's runtime with
    /// one delivery, and each of its messages is delivered eight times.
    private static let limit = Duration.seconds(60 * 24 * 3600)

    let scenario: Scenario
    let device: SimulatedDevice
    /// The installation that the service has promised to the user.
    private let promise = Guarded<String?>(nil)

    init(_ scenario: Scenario, seed: UInt64) {
        self.scenario = scenario
        device = scenario.device(seed: seed)
    }

    /// Runs until all is done, interrupted at the steps in turn; a step that is never reached interrupts nothing.
    /// The steps of each process are counted anew.
    func run(_ interruptions: [(step: Step, end: End)] = []) throws {
        for (step, end) in interruptions {
            device.begin()
            guard try proceed(to: step, failing: end != .stop) else { break }
            try finish(end)
        }
        if !device.isRunning { device.begin() }
        try proceed(until: { isDone })
        try device.loop.advance(by: .seconds(1))
    }

    /// Cancels the installation after so many lines, ends the service at a step after that, and runs to rest. False
    /// when the installation ended before.
    func cancel(after notes: Int, kill step: Step?) throws -> Bool {
        device.begin()
        guard try proceed(to: .note(notes)) else { return false }
        // Before its id is known, nobody can cancel it.
        try proceed(until: { promise.withLock { $0 != nil } })
        let id = promise.withLock { $0 } ?? ""
        let isCancelled = Guarded<Bool?>(nil)
        device.spawn { service, _ in
            let isDone = (try? await service.cancelInstall(id)) != nil
            isCancelled.withLock { $0 = isDone }
        }
        try proceed(until: { isCancelled.withLock { $0 != nil } })
        guard isCancelled.withLock({ $0 == true }) else { return false }
        if let step, try proceed(to: step, until: { isIdle }) {
            try finish(.kill)
            device.begin()
        }
        try proceed(until: { isIdle })
        try device.loop.advance(by: .seconds(1))
        return true
    }

    private func finish(_ end: End) throws {
        switch end {
        case .kill: device.kill()
        case .powerCut(let cut): device.powerCut(cut)
        case .stop: if device.isReady { try device.stop() } else { device.kill() }
        }
    }

    // MARK: Steps

    /// True when the step was reached before the end.
    private func proceed(
        to step: Step, failing: Bool = true, until isEnd: (() -> Bool)? = nil
    ) throws -> Bool {
        let isReached = arm(step, failing: failing)
        try proceed(until: { isReached() || isEnd?() ?? isDone })
        let reached = isReached()
        device.tree.setFault(nil)
        device.vfs.setFault(nil)
        return reached
    }

    private func arm(_ step: Step, failing: Bool) -> () -> Bool {
        let (loop, tree, vfs) = (device.loop, device.tree, device.vfs)
        switch step {
        case .note(let count):
            let end = loop.noteCount + count
            return { loop.noteCount >= end }
        case .line(let start):
            let first = loop.noteCount
            return { loop.trace[first...].contains { $0.hasPrefix(start) } }
        case .file(let count):
            let end = tree.calls + count
            if failing { tree.setFault { $0.number >= end ? 5 : nil } }
            return { tree.calls >= end }
        case .page(let count):
            let end = vfs.calls + count
            if failing { vfs.setFault(.dies(call: end)) }
            return { vfs.calls >= end }
        }
    }

    /// Runs until `isEnd`; asks for the installation as soon as the service can be asked.
    private func proceed(until isEnd: () -> Bool) throws {
        var isAsked = false
        try device.loop.run(
            until: {
                if isEnd() || device.startFailure != nil { return true }
                if device.isReady, !isAsked, promise.withLock({ $0 }) == nil {
                    isAsked = true
                    ask()
                }
                return false
            }, limit: Self.limit)
        if let failure = device.startFailure, !isEnd() {
            throw SimulatedFailure(seed: device.seed, reason: "the service did not start: \(failure)")
        }
    }

    /// As a user would who got no answer: looks whether the installation is known, else asks for it.
    private func ask() {
        let (promise, source) = (promise, scenario.source)
        device.spawn { service, store in
            let known = try await store.installations().first?.id
            let id: String
            if let known { id = known } else { id = try await service.install(source: source, kind: .store) }
            promise.withLock { $0 = id }
        }
    }

    private var isDone: Bool { isIdle && device.inspect { $0.installedApps().contains { $0.gate == .open } } == true }

    private var isIdle: Bool { promise.withLock({ $0 }) != nil && device.inspect { !$0.isBusy } == true }
}
