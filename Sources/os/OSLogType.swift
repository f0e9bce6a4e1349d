// How much a message matters.

/// The level of a log message.
public struct OSLogType: RawRepresentable, Hashable, Sendable {
    /// The level's number, the same as on Apple's systems.
    public let rawValue: UInt8

    /// Makes a level of a number.
    public init(_ rawValue: UInt8) { self.rawValue = rawValue }
    /// Makes a level of a number.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// What one wants to know when something went wrong.
    public static let `default` = OSLogType(0x00)
    /// What helps, but is not needed.
    public static let info = OSLogType(0x01)
    /// What helps while the program is written.
    public static let debug = OSLogType(0x02)
    /// Something failed.
    public static let error = OSLogType(0x10)
    /// Something failed that cannot fail unless a program is wrong.
    public static let fault = OSLogType(0x11)
}

extension OSLogType {
    /// The priority in the journal.
    var priority: Int {
        switch self {
        case .fault: 2
        case .error: 3
        case .default: 5
        case .info: 6
        case .debug: 7
        // A level of the future is worth as much as the one that is used where none is named.
        default: 5
        }
    }

    /// The word on standard error.
    var name: String {
        switch self {
        case .fault: "fault"
        case .error: "error"
        case .info: "info"
        case .debug: "debug"
        default: "default"
        }
    }
}
