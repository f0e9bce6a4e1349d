// The two clocks: a process clock for waits and runtime, a calendar clock for plans and the journal.
internal import Glibc

/// CLOCK_MONOTONIC as time since an arbitrary start.
package enum MonotonicClock {
    package static var now: Duration { read(CLOCK_MONOTONIC) }
}

/// What day and time it is: the kernel's, or a simulation's.
package protocol CalendarClock: Sendable {
    /// Time since 1970-01-01 00:00 UTC. Can be set by people, so nothing but dates may depend on it.
    var now: Duration { get }
}

/// CLOCK_REALTIME.
package struct SystemCalendarClock: CalendarClock {
    package init() {}
    package var now: Duration { read(CLOCK_REALTIME) }
}

private func read(_ clock: clockid_t) -> Duration {
    var time = timespec()
    clock_gettime(clock, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
