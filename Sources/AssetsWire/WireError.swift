// What can be wrong with a message.

/// A message that cannot be understood or made.
package enum WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Not a varlink message: the peer does not speak our protocol.
    case malformed
    /// The parameter of that name is missing or has the wrong type.
    case invalidParameter(String)
    /// A value has no form in JSON.
    case unencodable
    /// The message would be longer than `WireLimit.messageMax`.
    case tooLong

    package var description: String {
        switch self {
        case .malformed: "the message is not a varlink message"
        case .invalidParameter(let name): "the parameter \(name) is missing or has the wrong type"
        case .unencodable: "a value of the message has no form in JSON"
        case .tooLong: "the message is longer than \(WireLimit.messageMax) bytes"
        }
    }
}
