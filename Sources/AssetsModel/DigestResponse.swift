// The value of Authorization: Basic (RFC 7617) and Digest (RFC 7616, with qop=auth or the older form without).

/// A hash and whether it is taken once for a whole session.
package struct DigestAlgorithm: Hashable, Sendable {
    package var hash: DigestHash
    package var isSession: Bool
    /// As servers write it.
    package var name: String { (hash == .md5 ? "MD5" : "SHA-256") + (isSession ? "-sess" : "") }

    /// nil for one that is not known.
    package init?(_ name: String) {
        let known: [(String, DigestHash, Bool)] = [
            ("MD5", .md5, false), ("MD5-sess", .md5, true), ("SHA-256", .sha256, false),
            ("SHA-256-sess", .sha256, true),
        ]
        guard let found = known.first(where: { ASCIIText.isEqual($0.0, name) }) else { return nil }
        (hash, isSession) = (found.1, found.2)
    }
}

/// Makes values of Authorization.
package enum AuthorizationField {
    package static func basic(_ credential: Credential) -> String {
        "Basic " + Base64.encode(Array("\(credential.user):\(credential.password)".utf8))
    }

    /// One request that Digest answers for.
    package struct DigestRequest: Hashable, Sendable {
        package var method: String
        /// As in the request line.
        package var target: String
        /// Of ours, for as long as the nonce is used.
        package var clientNonce: String
        /// Counts the requests with this nonce, from 1.
        package var count: UInt32

        package init(method: String, target: String, clientNonce: String, count: UInt32) {
            self.method = method
            self.target = target
            self.clientNonce = clientNonce
            self.count = count
        }
    }

    package static func digest(
        _ credential: Credential, realm: String, _ offer: AuthenticationOffer.Digest, _ request: DigestRequest
    ) -> String {
        let hash = offer.algorithm.hash.hexadecimal
        var secret = hash("\(credential.user):\(realm):\(credential.password)")
        if offer.algorithm.isSession { secret = hash("\(secret):\(offer.nonce):\(request.clientNonce)") }
        let asked = hash("\(request.method):\(request.target)")
        let digits = String(request.count, radix: 16)
        let count = String(repeating: "0", count: 8 - digits.count) + digits
        let middle = offer.hasQuality ? "\(offer.nonce):\(count):\(request.clientNonce):auth" : offer.nonce
        var parts = [
            user(credential.user, realm: realm, offer), "realm=\(quoted(realm))", "nonce=\(quoted(offer.nonce))",
            "uri=\(quoted(request.target))", "algorithm=\(offer.algorithm.name)",
            "response=\"\(hash("\(secret):\(middle):\(asked)"))\"",
        ]
        if offer.hasQuality { parts += ["qop=auth", "nc=\(count)"] }
        if offer.hasQuality || offer.algorithm.isSession { parts.append("cnonce=\"\(request.clientNonce)\"") }
        if let opaque = offer.opaque { parts.append("opaque=\(quoted(opaque))") }
        if offer.hashesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    /// A name with control characters cannot stand in a quoted string; percent-encoded it can be sent.
    private static func user(_ user: String, realm: String, _ offer: AuthenticationOffer.Digest) -> String {
        if offer.hashesUser { return "username=\"\(offer.algorithm.hash.hexadecimal("\(user):\(realm)"))\"" }
        guard user.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return "username=\(quoted(user))" }
        let digits = Array("0123456789ABCDEF".utf8)
        let encoded = user.utf8.flatMap { byte -> [UInt8] in
            let isPlain = ASCIIText.isLetter(byte) || ASCIIText.isDigit(byte)
            return isPlain ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return "username*=UTF-8''" + String(decoding: encoded, as: UTF8.self)
    }

    private static func quoted(_ text: String) -> String {
        let escaped = text.utf8.flatMap { byte -> [UInt8] in
            byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? [UInt8(ascii: "\\"), byte] : [byte]
        }
        return "\"" + String(decoding: escaped, as: UTF8.self) + "\""
    }
}
