// The executor of a simulation: one thread, one seed, one history.
package import AssetsOS
internal import Glibc
internal import Synchronization

/// Why a simulation did not get to where it should.
package struct SimulationError: Error, Hashable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Nothing is ready and no timer is set, so nothing will ever happen again.
        case stalled
        /// The virtual time allowed has passed.
        case timeIsUp
        /// More jobs ran than any sensible history has: something turns in circles.
        case endless
    }
    package var code: Code
    package var seed: UInt64
    /// Virtual time at which it ended.
    package var time: Duration

    package var description: String { "simulation with seed \(seed) at \(time): \(code)" }
}

/// Runs the actors of a whole simulated device on the caller's thread, in an order drawn from a seed, with a clock
/// that moves only when nothing is left to do.
///
/// Whatever is ready at one moment may run in any order: jobs of actors that have threads of their own in production,
/// and timers of the same deadline. The same seed gives the same history in every process; `hash` proves it.
package final class SimulatedLoop: LoopExecutor {
    /// Jobs in one run.
    package static let jobsMax = 20_000_000
    /// Lines of the trace that are kept; the hash goes on beyond.
    package static let traceMax = 100_000

    private enum Work {
        case job(UnownedJob)
        case timer(@Sendable () -> Void)
    }

    private struct Timer {
        let deadline: Duration
        let token: TimerToken
        let body: @Sendable () -> Void
    }

    private struct State {
        var now: Duration
        var ready: [Work] = []
        /// Latest first, so that the next one is removed from the end; equal deadlines in the order they were made.
        var timers: [Timer] = []
        var nextTimer: UInt64 = 0
        var picks: SeededSequence
        var trace: [String] = []
        var hash = TraceHash()
    }

    package let seed: UInt64
    private let state: Guarded<State>
    private let threadID = Atomic<UInt>(0)

    /// - Parameter start: The process clock at the beginning.
    package init(seed: UInt64, start: Duration = .seconds(1000)) {
        self.seed = seed
        state = Guarded(State(now: start, picks: SeededSequence(seed: seed, stream: "loop")))
    }

    // MARK: Executor

    package func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        state.withLock { $0.ready.append(.job(unowned)) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
    package func checkIsolated() { precondition(isOnLoop, "not on this simulation's thread") }
    package func isIsolatingCurrentContext() -> Bool? { isOnLoop }

    /// True inside `run` and `drain`, on the thread that called them.
    package var isOnLoop: Bool { threadID.load(ordering: .acquiring) == UInt(pthread_self()) }

    // MARK: Time

    package var now: Duration { state.withLock { $0.now } }

    package func schedule(at deadline: Duration, _ body: @escaping @Sendable () -> Void) -> TimerToken {
        state.withLock { state in
            state.nextTimer += 1
            let timer = Timer(deadline: deadline, token: TimerToken(number: state.nextTimer), body: body)
            let index = state.timers.firstIndex { $0.deadline <= deadline } ?? state.timers.count
            state.timers.insert(timer, at: index)
            return timer.token
        }
    }

    package func cancel(_ timer: TimerToken) {
        state.withLock { state in state.timers.removeAll { $0.token == timer } }
    }

    // MARK: Running

    /// Begins a task of the simulation.
    package func spawn(_ body: @escaping @Sendable () async -> Void) {
        _ = Task(executorPreference: self) { await body() }
    }

    /// Runs until `condition` holds, which is asked after every job.
    ///
    /// - Parameter limit: Virtual time that may pass.
    package func run(until condition: () -> Bool, limit: Duration = .seconds(3600)) throws(SimulationError) {
        let end = now + limit
        var jobs = 0
        while !condition() {
            if runOne() {
                jobs += 1
                guard jobs < Self.jobsMax else { throw failure(.endless) }
            } else {
                guard let next = nextDeadline else { throw failure(.stalled) }
                guard next <= end else {
                    move(to: end)
                    throw failure(.timeIsUp)
                }
                move(to: next)
            }
        }
    }

    /// Runs what is ready, and what that makes ready, without letting time pass.
    package func drain() throws(SimulationError) {
        var jobs = 0
        while runOne() {
            jobs += 1
            guard jobs < Self.jobsMax else { throw failure(.endless) }
        }
    }

    /// Lets so much time pass, and runs all that happens in it.
    package func advance(by delay: Duration) throws(SimulationError) {
        let end = now + delay
        try drain()
        while let next = nextDeadline, next <= end {
            move(to: next)
            try drain()
        }
        move(to: end)
    }

    /// Runs `body` as a task of the simulation until it returns, and hands out what it returned or threw.
    package func complete<Value: Sendable>(
        limit: Duration = .seconds(3600), _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        let outcome = Guarded<Result<Value, any Error>?>(nil)
        // Not through `spawn`: the outcome has to be the last thing of the last job, so that nothing of the task is left
        // in the queue of a loop that nobody runs any more.
        _ = Task(executorPreference: self) {
            do {
                let value = try await body()
                outcome.withLock { $0 = .success(value) }
            } catch {
                outcome.withLock { $0 = .failure(error) }
            }
        }
        try run(until: { outcome.withLock { $0 != nil } }, limit: limit)
        guard let result = outcome.withLock({ $0 }) else { preconditionFailure("ended without an outcome") }
        return try result.get()
    }

    /// False when nothing is ready.
    private func runOne() -> Bool {
        let work = state.withLock { state -> Work? in
            guard !state.ready.isEmpty else { return nil }
            let index = state.picks.next(below: state.ready.count)
            state.hash.add(UInt64(index))
            return state.ready.remove(at: index)
        }
        guard let work else { return false }
        let before = threadID.exchange(UInt(pthread_self()), ordering: .acquiringAndReleasing)
        defer { threadID.store(before, ordering: .releasing) }
        switch work {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .timer(let body): body()
        }
        return true
    }

    private var nextDeadline: Duration? { state.withLock { $0.timers.last?.deadline } }

    private func move(to time: Duration) {
        state.withLock { state in
            state.now = max(state.now, time)
            while let timer = state.timers.last, timer.deadline <= state.now {
                state.ready.append(.timer(timer.body))
                state.timers.removeLast()
            }
            let (seconds, attoseconds) = state.now.components
            state.hash.add(UInt64(bitPattern: seconds))
            state.hash.add(UInt64(bitPattern: attoseconds))
        }
    }

    private func failure(_ code: SimulationError.Code) -> SimulationError {
        SimulationError(code: code, seed: seed, time: now)
    }

    // MARK: Trace

    /// Adds a line to the history. It must not hold addresses or anything else that differs between processes.
    package func note(_ line: String) {
        state.withLock { state in
            if state.trace.count < Self.traceMax { state.trace.append(line) }
            state.hash.add(line)
        }
    }

    /// The lines noted so far.
    package var trace: [String] { state.withLock { $0.trace } }

    /// FNV-1a over every choice, every step of the clock and every line noted.
    package var hash: UInt64 { state.withLock { $0.hash.value } }
}
