// What the sample app and its extension say to servers that ask who asks.
internal import Foundation
package import FoundationNetworking

/// One answer to a challenge.
package struct FixtureAnswer: Codable, Hashable, Sendable {
    package enum Action: String, Codable, Sendable {
        /// The credential that the test's servers accept.
        case right
        case wrong
        /// `.useCredential` without one.
        case nothing
        case performDefault
        case cancel
        case reject
        /// Says nothing, for good.
        case silence
        /// Lets go of the completion handler.
        case drop
    }

    package var action: Action
    /// For all downloads, or for this one.
    package var isForSession = true

    package init(_ action: Action, isForSession: Bool = true) {
        self.action = action
        self.isForSession = isForSession
    }

    package static let user = "player-4711"
    /// Put together here, so that it does not stand in any file of the app.
    package static var password: String { String("77-dr0wssaP-arbeZ".reversed()) }

    /// What to return; nil for an answer that does not come.
    package var reply: (URLSession.AuthChallengeDisposition, URLCredential?)? {
        func credential(_ password: String) -> URLCredential {
            URLCredential(user: Self.user, password: password, persistence: isForSession ? .forSession : .none)
        }
        switch action {
        case .right: return (.useCredential, credential(Self.password))
        case .wrong: return (.useCredential, credential(String(Self.password.reversed())))
        case .nothing: return (.useCredential, nil)
        case .performDefault: return (.performDefaultHandling, nil)
        case .cancel: return (.cancelAuthenticationChallenge, nil)
        case .reject: return (.rejectProtectionSpace, nil)
        case .silence, .drop: return nil
        }
    }
}

extension FixtureRecord {
    /// A challenge as its object shows it.
    package struct Challenge: Codable, Hashable, Sendable {
        package var host: String
        package var port: Int
        package var isSecure: Bool
        package var realm: String?
        package var method: String
        package var failures: Int
        package var proposedUser: String?
        /// Of the response that failed.
        package var status: Int?
        package var offer: String?
    }

    package init(_ challenge: URLAuthenticationChallenge) {
        self.init("challenge")
        let space = challenge.protectionSpace
        let response = challenge.failureResponse as? HTTPURLResponse
        self.challenge = Challenge(
            host: space.host, port: space.port, isSecure: space.receivesCredentialSecurely, realm: space.realm,
            method: space.authenticationMethod, failures: challenge.previousFailureCount,
            proposedUser: challenge.proposedCredential?.user, status: response?.statusCode,
            offer: response?.value(forHTTPHeaderField: "WWW-Authenticate"))
    }
}
