// Who a server wants to hear from: protection spaces, credentials, and what was offered.

/// A way of proving to an http server who asks.
package enum AuthenticationMethod: String, Hashable, Sendable, CaseIterable {
    case basic
    /// The password itself never leaves the device.
    case digest
}

/// The part of a server that one credential opens.
package struct ProtectionSpace: Hashable, Sendable {
    package var scheme: WebAddress.Scheme
    /// Lower case, without brackets.
    package var host: String
    package var port: Int
    /// As the server says it; for people, and part of the space's name.
    package var realm: String
    package var method: AuthenticationMethod

    package init(
        scheme: WebAddress.Scheme, host: String, port: Int, realm: String, method: AuthenticationMethod
    ) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.realm = realm
        self.method = method
    }

    package init(_ address: WebAddress, realm: String, method: AuthenticationMethod) {
        self.init(scheme: address.scheme, host: address.host, port: address.port, realm: realm, method: method)
    }

    /// The address is of the space's server. Nothing that belongs to the space goes anywhere else.
    package func isServer(of address: WebAddress) -> Bool {
        scheme == address.scheme && host == address.host && port == address.port
    }

    /// For the journal. The realm is the server's text: shortened, without control characters.
    package var shown: String {
        let realm = String(decoding: realm.utf8.filter { $0 >= 0x20 && $0 != 0x7F }.prefix(80), as: UTF8.self)
        return "\(host):\(port), \(method.rawValue)" + (realm.isEmpty ? "" : ", realm \"\(realm)\"")
    }
}

/// A name and a password. Whatever prints it prints neither.
package struct Credential: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    package var user: String
    package var password: String

    package init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// False for one that is larger than anybody's.
    package var isAcceptable: Bool {
        user.utf8.count <= PolicyNumbers.credentialMax && password.utf8.count <= PolicyNumbers.credentialMax
    }

    package var description: String { "a credential" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A credential and what it is for.
package struct SpaceCredential: Hashable, Sendable {
    package var space: ProtectionSpace
    package var credential: Credential
    /// The folder of the URL where it was accepted, with its slash: from there on down it is sent without being asked
    /// for. nil where it was not accepted yet.
    package var folder: String?

    package init(space: ProtectionSpace, credential: Credential, folder: String? = nil) {
        self.space = space
        self.credential = credential
        self.folder = folder
    }
}

/// What a 401 that nobody could answer by itself asks.
package struct ServerChallenge: Hashable, Sendable {
    /// The URL that answered; another than the download's after a redirect.
    package var url: String
    /// What the server accepts, the best first. Never empty.
    package var spaces: [ProtectionSpace]
    /// The fields WWW-Authenticate, shortened.
    package var offer: String
    /// What the server refused in this attempt.
    package var refused: [SpaceCredential]

    package init(url: String, spaces: [ProtectionSpace], offer: String, refused: [SpaceCredential]) {
        self.url = url
        self.spaces = spaces
        self.offer = offer
        self.refused = refused
    }
}

/// What is done about a challenge; the values of `URLSession.AuthChallengeDisposition`.
package enum ChallengeDisposition: Hashable, Sendable {
    /// nil: go on without a credential.
    case useCredential(Credential?, Persistence)
    case performDefaultHandling
    case cancel
    /// Ask for the next space that the server offers.
    case rejectProtectionSpace

    /// For how long a credential is of use.
    package enum Persistence: String, Hashable, Sendable {
        /// For this download.
        case download
        /// For all downloads of the app, as long as the service runs.
        case session
    }

    /// As it stands in the journal.
    package var shown: String {
        switch self {
        case .useCredential(.some, _): "credential given"
        case .useCredential(nil, _): "no credential given"
        case .performDefaultHandling: "default handling"
        case .cancel: "cancelled"
        case .rejectProtectionSpace: "protection space rejected"
        }
    }
}
