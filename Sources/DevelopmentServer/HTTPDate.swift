// Dates of HTTP (RFC 9110, IMF-fixdate): for Last-Modified and Date, independent of the process's locale.

/// Formats seconds since 1970.
enum HTTPDate {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    static func format(_ seconds: Int64) -> String {
        // Files may carry any time; years before 1970 and after 9999 have no such form.
        let seconds = min(max(seconds, 0), 253_402_300_799)
        let day = seconds / 86_400
        let second = seconds % 86_400
        let (year, month, dayOfMonth) = civil(day)
        return "\(days[Int(day % 7)]), \(two(dayOfMonth)) \(months[Int(month - 1)]) \(year) "
            + "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60)) GMT"
    }

    private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// Days since 1970 as a date of the Gregorian calendar; years are counted from March, so that leap days come last.
    private static func civil(_ day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}
