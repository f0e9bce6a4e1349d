// Challenges as the manager and extension interfaces share them.

/// A server asks who asks. scheme is "https" or "http", method "basic" or "digest". url is what answered, another than the
/// download's after a redirect; offer is its WWW-Authenticate. previous_failures counts the credentials that the server has
/// refused this download; proposed_user and proposed_password are the last of them.
package struct WireChallenge: Codable, Hashable, Sendable {
    package var scheme: String
    package var host: String
    package var port: Int64
    package var realm: String
    package var method: String
    package var url: String
    package var offer: String
    package var previousFailures: Int64
    package var proposedUser: String?
    package var proposedPassword: String?

    package init(
        scheme: String, host: String, port: Int64, realm: String, method: String, url: String, offer: String,
        previousFailures: Int64, proposedUser: String? = nil, proposedPassword: String? = nil
    ) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.realm = realm
        self.method = method
        self.url = url
        self.offer = offer
        self.previousFailures = previousFailures
        self.proposedUser = proposedUser
        self.proposedPassword = proposedPassword
    }

    private enum CodingKeys: String, CodingKey {
        case scheme
        case host
        case port
        case realm
        case method
        case url
        case offer
        case previousFailures = "previous_failures"
        case proposedUser = "proposed_user"
        case proposedPassword = "proposed_password"
    }
}

/// The words that answer a challenge.
package enum WireDisposition {
    package static let useCredential = "use-credential"
    package static let performDefaultHandling = "default"
    package static let cancel = "cancel"
    package static let reject = "reject"
    package static let notImplemented = "not-implemented"
}
