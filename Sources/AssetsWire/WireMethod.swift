// One type for each method of Interfaces/: its name, what it takes and what it answers.

/// A method of a varlink interface.
package protocol WireMethod: SendableMetatype {
    associatedtype Parameters: Codable & Sendable
    associatedtype Reply: Codable & Sendable
    /// Interface and method, as in `org.backgroundassets.Device.Describe`.
    static var name: String { get }
}

/// No parameters, or no values in the reply.
package struct Nothing: Codable, Hashable, Sendable {
    package init() {}
}

/// The parameters of the error `Refused` of both our interfaces.
package struct Refusal: Codable, Hashable, Sendable {
    package var code: Int
    package var reason: String
    package var remedy: String
    package init(code: Int, reason: String, remedy: String) {
        self.code = code
        self.reason = reason
        self.remedy = remedy
    }
}

/// Limits of the wire, on both sides.
package enum WireLimit {
    /// Bytes of one message, without its closing NUL.
    package static let messageMax = 1 << 20
    /// Items of one page of a list.
    package static let pageMax = 200
    /// Bytes that wait to be sent on one connection; above it a stream is held back.
    package static let sendBufferMax = 256 << 10
    /// Time a peer may take nothing before it is cut off.
    package static let sendStallMax = Duration.seconds(10)
    /// Connections of one process, and of all.
    package static let connectionsOfClientMax = 8
    package static let connectionsMax = 256
}
