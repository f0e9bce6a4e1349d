// WWW-Authenticate, read strictly: what is not exactly right is not there. The text is a server's.

/// One scheme that a server offers, with its parameters.
package struct AuthenticationOffer: Hashable, Sendable {
    /// What Digest needs to know of the server.
    package struct Digest: Hashable, Sendable {
        package var nonce: String
        package var opaque: String?
        package var algorithm: DigestAlgorithm
        /// The server knows "auth"; an old one has no qop at all.
        package var hasQuality: Bool
        /// Only the nonce was out of date, not the credential wrong.
        package var isStale: Bool
        /// The name is to be sent hashed.
        package var hashesUser: Bool
    }

    package var realm: String
    /// nil for Basic.
    package var digest: Digest?

    package var method: AuthenticationMethod { digest == nil ? .basic : .digest }

    /// What is understood of a response, the strongest first; of several for one space the strongest one.
    package static func offers(in head: TransportHead) -> [AuthenticationOffer] {
        var offers: [AuthenticationOffer] = []
        for field in head.headers where ASCIIText.isEqual(field.name, "WWW-Authenticate") {
            guard field.value.utf8.count <= PolicyNumbers.authenticateFieldMax else { continue }
            for scheme in AuthenticateReader.schemes(in: field.value) {
                guard offers.count < PolicyNumbers.authenticationOffersMax else { break }
                if let offer = AuthenticationOffer(scheme) { offers.append(offer) }
            }
        }
        let ordered = AuthenticationOffer.strengths.flatMap { strength in offers.filter { $0.strength == strength } }
        return ordered.reduce(into: []) { kept, offer in
            if !kept.contains(where: { $0.method == offer.method && $0.realm == offer.realm }) { kept.append(offer) }
        }
    }

    /// All schemes that a response names, for people: "Bearer, Negotiate".
    package static func names(in head: TransportHead) -> String {
        let fields = head.headers.filter {
            ASCIIText.isEqual($0.name, "WWW-Authenticate") && $0.value.utf8.count <= PolicyNumbers.authenticateFieldMax
        }
        let names = fields.flatMap { AuthenticateReader.schemes(in: $0.value).map { String($0.name.prefix(20)) } }
        return names.prefix(PolicyNumbers.authenticationOffersMax).joined(separator: ", ")
    }

    private static let strengths = [3, 2, 1]
    private var strength: Int { digest.map { $0.algorithm.hash == .sha256 ? 3 : 2 } ?? 1 }

    private init?(_ scheme: AuthenticateReader.Scheme) {
        let realm = scheme.parameter("realm")
        guard (realm ?? "").utf8.count <= PolicyNumbers.realmMax else { return nil }
        self.realm = realm ?? ""
        if ASCIIText.isEqual(scheme.name, "Basic") {
            // There are servers that leave the realm out.
            guard !scheme.hasBlob else { return nil }
            return
        }
        guard ASCIIText.isEqual(scheme.name, "Digest"), realm != nil, let digest = Digest(scheme) else { return nil }
        self.digest = digest
    }
}

extension AuthenticationOffer.Digest {
    fileprivate init?(_ scheme: AuthenticateReader.Scheme) {
        guard let nonce = scheme.parameter("nonce"), !nonce.isEmpty,
            let algorithm = DigestAlgorithm(scheme.parameter("algorithm") ?? "MD5")
        else { return nil }
        self.nonce = nonce
        self.algorithm = algorithm
        opaque = scheme.parameter("opaque")
        isStale = ASCIIText.isEqual(scheme.parameter("stale") ?? "", "true")
        hashesUser = ASCIIText.isEqual(scheme.parameter("userhash") ?? "", "true")
        guard let quality = scheme.parameter("qop") else {
            hasQuality = false
            return
        }
        let values = quality.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        // auth-int alone would need the body's digest; nobody asks for it.
        guard values.contains(where: { ASCIIText.isEqual($0, "auth") }) else { return nil }
        hasQuality = true
    }
}

/// The grammar of the field: section 11.6.1 of RFC 9110.
struct AuthenticateReader {
    struct Scheme {
        var name: String
        /// In their order; a name that comes twice with different values counts as missing.
        var parameters: [(name: String, value: String)] = []
        /// A blob stands instead of parameters.
        var hasBlob = false

        func parameter(_ name: String) -> String? {
            let found = parameters.filter { ASCIIText.isEqual($0.name, name) }.map(\.value)
            guard let first = found.first, found.allSatisfy({ $0 == first }) else { return nil }
            return first
        }
    }

    /// Schemes before the first mistake; what comes after it is not read, since nobody knows where it would begin.
    static func schemes(in text: String) -> [Scheme] {
        var reader = AuthenticateReader(bytes: Array(text.utf8))
        var schemes: [Scheme] = []
        while schemes.count < PolicyNumbers.authenticationOffersMax, let scheme = reader.scheme() {
            schemes.append(scheme)
            guard !reader.isBroken else {
                schemes.removeLast()
                break
            }
        }
        return schemes
    }

    private let bytes: [UInt8]
    private var place = 0
    private var isBroken = false

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) {
        while let byte = next, isSkipped(byte) { place += 1 }
    }

    private mutating func skipSpaces() { skip { $0 == 0x20 || $0 == 0x09 } }
    private mutating func skipCommas() { skip { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") } }

    private mutating func token() -> String? {
        let start = place
        skip { ASCIIText.isTokenByte($0) }
        return place == start ? nil : String(decoding: bytes[start..<place], as: UTF8.self)
    }

    private mutating func scheme() -> Scheme? {
        skipCommas()
        guard let name = token() else { return nil }
        var scheme = Scheme(name: name)
        guard let byte = next else { return scheme }
        if byte == UInt8(ascii: ",") { return scheme }
        guard byte == 0x20 || byte == 0x09 else {
            isBroken = true
            return scheme
        }
        skipSpaces()
        if skipToken68() {
            scheme.hasBlob = true
            return scheme
        }
        while scheme.parameters.count < PolicyNumbers.authenticationParametersMax {
            let start = place
            skipCommas()
            guard let parameter = parameter() else {
                // The name of the next scheme, or the end.
                if !isBroken { place = start }
                return scheme
            }
            scheme.parameters.append(parameter)
        }
        isBroken = true
        return scheme
    }

    /// The blob of schemes such as Negotiate.
    private mutating func skipToken68() -> Bool {
        let start = place
        skip { ASCIIText.isLetter($0) || ASCIIText.isDigit($0) || Array("-._~+/".utf8).contains($0) }
        guard place > start else { return false }
        skip { $0 == UInt8(ascii: "=") }
        skipSpaces()
        if next == nil || next == UInt8(ascii: ",") { return true }
        place = start
        return false
    }

    /// name = token or quoted string; nil when a scheme's name stands here.
    private mutating func parameter() -> (name: String, value: String)? {
        guard let name = token() else {
            if next != nil { isBroken = true }
            return nil
        }
        skipSpaces()
        guard next == UInt8(ascii: "=") else { return nil }
        place += 1
        skipSpaces()
        let value = next == UInt8(ascii: "\"") ? quoted() : token()
        skipSpaces()
        guard let value, next == nil || next == UInt8(ascii: ",") else {
            isBroken = true
            return nil
        }
        return (name, value)
    }

    private mutating func quoted() -> String? {
        place += 1
        var content: [UInt8] = []
        while let byte = next {
            place += 1
            switch byte {
            case UInt8(ascii: "\""):
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = next, Self.isText(escaped) else { return nil }
                content.append(escaped)
                place += 1
            default:
                guard Self.isText(byte) else { return nil }
                content.append(byte)
            }
        }
        return nil
    }

    private static func isText(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }
}
