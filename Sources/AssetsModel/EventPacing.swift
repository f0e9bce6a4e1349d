// When a process is told of its downloads.

/// Says how long events wait, so that many of them reach a process together.
package struct EventPacing: Hashable, Sendable {
    /// When events went out last, in process time.
    private var sentAt: Duration?

    package init() {}

    package mutating func sent(at now: Duration) { sentAt = now }

    /// Until when an event may wait for others, in process time; nil when it goes out at once, with all that wait.
    ///
    /// - Parameter isAnswered: Somebody waits for its answer, or for itself.
    package func deadline(isAnswered: Bool, at now: Duration) -> Duration? {
        guard !isAnswered, let sentAt, now < sentAt + PolicyNumbers.reportTime else { return nil }
        return sentAt + PolicyNumbers.reportTime
    }
}
