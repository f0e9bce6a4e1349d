package import AssetsOS
// What goes wrong before the server serves; requests that fail are answered, not thrown.
internal import COpenSSL

/// A failure with a sentence that names the thing and the next step.
package struct DevelopmentServerError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// The folder to serve cannot be opened.
        case folder
        /// No socket could be opened on the port.
        case port
        /// Certificate or key could not be made, read or used.
        case certificate
        /// A fault rule that cannot be understood.
        case fault
    }

    package var code: Code
    /// One sentence without a full stop.
    package var reason: String
    package var cause: SystemCallError?

    package init(_ code: Code, _ reason: String, cause: SystemCallError? = nil) {
        self.code = code
        self.reason = reason
        self.cause = cause
    }

    package var description: String { cause.map { "\(reason): \($0)" } ?? reason }

    /// Takes OpenSSL's words from this thread's queue and empties it.
    static func openSSL(_ reason: String) -> DevelopmentServerError {
        let number = ERR_get_error()
        ERR_clear_error()
        guard number != 0 else { return DevelopmentServerError(.certificate, reason) }
        var text = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(number, &text, text.count)
        let words = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return DevelopmentServerError(.certificate, "\(reason): \(words)")
    }
}
