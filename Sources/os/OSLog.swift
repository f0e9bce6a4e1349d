// Where a message comes from: a part of a program.

public import Foundation

/// A source of log messages: the subsystem, usually the bundle identifier, and a category within it.
public final class OSLog: NSObject, Sendable {
    /// A word that says what kind of messages a source gives.
    public struct Category: Hashable, Sendable {
        /// The word.
        public let rawValue: String

        /// Moments that a developer looks for.
        public static let pointsOfInterest = Category(rawValue: "PointsOfInterest")
        /// Messages that tools turn on.
        public static let dynamicTracing = Category(rawValue: "DynamicTracing")
        /// Messages that tools turn on, with the stack of the caller on Apple's systems.
        public static let dynamicStackTracing = Category(rawValue: "DynamicStackTracing")
    }

    /// The source that says nothing about itself.
    public static let `default` = OSLog(source: LogSource(subsystem: "", category: ""), isDisabled: false)
    /// The source whose messages go nowhere.
    public static let disabled = OSLog(source: LogSource(subsystem: "", category: ""), isDisabled: true)

    let source: LogSource
    let isDisabled: Bool

    private init(source: LogSource, isDisabled: Bool) {
        self.source = source
        self.isDisabled = isDisabled
    }

    /// Makes a source.
    ///
    /// - Parameters:
    ///   - subsystem: Usually the bundle identifier.
    ///   - category: A part of it.
    public convenience init(subsystem: String, category: String) {
        self.init(source: LogSource(subsystem: subsystem, category: category), isDisabled: false)
    }

    /// Makes a source of a well-known category.
    public convenience init(subsystem: String, category: Category) {
        self.init(subsystem: subsystem, category: category.rawValue)
    }

    /// Whether messages of a level go anywhere: all but those of ``disabled`` do. The journal keeps what it is set up for.
    public func isEnabled(type: OSLogType) -> Bool { !isDisabled }

    func write(_ message: OSLogMessage, _ type: OSLogType) {
        guard !isDisabled else { return }
        LogOutput.shared.write(message, type, from: source)
    }
}

/// Subsystem and category.
struct LogSource: Hashable, Sendable {
    var subsystem: String
    var category: String
}
