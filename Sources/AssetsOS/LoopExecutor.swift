// The seam between the service and time: production runs on `EventLoop`s, a simulation on one seeded executor.

/// Where actors of the service run, and the only source of timers for them.
///
/// Every actor has one as its executor and every task gets it as its executor preference, so nothing ever runs on the
/// global pool.
package protocol LoopExecutor: SerialExecutor, TaskExecutor {
    /// The process clock (CLOCK_MONOTONIC, or the simulation's): time since an arbitrary start; never goes back.
    var now: Duration { get }

    /// Calls `body` on this executor once `now` has reached `deadline`. May be called from any thread.
    func schedule(at deadline: Duration, _ body: @escaping @Sendable () -> Void) -> TimerToken

    /// Forgets a timer; no effect when it has fired.
    func cancel(_ timer: TimerToken)
}

/// Names one timer of one executor.
package struct TimerToken: Hashable, Sendable {
    package let number: UInt64
    package init(number: UInt64) { self.number = number }
}

extension LoopExecutor {
    /// Calls `body` on this executor after `delay`.
    package func schedule(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> TimerToken {
        schedule(at: now + delay, body)
    }

    /// Calls `body` on this executor as soon as it can, in the order of these calls.
    package func perform(_ body: @escaping @Sendable () -> Void) {
        _ = schedule(at: .zero, body)
    }

    /// Suspends the caller until `delay` has passed on this executor's clock.
    package func pause(for delay: Duration) async {
        await withCheckedContinuation { continuation in
            _ = schedule(after: delay) { continuation.resume() }
        }
    }
}
