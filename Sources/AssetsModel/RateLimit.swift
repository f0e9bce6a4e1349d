// A limit of bytes a second, shared by those who receive.

/// Says when what was taken is paid for.
package struct RateLimit: Sendable {
    private var bytesPerSecond: Int64?
    /// When all that was taken so far has had its time.
    private var paidAt = Duration.zero

    /// nil for no limit.
    package init(bytesPerSecond: Int64? = nil) { self.bytesPerSecond = bytesPerSecond }

    /// Charges bytes; answers until when whoever took them has to wait, nil when they may go on at once.
    package mutating func take(_ count: Int64, at now: Duration) -> Duration? {
        guard let bytesPerSecond, bytesPerSecond > 0 else { return nil }
        // What was not used is not saved up, but for a moment in which pieces of different sizes even out.
        paidAt = max(paidAt, now - PolicyNumbers.rateSlack) + .seconds(count) / bytesPerSecond
        return paidAt > now ? paidAt : nil
    }
}
