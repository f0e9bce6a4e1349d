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
/// Whatever is ready at one moment may run in any order: jobs, also those of one actor, and timers of the same deadline.
/// Only what `perform` is given keeps its order, lane by lane: see `SimulatedLane`. The same seed gives the same history
/// in every process; `hash` proves it.
package final class SimulatedLoop: LoopExecutor {
    /// Jobs in one run.
    package static let jobsMax = 20_000_000
    /// Lines of the trace that are kept; the hash goes on beyond.
    package static let traceMax = 100_000

    /// A job or the body of a timer, and the lane it runs on; nil for the loop itself.
    fileprivate struct Work {
        enum Kind {
            case job(UnownedJob)
            case timer(@Sendable () -> Void)
        }
        let kind: Kind
        let lane: SimulatedLane?
    }

    fileprivate struct Timer {
        let deadline: Duration
        let token: TimerToken
        let work: Work
    }

    fileprivate struct State {
        var now: Duration
        var ready: [Work] = []
        /// What is due at once, lane by lane, in the order it was asked for.
        var queues: [Int: [(token: TimerToken, work: Work)]] = [:]
        /// Latest first, so that the next one is removed from the end; equal deadlines in the order they were made.
        var timers: [Timer] = []
        var nextTimer: UInt64 = 0
        var nextLane = 1
        /// The lane that runs; 0 is the loop itself.
        var runningLane = 0
        var picks: SeededSequence
        var trace: [String] = []
        var noteCount = 0
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

    package func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job), on: nil) }
    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
    package func checkIsolated() { precondition(isOnLoop, "not on this simulation's thread") }
    package func isIsolatingCurrentContext() -> Bool? { isOnLoop }

    /// True inside `run` and `drain`, on the thread that called them.
    package var isOnLoop: Bool { threadID.load(ordering: .acquiring) == UInt(pthread_self()) }

    // MARK: Lanes

    /// Another executor of this simulation.
    package func makeLane() -> SimulatedLane {
        let number = state.withLock { state in
            defer { state.nextLane += 1 }
            return state.nextLane
        }
        return SimulatedLane(number: number, of: self)
    }

    func isOn(_ lane: SimulatedLane) -> Bool { isOnLoop && state.withLock { $0.runningLane == lane.number } }

    /// Runs `body` between two steps of the simulation, as if a lane ran it.
    func enter<Value>(_ lane: SimulatedLane, _ body: () -> Value) -> Value { enter(lane: lane.number, body) }

    private func enter<Value>(lane: Int, _ body: () -> Value) -> Value {
        let thread = threadID.exchange(UInt(pthread_self()), ordering: .acquiringAndReleasing)
        let before = state.withLock { state in
            defer { state.runningLane = lane }
            return state.runningLane
        }
        defer {
            state.withLock { $0.runningLane = before }
            threadID.store(thread, ordering: .releasing)
        }
        return body()
    }

    func enqueue(_ job: UnownedJob, on lane: SimulatedLane?) {
        state.withLock { $0.ready.append(Work(kind: .job(job), lane: lane)) }
    }

    /// Takes away everything that a lane would still do.
    func removeWork(of lane: SimulatedLane) {
        let removed = state.withLock { state in
            let queued = (state.queues.removeValue(forKey: lane.number) ?? []).map(\.work)
            let removed = state.ready.filter { $0.lane === lane } + queued
            let timers = state.timers.filter { $0.work.lane === lane }
            state.ready.removeAll { $0.lane === lane }
            state.timers.removeAll { $0.work.lane === lane }
            return removed + timers.map(\.work)
        }
        Graveyard.bury(removed)
    }

    // MARK: Time

    package var now: Duration { state.withLock { $0.now } }

    package func schedule(at deadline: Duration, _ body: @escaping @Sendable () -> Void) -> TimerToken {
        schedule(at: deadline, on: nil, body)
    }

    func schedule(
        at deadline: Duration, on lane: SimulatedLane?, _ body: @escaping @Sendable () -> Void
    ) -> TimerToken {
        state.withLock { state in
            state.nextTimer += 1
            let token = TimerToken(number: state.nextTimer)
            let work = Work(kind: .timer(body), lane: lane)
            if deadline <= state.now {
                state.queues[lane?.number ?? 0, default: []].append((token, work))
            } else {
                let index = state.timers.firstIndex { $0.deadline <= deadline } ?? state.timers.count
                state.timers.insert(Timer(deadline: deadline, token: token, work: work), at: index)
            }
            return token
        }
    }

    package func cancel(_ timer: TimerToken) {
        state.withLock { state in
            state.timers.removeAll { $0.token == timer }
            for lane in state.queues.keys { state.queues[lane]?.removeAll { $0.token == timer } }
        }
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
        guard let work = state.withLock({ $0.pick() }) else { return false }
        enter(lane: work.lane?.number ?? 0) {
            switch work.kind {
            case .job(let job):
                job.runSynchronously(on: work.lane?.asUnownedSerialExecutor() ?? asUnownedSerialExecutor())
            case .timer(let body): body()
            }
        }
        return true
    }

    private var nextDeadline: Duration? { state.withLock { $0.timers.last?.deadline } }

    private func move(to time: Duration) {
        state.withLock { state in
            state.now = max(state.now, time)
            while let timer = state.timers.last, timer.deadline <= state.now {
                state.ready.append(timer.work)
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
            state.noteCount += 1
            state.hash.add(line)
        }
    }

    /// The lines noted so far.
    package var trace: [String] { state.withLock { $0.trace } }
    /// How many lines were noted, also beyond those kept.
    package var noteCount: Int { state.withLock { $0.noteCount } }

    /// FNV-1a over every choice, every step of the clock and every line noted.
    package var hash: UInt64 { state.withLock { $0.hash.value } }
}

extension SimulatedLoop.State {
    /// What runs next, by the seed: something that is ready, or the first in the queue of a lane.
    fileprivate mutating func pick() -> SimulatedLoop.Work? {
        let lanes = queues.keys.filter { queues[$0]?.isEmpty == false }.sorted()
        guard !ready.isEmpty || !lanes.isEmpty else { return nil }
        let index = picks.next(below: ready.count + lanes.count)
        hash.add(UInt64(index))
        if index < ready.count { return ready.remove(at: index) }
        return queues[lanes[index - ready.count]]?.removeFirst().work
    }
}
