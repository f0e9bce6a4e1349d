// Digests that servers send with a file, read strictly: what is not exactly right is not there.

/// The fields of a response that say what its bytes come to.
///
/// The older `Digest` (RFC 3230) is not read: of a part it means the whole for some servers and the part for others.
/// Trailers are not read either, because a hash that begins at the end would be a second read.
package enum DigestFields {
    /// Of the whole file, also in the answer that brings a part of it: RFC 9530.
    package static func ofWhole(_ head: TransportHead) -> ContentDigest? { member(of: "Repr-Digest", head) }

    /// Of the bytes of this very answer: RFC 9530.
    package static func ofContent(_ head: TransportHead) -> ContentDigest? { member(of: "Content-Digest", head) }

    /// What Amazon S3, and who speaks like it, sends with a whole object. A checksum of checksums ("-N" at its end, or
    /// the type COMPOSITE) is none of its bytes.
    package static func ofObject(_ head: TransportHead) -> ContentDigest? {
        if let type = head.value(of: "x-amz-checksum-type"), !ASCIIText.isEqual(type, "FULL_OBJECT") { return nil }
        return head.value(of: "x-amz-checksum-sha256").flatMap { Base64.decode($0) }.flatMap {
            ContentDigest(.sha256, $0)
        }
    }

    /// The best that the field has. Lines of one name are one dictionary.
    private static func member(of name: String, _ head: TransportHead) -> ContentDigest? {
        let lines = head.headers.filter { ASCIIText.isEqual($0.name, name) }.map(\.value)
        guard !lines.isEmpty, let members = ByteDictionary(lines.joined(separator: ","))?.members else { return nil }
        for algorithm in ContentDigest.Algorithm.allCases {
            if let bytes = members[algorithm.rawValue], let digest = ContentDigest(algorithm, bytes) { return digest }
        }
        return nil
    }
}

/// A dictionary of byte sequences, `sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:`: RFC 9651 as far as it is
/// needed. Parameters are passed over; a member of another type spoils all, as section 4.2 wants it for what is wrong.
struct ByteDictionary {
    private(set) var members: [String: [UInt8]] = [:]
    private var rest: Substring

    init?(_ text: String) {
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F || $0 == 9 }) else { return nil }
        rest = text.drop { $0 == " " }
        while !rest.isEmpty {
            guard let key = readKey(), take("="), let bytes = readBytes(), skipParameters() else { return nil }
            members[key] = bytes
            skipWhitespace()
            guard !rest.isEmpty else { break }
            guard take(",") else { return nil }
            skipWhitespace()
            // Nothing may follow a comma but a member.
            guard !rest.isEmpty else { return nil }
        }
    }

    private mutating func take(_ sign: Character) -> Bool {
        guard rest.first == sign else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func skipWhitespace() { rest = rest.drop { $0 == " " || $0 == "\t" } }

    private mutating func readKey() -> String? {
        guard let first = rest.utf8.first, isLower(first) || first == UInt8(ascii: "*") else { return nil }
        let key = rest.prefix { sign in
            sign.utf8.allSatisfy { isLower($0) || ASCIIText.isDigit($0) || [UInt8]("_-.*".utf8).contains($0) }
        }
        rest = rest[key.endIndex...]
        return String(key)
    }

    private func isLower(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }

    private mutating func readBytes() -> [UInt8]? {
        guard take(":") else { return nil }
        let text = rest.prefix { $0 != ":" }
        rest = rest[text.endIndex...]
        guard take(":") else { return nil }
        return Base64.decode(text)
    }

    private mutating func skipParameters() -> Bool {
        while take(";") {
            rest = rest.drop { $0 == " " }
            guard readKey() != nil else { return false }
            if take("="), !skipBareItem() { return false }
        }
        return true
    }

    private mutating func skipBareItem() -> Bool {
        if rest.first == "\"" { return skipString() }
        if rest.first == ":" { return readBytes() != nil }
        // Numbers, tokens, booleans and dates: nothing of theirs ends a member.
        let item = rest.prefix { sign in
            sign.utf8.allSatisfy { ASCIIText.isTokenByte($0) || [UInt8](":/?@".utf8).contains($0) }
        }
        rest = rest[item.endIndex...]
        return !item.isEmpty
    }

    private mutating func skipString() -> Bool {
        rest.removeFirst()
        while let sign = rest.popFirst() {
            switch sign {
            case "\"": return true
            case "\\": guard rest.popFirst() != nil else { return false }
            default: break
            }
        }
        return false
    }
}
