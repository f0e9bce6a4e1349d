// One installation whose service is killed at chosen steps and started again until all is done.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting

/// A run of a scenario from the first start of the service to rest.
struct InterruptedRun {
    /// When the service is ended.
    enum Step: Hashable {
        /// After so many lines of the trace.
        case note(Int)
        /// In the middle of this call of the file tree: it and those after it do nothing.
        case file(Int)
        /// In the middle of this writing call of SQLite's.
        case page(Int)
    }

    /// How it is ended.
    enum End: Hashable {
        case kill
        case powerCut(PowerCut)
    }

    let scenario: Scenario
    let device: SimulatedDevice
    /// True once the service has promised the installation to the user.
    private let isPromised = Guarded(false)

    init(_ scenario: Scenario, seed: UInt64) {
        self.scenario = scenario
        device = scenario.device(seed: seed)
    }

    /// Runs until all is done, interrupted at the steps in turn; a step that is never reached interrupts nothing.
    /// The steps of each process are counted anew.
    func run(_ interruptions: [(step: Step, end: End)] = []) throws {
        for (step, end) in interruptions {
            let reached = arm(step)
            device.begin()
            try proceed(until: reached)
            let isReached = reached()
            device.tree.setFault(nil)
            device.vfs.setFault(nil)
            guard isReached else { break }
            switch end {
            case .kill: device.kill()
            case .powerCut(let cut): device.powerCut(cut)
            }
        }
        if !device.isRunning { device.begin() }
        try proceed(until: { false })
        try device.loop.advance(by: .seconds(1))
    }

    private func arm(_ step: Step) -> () -> Bool {
        switch step {
        case .note(let count):
            let end = device.loop.noteCount + count
            return { [loop = device.loop] in loop.noteCount >= end }
        case .file(let count):
            let end = device.tree.calls + count
            device.tree.setFault { $0.number >= end ? 5 : nil }
            return { [tree = device.tree] in tree.calls >= end }
        case .page(let count):
            let end = device.vfs.calls + count
            device.vfs.setFault(.dies(call: end))
            return { [vfs = device.vfs] in vfs.calls >= end }
        }
    }

    /// Runs until all is done or `isReached`; asks for the installation as soon as the service can be asked.
    private func proceed(until isReached: () -> Bool) throws {
        let isAsked = Guarded(false)
        try device.loop.run(
            until: {
                if isReached() { return true }
                if device.startFailure != nil { return true }
                guard device.isReady else { return false }
                if !isPromised.withLock({ $0 }), !isAsked.withLock({ $0 }) {
                    isAsked.withLock { $0 = true }
                    ask()
                }
                return isDone
            }, limit: .seconds(7200))
        if let failure = device.startFailure, !isReached() {
            throw SimulatedFailure(seed: device.seed, reason: "the service did not start: \(failure)")
        }
    }

    /// As a user would who got no answer: looks whether the installation is known, else asks for it.
    private func ask() {
        let isPromised = isPromised
        device.spawn { service, store in
            let known = (try? await store.installations()) ?? []
            if known.isEmpty { _ = try await service.install(source: Scenario.source, kind: .store) }
            isPromised.withLock { $0 = true }
        }
    }

    private var isDone: Bool {
        guard isPromised.withLock({ $0 }) else { return false }
        return device.inspect { service in
            !service.isBusy && service.installedApps().contains { $0.gate == .open }
        } ?? false
    }
}
