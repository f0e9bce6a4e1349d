// The loops of a simulated process: they share thread, clock and seed, and end when the process is killed.
package import AssetsOS

/// Stands for one event loop of a process: the service's own, or that of store, transfers, disk or unpacking.
///
/// Its jobs run in any order; only `perform` keeps its order, as on an event loop.
package final class SimulatedLane: LoopExecutor {
    let number: Int
    /// Nil once the lane has died.
    private let loop: Guarded<SimulatedLoop?>

    init(number: Int, of loop: SimulatedLoop) {
        self.number = number
        self.loop = Guarded(loop)
    }

    private var living: SimulatedLoop? { loop.withLock { $0 } }

    // MARK: Executor

    package func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        guard let loop = living else { return Graveyard.bury([unowned]) }
        loop.enqueue(unowned, on: self)
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
    package func checkIsolated() { precondition(isOnLane, "not on this lane of the simulation") }
    package func isIsolatingCurrentContext() -> Bool? { isOnLane }

    /// What is left of a dead lane may be touched from anywhere: nothing else does.
    private var isOnLane: Bool { living?.isOn(self) ?? true }

    // MARK: Time

    package var now: Duration { living?.now ?? .zero }

    package func schedule(at deadline: Duration, _ body: @escaping @Sendable () -> Void) -> TimerToken {
        guard let loop = living else {
            Graveyard.bury([body])
            return TimerToken(number: 0)
        }
        return loop.schedule(at: deadline, on: self, body)
    }

    package func cancel(_ timer: TimerToken) { living?.cancel(timer) }

    // MARK: Death

    /// Nothing of it runs any more.
    func die() {
        guard let loop = living else { return }
        self.loop.withLock { $0 = nil }
        loop.removeWork(of: self)
    }
}

/// What dead processes left undone. It is never run and never freed: freeing what waits for a reply that will not come
/// is a misuse, which the runtime would report.
enum Graveyard {
    private static let bodies = Guarded<[any Sendable]>([])
    static func bury(_ bodies: [any Sendable]) { Self.bodies.withLock { $0 += bodies } }
}
