// What one attempt of a download does about 401: which credential goes where, and when somebody has to be asked.
//
// Digests are computed here and not in libcurl: this way every 401 is seen, a credential is tied to the server that it is
// for by the same checks as redirects, and a simulation runs the same rules as a real network.

/// The rule of one attempt.
package struct TransferAuthentication: Sendable {
    /// What a 401 leads to.
    package enum Step: Hashable, Sendable {
        /// Ask once more; `field` has an answer now.
        case repeatRequest
        case ask(ServerChallenge)
        /// The server offers nothing that is understood; their names.
        case notSupported(String)
    }

    /// What is being sent.
    private struct Active: Sendable {
        var entry: SpaceCredential
        /// nil for Basic.
        var digest: AuthenticationOffer.Digest?
        var count: UInt32 = 0
        var staleNonces = 0
    }

    /// Bytes of the offer that are passed on for the app to look at.
    private static let offerMax = 4 << 10

    /// Credentials that may be tried, each once.
    private var untried: [SpaceCredential]
    private let clientNonce: String
    private var active: Active?
    private var refused: [SpaceCredential] = []

    /// - Parameters:
    ///   - credentials: What is known for this download, whatever the server.
    ///   - clientNonce: Random, of characters that need no quoting.
    package init(credentials: [SpaceCredential] = [], clientNonce: String = "0") {
        untried = credentials
        self.clientNonce = clientNonce
    }

    /// The credential that goes with the requests now.
    package var sent: SpaceCredential? { active?.entry }

    /// What to send with a request.
    package mutating func field(for address: WebAddress, method: String) -> HeaderField? {
        if let space = active?.entry.space, !space.isServer(of: address) { active = nil }
        if active == nil { anticipate(at: address) }
        guard let value = value(for: address, method: method) else { return nil }
        return HeaderField(name: "Authorization", value: value)
    }

    /// The request at `address` was answered with 401.
    package mutating func unauthorized(_ head: TransportHead, at address: WebAddress) -> Step {
        let offers = AuthenticationOffer.offers(in: head)
        guard !offers.isEmpty else { return .notSupported(AuthenticationOffer.names(in: head)) }
        let spaces = offers.map { ProtectionSpace(address, realm: $0.realm, method: $0.method) }
        if let before = active {
            if let offer = freshNonce(in: offers, spaces, before) {
                active?.digest = offer
                active?.count = 0
                active?.staleNonces += 1
                return .repeatRequest
            }
            // Of a space that is not offered here nothing is known but that it was the wrong one.
            if spaces.contains(before.entry.space) { refused.append(before.entry) }
            active = nil
        }
        for (offer, space) in zip(offers, spaces) {
            guard let index = untried.firstIndex(where: { $0.space == space }) else { continue }
            active = Active(entry: untried.remove(at: index), digest: offer.digest)
            return .repeatRequest
        }
        let offer = head.headers.filter { ASCIIText.isEqual($0.name, "WWW-Authenticate") }.map(\.value)
        let text = offer.joined(separator: ", ").utf8.prefix(Self.offerMax)
        return .ask(
            ServerChallenge(
                url: address.url, spaces: spaces, offer: String(decoding: text, as: UTF8.self), refused: refused))
    }

    /// Basic is sent at once to where it was accepted before, which saves a request for each file.
    private mutating func anticipate(at address: WebAddress) {
        let index = untried.firstIndex { entry in
            entry.space.method == .basic && entry.space.isServer(of: address)
                && entry.folder.map { address.path.hasPrefix($0) } ?? false
        }
        if let index { active = Active(entry: untried.remove(at: index)) }
    }

    private mutating func value(for address: WebAddress, method: String) -> String? {
        guard let now = active else { return nil }
        guard let digest = now.digest else { return AuthorizationField.basic(now.entry.credential) }
        // A nonce is used a few times in an attempt, not four billion times.
        active?.count = now.count &+ 1
        let request = AuthorizationField.DigestRequest(
            method: method, target: address.target, clientNonce: clientNonce, count: now.count &+ 1)
        return AuthorizationField.digest(now.entry.credential, realm: now.entry.space.realm, digest, request)
    }

    /// The same credential with another nonce, if only the nonce was wrong.
    private func freshNonce(
        in offers: [AuthenticationOffer], _ spaces: [ProtectionSpace], _ before: Active
    ) -> AuthenticationOffer.Digest? {
        guard let old = before.digest, before.staleNonces < PolicyNumbers.staleNoncesMax,
            let index = spaces.firstIndex(of: before.entry.space), let new = offers[index].digest, new.isStale,
            new.nonce != old.nonce
        else { return nil }
        return new
    }
}

extension WebAddress {
    /// The path up to its last slash.
    package var folder: String { String(path[...(path.lastIndex(of: "/") ?? path.startIndex)]) }
}
