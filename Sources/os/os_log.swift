// Logging functions of older sources.

/// Writes a message of the default level.
public func os_log(_ message: OSLogMessage) { OSLog.default.write(message, .default) }

/// Writes a message.
///
/// - Parameters:
///   - level: How much it matters.
///   - log: Where it comes from.
public func os_log(_ level: OSLogType, log: OSLog = .default, _ message: OSLogMessage) { log.write(message, level) }

/// Writes a message with values in the places of a format.
///
/// Numbers are public unless the format says `%{private}d`, all others private unless it says `%{public}@`.
///
/// - Parameters:
///   - message: The format: `%@`, and the conversions of `printf`.
///   - dso: Not used; here so that sources which give it compile.
///   - log: Where the message comes from.
///   - type: How much it matters.
///   - args: The values. Any kind is taken, because on Linux strings and objects are no C arguments.
@_disfavoredOverload
public func os_log(
    _ message: StaticString, dso: UnsafeRawPointer? = nil, log: OSLog = .default, type: OSLogType = .default,
    _ args: Any?...
) {
    log.write(OSLogMessage(parts: LogFormat(message.description).parts(args)), type)
}

/// Writes a message with values in the places of a format.
///
/// - Parameters:
///   - type: How much it matters.
///   - dso: Not used; here so that sources which give it compile.
///   - log: Where the message comes from.
///   - message: The format: `%@`, and the conversions of `printf`.
///   - args: The values.
@_disfavoredOverload
public func os_log(
    _ type: OSLogType, dso: UnsafeRawPointer? = nil, log: OSLog = .default, _ message: StaticString, _ args: Any?...
) {
    log.write(OSLogMessage(parts: LogFormat(message.description).parts(args)), type)
}
