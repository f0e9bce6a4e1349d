// Whether the calendar was set back: what waits until a time would wait for so much longer.

/// Compares the calendar with the clock of the process, which nobody sets.
///
/// The calendar also goes forward while the machine sleeps; then what waits is due, as it should be.
package struct CalendarWatch: Hashable, Sendable {
    /// The calendar, when the process's clock was at zero.
    private var origin: Duration?

    package init() {}

    /// How far the calendar was set back since the last look; nil for corrections that change little.
    ///
    /// - Parameters:
    ///   - calendar: Time since 1970.
    ///   - process: Of the clock that stands still while the machine sleeps.
    ///   - witness: Another time that the calendar once had.
    package mutating func setBack(
        calendar: Duration, process: Duration, witness: Duration? = nil
    ) -> Duration? {
        let now = calendar - process
        let before = max(origin ?? now, (witness ?? calendar) - process)
        guard before - now > PolicyNumbers.calendarCorrectionMax else {
            origin = before
            return nil
        }
        origin = now
        return before - now
    }
}
