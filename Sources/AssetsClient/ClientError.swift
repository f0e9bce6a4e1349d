// Why a call to the service has no answer.

/// A refusal of the service, or the lack of one that answers.
package struct ClientError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        /// The service said no: a code to act on, what and why, and what to do next.
        case refused(code: Int, reason: String, remedy: String)
        /// Nobody answers; says why and what to do.
        case unreachable(String)
        /// The answer makes no sense, or the call does not; says which and what to do.
        case violation(String)
    }

    package var kind: Kind

    package init(_ kind: Kind) { self.kind = kind }

    package static func unreachable(_ text: String) -> ClientError { ClientError(.unreachable(text)) }
    package static func violation(_ text: String) -> ClientError { ClientError(.violation(text)) }

    package var description: String {
        switch kind {
        case .refused(_, let reason, let remedy): remedy.isEmpty ? reason : "\(reason); \(remedy)"
        case .unreachable(let text), .violation(let text): text
        }
    }
}
