// Which public keys a server may have: NSPinnedDomains of the app's property list.

/// A host whose certificates are believed only with one of these keys, beside everything else that is checked.
package struct PinnedDomain: Hashable, Sendable, Codable {
    /// Lower case.
    package var host: String
    /// Hosts below it, however deep, are meant as well.
    package var includesSubdomains: Bool
    /// SHA-256 of the public key of the server's own certificate (its SubjectPublicKeyInfo), in Base64. Never empty.
    package var keys: [String]

    package init(host: String, includesSubdomains: Bool, keys: [String]) {
        self.host = host
        self.includesSubdomains = includesSubdomains
        self.keys = keys
    }

    /// 32 bytes in Base64.
    package static func isKey(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 44, bytes[43] == UInt8(ascii: "=") else { return false }
        return bytes[..<43].allSatisfy { byte in
            ASCIIText.isLetter(byte) || ASCIIText.isDigit(byte) || byte == UInt8(ascii: "+")
                || byte == UInt8(ascii: "/")
        }
    }

    /// The keys that a host must have one of; none where nothing is pinned. The closest domain decides.
    package static func keys(of host: String, in domains: [PinnedDomain]) -> [String] {
        let meant = domains.filter { domain in
            domain.host == host || domain.includesSubdomains && host.hasSuffix("." + domain.host)
        }
        return meant.max { $0.host.utf8.count < $1.host.utf8.count }?.keys ?? []
    }
}
