// One thread, one epoll: the executor of the service's actors in production.
internal import CLinux
internal import Glibc
internal import Synchronization

/// A thread with an epoll loop on which actors run, with timers and descriptor watches.
///
/// Idle it makes no system call and no wake-up.
package final class EventLoop: LoopExecutor {
    fileprivate struct State {
        var jobs: [UnownedJob] = []
        /// What is to be done at once, in this order.
        var bodies: [(token: TimerToken, body: @Sendable () -> Void)] = []
        var timers = TimerHeap()
        var nextTimer: UInt64 = 0
        var isStopping = false
        /// Set from the moment the loop decides to sleep until it is woken: only then a wake-up costs a system call.
        var sleeper: Alarm?
    }

    /// What ends the loop's sleep. Who hands something over holds it until the loop is woken: what was handed over may be the
    /// last that anybody does with this loop, which may be gone by then. Written to outside the lock, which the loop wants
    /// as soon as it is awake.
    fileprivate final class Alarm: Sendable {
        let descriptor: Descriptor

        init() throws(SystemCallError) {
            descriptor = Descriptor(
                owning: try check("eventfd") { eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK)) })
        }

        func ring() {
            var one: UInt64 = 1
            _ = write(descriptor.rawValue, &one, 8)
        }

        func silence() {
            var value: UInt64 = 0
            _ = read(descriptor.rawValue, &value, 8)
        }
    }

    /// Readiness of a watched descriptor.
    package struct Readiness: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        package static let read = Readiness(rawValue: 0x001)
        package static let write = Readiness(rawValue: 0x004)
        package static let error = Readiness(rawValue: 0x008)
        package static let hangUp = Readiness(rawValue: 0x010)
    }

    private final class Watch {
        let generation: UInt32
        let handler: (Readiness) -> Void
        init(generation: UInt32, handler: @escaping (Readiness) -> Void) {
            self.generation = generation
            self.handler = handler
        }
    }

    /// Events taken from the kernel in one call.
    private static let eventBatchMax = 64
    /// Batches of jobs that run before the kernel is asked for events again. One call of a client makes a dozen jobs,
    /// each queued by the one before: to ask between all of them would cost more than some of them do.
    private static let jobBatchesMax = 16

    /// How long the loop looks for more before it sleeps.
    private let watching: Duration
    private let epoll: Descriptor
    private let alarm: Alarm
    private let state = Guarded(State())
    private let threadID = Atomic<UInt>(0)
    // Touched on the loop's own thread only, which `watch` and `unwatch` check.
    private nonisolated(unsafe) var watches: [Int32: Watch] = [:]
    // The same.
    private nonisolated(unsafe) var nextGeneration: UInt32 = 1

    /// A loop without a thread: somebody calls `run()`.
    ///
    /// For `watching` after the last thing to do the thread asks for more instead of sleeping: who gets an
    /// answer often calls again at once, and to wake an idle processor takes longer than most calls.
    package init(watching: Duration = .zero) throws(SystemCallError) {
        self.watching = watching
        epoll = Descriptor(owning: try check("epoll_create1") { epoll_create1(Int32(EPOLL_CLOEXEC)) })
        alarm = try Alarm()
        var event = epoll_event(events: Readiness.read.rawValue, data: epoll_data(u64: Self.wakeupMark))
        let epollFD = epoll.rawValue
        let wakeFD = alarm.descriptor.rawValue
        try check("epoll_ctl") { epoll_ctl(epollFD, EPOLL_CTL_ADD, wakeFD, &event) }
    }

    /// A loop on a thread of its own, called `name` (at most 15 bytes).
    package static func start(name: String) throws(SystemCallError) -> EventLoop {
        let loop = try EventLoop()
        var thread = pthread_t()
        let retained = Unmanaged.passRetained(loop)
        let code = pthread_create(
            &thread, nil,
            { raw in
                guard let raw else { return nil }
                Unmanaged<EventLoop>.fromOpaque(raw).takeRetainedValue().run()
                return nil
            }, retained.toOpaque())
        guard code == 0 else {
            retained.release()
            throw SystemCallError(call: "pthread_create", number: code)
        }
        _ = name.withCString { clinux_thread_setname(thread, $0) }
        pthread_detach(thread)
        return loop
    }

    // MARK: Executor

    package func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        let sleeper = state.withLock { state in
            state.jobs.append(unowned)
            return state.sleeper.take()
        }
        sleeper?.ring()
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    package func checkIsolated() { precondition(isOnLoop, "not on this event loop's thread") }
    package func isIsolatingCurrentContext() -> Bool? { isOnLoop }
    package var isOnLoop: Bool { threadID.load(ordering: .acquiring) == UInt(pthread_self()) }

    // MARK: Time

    package var now: Duration { MonotonicClock.now }

    package func schedule(at deadline: Duration, _ body: @escaping @Sendable () -> Void) -> TimerToken {
        let (token, sleeper) = state.withLock { state in
            state.nextTimer += 1
            let token = TimerToken(number: state.nextTimer)
            if deadline <= .zero {
                state.bodies.append((token, body))
            } else if !state.timers.insert(.init(deadline: deadline, token: token, body: body)) {
                // Others are due before.
                return (token, nil as Alarm?)
            }
            return (token, state.sleeper.take())
        }
        sleeper?.ring()
        return token
    }

    package func cancel(_ timer: TimerToken) {
        state.withLock { state in
            state.timers.cancel(timer)
            state.bodies.removeAll { $0.token == timer }
        }
    }

    // MARK: Descriptors

    /// Calls `handler` on the loop whenever `fd` is ready. Call on the loop only.
    ///
    /// A second call for the same descriptor changes what is waited for. The caller keeps `fd` open until `unwatch`.
    package func watch(
        _ fd: Int32, for readiness: Readiness, _ handler: @escaping (Readiness) -> Void
    ) throws(SystemCallError) {
        checkIsolated()
        let generation = nextGeneration
        nextGeneration &+= 1
        let mark = UInt64(generation) << 32 | UInt64(UInt32(bitPattern: fd))
        var event = epoll_event(events: readiness.rawValue, data: epoll_data(u64: mark))
        let epollFD = epoll.rawValue
        let operation = watches[fd] == nil ? EPOLL_CTL_ADD : EPOLL_CTL_MOD
        try check("epoll_ctl") { epoll_ctl(epollFD, operation, fd, &event) }
        watches[fd] = Watch(generation: generation, handler: handler)
    }

    /// Stops watching. Call on the loop only, before `fd` is closed.
    package func unwatch(_ fd: Int32) {
        checkIsolated()
        guard watches.removeValue(forKey: fd) != nil else { return }
        _ = epoll_ctl(epoll.rawValue, EPOLL_CTL_DEL, fd, nil)
    }

    // MARK: The thread

    /// Ends `run()` once the queued jobs are done.
    package func stop() {
        let sleeper = state.withLock { state in
            state.isStopping = true
            return state.sleeper.take()
        }
        sleeper?.ring()
    }

    /// Runs jobs, timers and handlers on the calling thread until `stop()`.
    package func run() {
        threadID.store(UInt(pthread_self()), ordering: .releasing)
        var events = [epoll_event](repeating: epoll_event(), count: Self.eventBatchMax)
        var jobs: [UnownedJob] = []
        var bodies: [(token: TimerToken, body: @Sendable () -> Void)] = []
        var batches = 0
        var watchesUntil = Duration.zero
        while true {
            jobs.removeAll(keepingCapacity: true)
            bodies.removeAll(keepingCapacity: true)
            let (due, isStopping) = state.withLock { state in
                swap(&jobs, &state.jobs)
                swap(&bodies, &state.bodies)
                return (state.timers.isEmpty ? [] : state.timers.takeDue(at: MonotonicClock.now), state.isStopping)
            }
            for body in bodies { body.body() }
            for timer in due { timer.body() }
            for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
            let isIdle = jobs.isEmpty && bodies.isEmpty
            if isStopping && isIdle && due.isEmpty { return }
            batches += 1
            if !isIdle && batches < Self.jobBatchesMax { continue }
            batches = 0
            let isWatching = watching > .zero && MonotonicClock.now < watchesUntil
            let timeout = state.withLock { state -> Int32 in
                guard state.jobs.isEmpty, state.bodies.isEmpty, !state.isStopping, !isWatching else { return 0 }
                state.sleeper = alarm
                return state.timers.nextDeadline.map { Self.milliseconds(until: $0) } ?? -1
            }
            let count = epoll_wait(epoll.rawValue, &events, Int32(events.count), timeout)
            // What handlers enqueue from here on is seen before the next wait.
            state.withLock { $0.sleeper = nil }
            if watching > .zero, count > 0 { watchesUntil = MonotonicClock.now + watching }
            for index in 0..<max(0, Int(count)) { dispatch(events[index]) }
        }
    }

    private static let wakeupMark = UInt64.max

    private func dispatch(_ event: epoll_event) {
        let mark = event.data.u64
        if mark == Self.wakeupMark {
            return alarm.silence()
        }
        // A handler before this one may have closed the descriptor and opened another of the same number.
        guard let watch = watches[Int32(bitPattern: UInt32(truncatingIfNeeded: mark))],
            watch.generation == UInt32(truncatingIfNeeded: mark >> 32)
        else { return }
        watch.handler(Readiness(rawValue: event.events))
    }

    /// Rounded up, so that a timer is due when the wait ends.
    private static func milliseconds(until deadline: Duration) -> Int32 {
        let left = deadline - MonotonicClock.now
        guard left > .zero else { return 0 }
        let (seconds, attoseconds) = left.components
        guard seconds < Int64(Int32.max / 1000) else { return Int32.max }
        return Int32(seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
