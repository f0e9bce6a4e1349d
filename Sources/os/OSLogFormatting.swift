// How values look in a log message.

internal import Foundation

/// Widths of a column are bounded: a message is a line, not a page.
private let columnsMax = 1024

/// Where a value stands in its column.
public struct OSLogStringAlignment: Hashable, Sendable {
    private enum Side { case none, left, right }

    private let side: Side
    private let columns: Int

    /// The value as it is.
    public static var none: OSLogStringAlignment { OSLogStringAlignment(side: .none, columns: 0) }

    /// The value, filled with spaces at its left.
    public static func right(columns: Int) -> OSLogStringAlignment {
        OSLogStringAlignment(side: .right, columns: columns)
    }

    /// The value, filled with spaces at its right.
    public static func left(columns: Int) -> OSLogStringAlignment {
        OSLogStringAlignment(side: .left, columns: columns)
    }

    func applied(to text: String) -> String {
        let missing = min(columns, columnsMax) - text.count
        guard missing > 0 else { return text }
        let fill = String(repeating: " ", count: missing)
        return switch side {
        case .none: text
        case .left: text + fill
        case .right: fill + text
        }
    }
}

/// How a whole number looks.
public struct OSLogIntegerFormatting: Hashable, Sendable {
    var radix = 10
    var hasSign = false
    var prefix = ""
    var isUppercase = false
    var digitsMin = 0

    /// Digits 0 to 9.
    public static var decimal: OSLogIntegerFormatting { OSLogIntegerFormatting() }
    /// Digits 0 to f.
    public static var hex: OSLogIntegerFormatting { hex() }
    /// Digits 0 to 7.
    public static var octal: OSLogIntegerFormatting { octal() }

    /// Digits 0 to 9, at least so many.
    public static func decimal(explicitPositiveSign: Bool = false, minDigits: Int = 0) -> OSLogIntegerFormatting {
        OSLogIntegerFormatting(hasSign: explicitPositiveSign, digitsMin: minDigits)
    }

    /// Digits 0 to f, at least so many.
    public static func hex(
        explicitPositiveSign: Bool = false, includePrefix: Bool = false, uppercase: Bool = false, minDigits: Int = 0
    ) -> OSLogIntegerFormatting {
        OSLogIntegerFormatting(
            radix: 16, hasSign: explicitPositiveSign, prefix: includePrefix ? "0x" : "", isUppercase: uppercase,
            digitsMin: minDigits)
    }

    /// Digits 0 to 7, at least so many.
    public static func octal(
        explicitPositiveSign: Bool = false, includePrefix: Bool = false, minDigits: Int = 0
    ) -> OSLogIntegerFormatting {
        OSLogIntegerFormatting(
            radix: 8, hasSign: explicitPositiveSign, prefix: includePrefix ? "0o" : "", digitsMin: minDigits)
    }

    func text(of number: some FixedWidthInteger) -> String {
        let digits = String(number.magnitude, radix: radix, uppercase: isUppercase)
        let zeros = String(repeating: "0", count: max(0, min(digitsMin, columnsMax) - digits.count))
        return (number < 0 ? "-" : hasSign ? "+" : "") + prefix + zeros + digits
    }
}

/// How a number looks.
public struct OSLogFloatFormatting: Hashable, Sendable {
    private var conversion = "f"
    private var precision = 6
    private var hasSign = false

    /// With six digits after the point.
    public static var fixed: OSLogFloatFormatting { fixed() }
    /// As a number of base 16 with an exponent.
    public static var hex: OSLogFloatFormatting { OSLogFloatFormatting(conversion: "a", precision: -1) }
    /// With an exponent.
    public static var exponential: OSLogFloatFormatting { exponential() }
    /// With an exponent where that is shorter.
    public static var hybrid: OSLogFloatFormatting { hybrid() }

    /// With so many digits after the point.
    public static func fixed(
        precision: Int = 6, explicitPositiveSign: Bool = false, uppercase: Bool = false
    ) -> OSLogFloatFormatting {
        OSLogFloatFormatting(conversion: uppercase ? "F" : "f", precision: precision, hasSign: explicitPositiveSign)
    }

    /// With an exponent, and so many digits after the point.
    public static func exponential(
        precision: Int = 6, explicitPositiveSign: Bool = false, uppercase: Bool = false
    ) -> OSLogFloatFormatting {
        OSLogFloatFormatting(conversion: uppercase ? "E" : "e", precision: precision, hasSign: explicitPositiveSign)
    }

    /// With an exponent where that is shorter, and so many digits.
    public static func hybrid(
        precision: Int = 6, explicitPositiveSign: Bool = false, uppercase: Bool = false
    ) -> OSLogFloatFormatting {
        OSLogFloatFormatting(conversion: uppercase ? "G" : "g", precision: precision, hasSign: explicitPositiveSign)
    }

    func text(of number: Double) -> String {
        let digits = precision < 0 ? "" : ".\(min(precision, columnsMax))"
        return String(format: "%" + (hasSign ? "+" : "") + digits + conversion, number)
    }
}

/// Words for truth.
public enum OSLogBoolFormat: Hashable, Sendable {
    /// `true` and `false`.
    case truth
    /// `yes` and `no`.
    case answer

    func text(of value: Bool) -> String {
        switch self {
        case .truth: value ? "true" : "false"
        case .answer: value ? "yes" : "no"
        }
    }
}

/// What a whole number stands for.
public enum OSLogIntExtendedFormat: Hashable, Sendable {
    /// Bytes, in steps of 1000.
    case byteCount
    /// Bytes, in steps of 1024.
    case byteCountIEC
    /// Bits a second, in steps of 1000.
    case bitrate
    /// Bits a second, in steps of 1024.
    case bitrateIEC

    func text(of number: Int) -> String {
        switch self {
        case .byteCount: Self.scaled(number, 1000, ["B", "kB", "MB", "GB", "TB", "PB"])
        case .byteCountIEC: Self.scaled(number, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
        case .bitrate: Self.scaled(number, 1000, ["bps", "kbps", "Mbps", "Gbps", "Tbps", "Pbps"])
        case .bitrateIEC: Self.scaled(number, 1024, ["bps", "Kibps", "Mibps", "Gibps", "Tibps", "Pibps"])
        }
    }

    private static func scaled(_ number: Int, _ step: Double, _ units: [String]) -> String {
        var rest = Double(number)
        var index = 0
        while abs(rest) >= step, index < units.count - 1 {
            rest /= step
            index += 1
        }
        return index == 0 ? "\(number) \(units[0])" : String(format: "%.2f ", rest) + units[index]
    }
}

/// What a whole number of 32 bits stands for.
public enum OSLogInt32ExtendedFormat: Hashable, Sendable {
    /// An error of a system call.
    case darwinErrno
    /// A signal.
    case darwinSignal
    /// An address of the internet, in the order of bytes of the network.
    case ipv4Address

    func text(of number: Int32) -> String {
        switch self {
        case .darwinErrno: "[\(number): \(String(cString: strerror(number)))]"
        case .darwinSignal: "[\(number): \(strsignal(number).map { String(cString: $0) } ?? "unknown")]"
        case .ipv4Address:
            withUnsafeBytes(of: number) { bytes in bytes.map { "\($0)" }.joined(separator: ".") }
        }
    }
}
