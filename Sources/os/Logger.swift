// The logger of today's Swift sources.

/// Writes messages to the journal of the system, or to standard error where there is none.
///
/// Values in a message are private unless they are numbers or said to be public: the journal then shows `<private>`. Where
/// messages go to a terminal, private values are shown, as a debugger shows them on Apple's systems.
public struct Logger: Sendable {
    private let log: OSLog

    /// Makes a logger that says nothing about itself.
    public init() { log = .default }

    /// Makes a logger.
    ///
    /// - Parameters:
    ///   - subsystem: Usually the bundle identifier.
    ///   - category: A part of it.
    public init(subsystem: String, category: String) { log = OSLog(subsystem: subsystem, category: category) }

    /// Makes a logger of a source.
    public init(_ logObj: OSLog) { log = logObj }

    /// Writes a message of the default level.
    public func log(_ message: OSLogMessage) { log.write(message, .default) }
    /// Writes a message.
    public func log(level: OSLogType, _ message: OSLogMessage) { log.write(message, level) }
    /// Writes a message of the level `debug`.
    public func trace(_ message: OSLogMessage) { log.write(message, .debug) }
    /// Writes a message of the level `debug`.
    public func debug(_ message: OSLogMessage) { log.write(message, .debug) }
    /// Writes a message of the level `info`.
    public func info(_ message: OSLogMessage) { log.write(message, .info) }
    /// Writes a message of the default level.
    public func notice(_ message: OSLogMessage) { log.write(message, .default) }
    /// Writes a message of the level `error`.
    public func warning(_ message: OSLogMessage) { log.write(message, .error) }
    /// Writes a message of the level `error`.
    public func error(_ message: OSLogMessage) { log.write(message, .error) }
    /// Writes a message of the level `fault`.
    public func critical(_ message: OSLogMessage) { log.write(message, .fault) }
    /// Writes a message of the level `fault`.
    public func fault(_ message: OSLogMessage) { log.write(message, .fault) }
}
