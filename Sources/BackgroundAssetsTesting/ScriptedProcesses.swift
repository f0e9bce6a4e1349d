// The processes of simulated extensions: launched, stopped, going on, ended, one for each app.
internal import AssetsModel
internal import AssetsOS
internal import AssetsService

/// Stands for the kernel's side of extensions, and notes what no service may do to them.
package final class ScriptedProcesses: Sendable {
    /// What happened to a process, in order.
    package enum Event: Hashable, Sendable { case launched, stopped, locked, resumed, told, ended(String) }

    private struct Process {
        let number: Int
        let target: ExtensionTarget
        var isStopped = false
        var isCalled = false
        /// Process clock.
        var lockedUntil = Duration.zero
        var memory = MemoryRule()
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private struct State {
        var lane: SimulatedLane?
        var listener: (@Sendable (String, ExtensionNews) -> Void)?
        var living: [String: Process] = [:]
        var count = 0
        var events: [Event] = []
        var problems: [String] = []
    }

    private let loop: SimulatedLoop
    private let state = Guarded(State())

    init(on loop: SimulatedLoop) { self.loop = loop }

    package var events: [Event] { state.withLock { $0.events } }
    package var problems: [String] { state.withLock { $0.problems } }
    package func isStopped(_ app: String) -> Bool { state.withLock { $0.living[app]?.isStopped ?? false } }
    package func isAlive(_ app: String) -> Bool { state.withLock { $0.living[app] != nil } }

    /// Another process of the service: the extensions of the one before died with it.
    func attach(to lane: SimulatedLane) {
        state.withLock { state in
            state.lane = lane
            for process in state.living.values { Graveyard.bury(process.waiters) }
            state.living = [:]
            state.listener = nil
        }
    }

    func report(to listener: @escaping @Sendable (String, ExtensionNews) -> Void) {
        state.withLock { $0.listener = listener }
    }

    // MARK: What the service does

    func start(_ target: ExtensionTarget) {
        let app = target.app
        let isSecond = state.withLock { state in
            let isSecond = state.living[app] != nil
            if isSecond { state.problems.append("a second process of \(app)") }
            state.count += 1
            state.living[app] = Process(number: state.count, target: target)
            state.events.append(.launched)
            return isSecond
        }
        loop.note("extension of \(app) is launched\(isSecond ? " twice" : "")")
        tell(app, .launched)
    }

    func stop(_ app: String) {
        let now = loop.now
        let news = state.withLock { state -> ExtensionNews? in
            guard let process = state.living[app] else { return nil }
            if process.isCalled { state.problems.append("\(app) is stopped inside an entry point") }
            guard process.lockedUntil <= now else {
                state.events.append(.locked)
                return .locked(process.target.container + "/home/lock")
            }
            state.living[app]?.isStopped = true
            state.events.append(.stopped)
            return .stopped
        }
        if let news { tell(app, news) }
    }

    func resume(_ app: String) {
        state.withLock { state in
            guard state.living[app]?.isStopped == true else { return }
            state.living[app]?.isStopped = false
            state.events.append(.resumed)
        }
    }

    func tellEnd(_ app: String) {
        let hears = state.withLock { state in
            // The main thread is elsewhere.
            guard let process = state.living[app], !process.isCalled else { return false }
            if process.isStopped { state.problems.append("\(app) is told of its end while it is stopped") }
            state.events.append(.told)
            return true
        }
        if hears { tell(app, .endNoted) }
    }

    /// Ends it; what it was doing is never answered.
    func end(_ app: String, _ how: String) {
        let process = state.withLock { state in
            if state.living[app] != nil { state.events.append(.ended(how)) }
            return state.living.removeValue(forKey: app)
        }
        guard let process else { return }
        loop.note("extension of \(app) \(how)")
        for waiter in process.waiters { waiter.resume() }
        tell(app, .ended(how, memoryPeak: process.memory.peak))
    }

    // MARK: What the script does

    /// The process that is called; nil where there is none.
    func beginCall(_ app: String) -> (target: ExtensionTarget, number: Int)? {
        state.withLock { state in
            guard let process = state.living[app] else { return nil }
            if process.isStopped { state.problems.append("\(app) is called while it is stopped") }
            if process.isCalled { state.problems.append("\(app) is called twice") }
            state.living[app]?.isCalled = true
            return (process.target, process.number)
        }
    }

    /// False when the process has ended meanwhile.
    func endCall(_ app: String, _ number: Int, lock: Duration?) -> Bool {
        let now = loop.now
        return state.withLock { state in
            guard state.living[app]?.number == number else { return false }
            state.living[app]?.isCalled = false
            if let lock { state.living[app]?.lockedUntil = now + lock }
            return true
        }
    }

    /// Takes memory; false when it is more than it may have.
    func use(_ bytes: Int64, _ app: String) -> Bool {
        let seen = state.withLock { state -> (MemoryRule.Verdict, Int64)? in
            guard var process = state.living[app] else { return nil }
            let verdict = process.memory.observe(MemoryUse(anonymous: bytes))
            state.living[app] = process
            return (verdict, process.memory.peak)
        }
        guard let (verdict, peak) = seen, verdict != .fine else { return true }
        tell(app, .memory(peak: peak, verdict))
        return verdict != .tooMuch
    }

    /// Returns when the process has ended.
    func ended(_ app: String, _ number: Int) async {
        await withCheckedContinuation { continuation in
            let isGone = state.withLock { state in
                guard state.living[app]?.number == number else { return true }
                state.living[app]?.waiters.append(continuation)
                return false
            }
            if isGone { continuation.resume() }
        }
    }

    private func tell(_ app: String, _ news: ExtensionNews) {
        let (lane, listener) = state.withLock { ($0.lane, $0.listener) }
        lane?.perform { listener?(app, news) }
    }
}
