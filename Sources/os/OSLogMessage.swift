// A message with values in it, of which some must not be seen.

/// The text of a log message, as a string literal with values.
public struct OSLogMessage: ExpressibleByStringInterpolation, Sendable {
    let parts: [LogPart]

    /// Takes a text without values.
    public init(stringLiteral value: String) { parts = [.text(value)] }

    /// Takes a text with values.
    public init(stringInterpolation: OSLogInterpolation) { parts = stringInterpolation.parts }

    init(parts: [LogPart]) { self.parts = parts }

    /// The message as it may be shown.
    func text(showsPrivate: Bool) -> String {
        parts.reduce(into: "") { $0 += $1.text(showsPrivate: showsPrivate) }
    }
}

/// Who may see a value of a message.
public struct OSLogPrivacy: Hashable, Sendable {
    /// How a hidden value is shown.
    public enum Mask: Hashable, Sendable {
        /// As a number that is the same for the same value while the process runs.
        case hash
        /// Not at all.
        case none
    }

    enum Rule { case auto, open, hidden, secret }

    let rule: Rule
    let mask: Mask

    /// Numbers and truth values are public, all others private.
    public static var auto: OSLogPrivacy { OSLogPrivacy(rule: .auto, mask: .none) }
    /// Shown to everybody.
    public static var `public`: OSLogPrivacy { OSLogPrivacy(rule: .open, mask: .none) }
    /// Shown on a terminal only.
    public static var `private`: OSLogPrivacy { OSLogPrivacy(rule: .hidden, mask: .none) }
    /// Never shown.
    public static var sensitive: OSLogPrivacy { OSLogPrivacy(rule: .secret, mask: .none) }

    /// Like ``auto``, with a mask where the value is hidden.
    public static func auto(mask: Mask) -> OSLogPrivacy { OSLogPrivacy(rule: .auto, mask: mask) }
    /// Like ``private``, with a mask where the value is hidden.
    public static func `private`(mask: Mask) -> OSLogPrivacy { OSLogPrivacy(rule: .hidden, mask: mask) }
    /// Like ``sensitive``, with a mask.
    public static func sensitive(mask: Mask) -> OSLogPrivacy { OSLogPrivacy(rule: .secret, mask: mask) }
}

/// A piece of a message.
enum LogPart: Hashable, Sendable {
    case text(String)
    case value(String, OSLogPrivacy)

    func text(showsPrivate: Bool) -> String {
        switch self {
        case .text(let text): return text
        case .value(let value, let privacy):
            let isShown =
                switch privacy.rule {
                case .auto, .hidden: showsPrivate
                case .open: true
                case .secret: false
                }
            if isShown { return value }
            switch privacy.mask {
            case .none: return "<private>"
            case .hash: return "<mask.hash: '\(String(UInt(bitPattern: value.hashValue), radix: 16))'>"
            }
        }
    }
}
