// Numbers, times and foreign text as people read them.
internal import Glibc

package enum Format {
    /// Decimal units, two or three digits that matter: `812 bytes`, `1.4 kB`, `61 MB`, `2.35 GB`.
    package static func bytes(_ count: Int64) -> String {
        if count < 1000 { return count == 1 ? "1 byte" : "\(max(0, count)) bytes" }
        let units = ["kB", "MB", "GB", "TB", "PB", "EB"]
        var unit = 0
        var size: Int64 = 1000
        // Rounded to whole units, 999 999 bytes would be 1000 kB: then the next unit is the right one.
        while unit + 1 < units.count && count >= size * 1000 - size / 2 {
            unit += 1
            size *= 1000
        }
        let fine = unit >= 2
        let whole = count / size
        let digits: Int64 = whole < 10 ? (fine ? 100 : 10) : (fine && whole < 100 ? 10 : 1)
        return "\(decimal(count, per: size, digits: digits)) \(units[unit])"
    }

    /// `0.4 s`, `12.3 s`, `2 min 05 s`, `3 h 04 min`, `5 d 02 h`.
    package static func duration(_ duration: Duration) -> String {
        let (seconds, attoseconds) = max(duration, .zero).components
        let tenths = attoseconds / 100_000_000_000_000_000
        if seconds < 60 { return "\(seconds).\(tenths) s" }
        if seconds < 3600 { return "\(seconds / 60) min \(twoDigits(seconds % 60)) s" }
        if seconds < 86400 { return "\(seconds / 3600) h \(twoDigits(seconds / 60 % 60)) min" }
        return "\(seconds / 86400) d \(twoDigits(seconds / 3600 % 24)) h"
    }

    /// Minutes and seconds, as on a clock: `0:07`, `12:30`, `1:02:00`.
    package static func clock(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        let minutes = seconds / 60
        if minutes < 60 { return "\(minutes):\(twoDigits(seconds % 60))" }
        return "\(minutes / 60):\(twoDigits(minutes % 60)):\(twoDigits(seconds % 60))"
    }

    /// Calendar seconds since 1970 in the local time zone, `2026-11-21 03:59:04`; a dash for 0, which means never.
    package static func date(_ seconds: Double) -> String {
        guard seconds > 0, seconds.isFinite, seconds < 1e11 else { return "-" }
        var time = time_t(seconds)
        var parts = tm()
        guard localtime_r(&time, &parts) != nil else { return "-" }
        let day = [parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday].map { twoDigits(Int64($0)) }
        let hour = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { twoDigits(Int64($0)) }
        return day.joined(separator: "-") + " " + hour.joined(separator: ":")
    }

    /// Whole percent of 0...1, rounded down, so that 100 % means done.
    package static func percent(_ fraction: Double) -> String {
        let bounded = fraction.isFinite ? min(1, max(0, fraction)) : 0
        return "\(Int(bounded * 100)) %"
    }

    private static func decimal(_ count: Int64, per size: Int64, digits: Int64) -> String {
        let step = size / digits
        let scaled = count / step + (count % step * 2 >= step ? 1 : 0)
        if digits == 1 { return String(scaled) }
        let fraction = String(scaled % digits)
        let zeros = String(repeating: "0", count: (digits == 100 ? 2 : 1) - fraction.count)
        return "\(scaled / digits).\(zeros)\(fraction)"
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : String(number) }
}

/// Text from elsewhere on a terminal: what an app or server supplies must not move the cursor or change its colours.
package enum TerminalText {
    /// The text with every control and direction-changing character shown as `\u{..}`.
    package static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isHarmful) else { return text }
        var shown = ""
        for scalar in text.unicodeScalars {
            if isHarmful(scalar) {
                shown += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            } else {
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    /// Columns that a text takes.
    package static func width(_ text: String) -> Int {
        text.reduce(0) { $0 + width($1) }
    }

    /// The text, shortened to `columns` with an ellipsis where it is longer.
    package static func shortened(_ text: String, to columns: Int) -> String {
        if width(text) <= columns { return text }
        var left = columns - 1
        var kept = ""
        for character in text {
            left -= width(character)
            if left < 0 { break }
            kept.append(character)
        }
        return columns > 0 ? kept + "…" : ""
    }

    private static func width(_ character: Character) -> Int {
        guard let first = character.unicodeScalars.first else { return 0 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: return wide.contains { $0.contains(first.value) } ? 2 : 1
        }
    }

    /// Where East Asian and emoji characters of two columns lie.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
        0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
    ]

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
