// NSPinnedDomains: which public keys an app's servers may have.
internal import AssetsModel

/// Reads the keys of identity pinning as Apple's App Transport Security has them, so that an app's list needs no change.
enum PinningKeys {
    private static let securityKey = "NSAppTransportSecurity"
    private static let domainsKey = "NSPinnedDomains"
    private static let subdomainsKey = "NSIncludesSubdomains"
    private static let leafKey = "NSPinnedLeafIdentities"
    private static let authorityKey = "NSPinnedCAIdentities"
    private static let hashKey = "SPKI-SHA256-BASE64"
    /// Hosts that one app may pin, and keys of each.
    private static let domainsMax = 100
    private static let keysMax = 32

    /// nil where nothing is pinned.
    static func domains(of app: PropertyList) throws(AssetsError) -> [PinnedDomain]? {
        guard let list = try app.dictionary(securityKey)?.dictionary(domainsKey) else { return nil }
        let names = list.names
        guard names.count <= domainsMax else { throw app.error(domainsKey, "names more than \(domainsMax) hosts") }
        var domains: [PinnedDomain] = []
        for name in names {
            guard DomainAllowList.isValid(pattern: name), !name.hasPrefix("*"), let domain = try list.dictionary(name)
            else {
                throw list.error(
                    printable(name.utf8), "is no host name",
                    remedy: "Use host names like cdn.example.com, without scheme, port and path")
            }
            domains.append(try self.domain(name, domain))
        }
        return domains
    }

    private static func domain(_ name: String, _ list: PropertyList) throws(AssetsError) -> PinnedDomain {
        guard !list.has(authorityKey) else {
            // Leaving it out would believe servers that the app does not believe.
            throw list.error(
                authorityKey, "pins authorities, which cannot be done here",
                remedy: "Pin the keys of the servers themselves with \(leafKey)")
        }
        guard let identities = try list.dictionaries(leafKey, limit: keysMax), !identities.isEmpty else {
            throw list.error(leafKey, "is missing or empty", remedy: "Add it as an array of dictionaries")
        }
        var keys: [String] = []
        for identity in identities {
            let key = try identity.requiredString(hashKey)
            guard PinnedDomain.isKey(key) else {
                throw identity.error(
                    hashKey, "is no SHA-256 in Base64", remedy: "Hash the key's SubjectPublicKeyInfo with SHA-256")
            }
            keys.append(key)
        }
        return PinnedDomain(
            host: name.lowercased(), includesSubdomains: try list.bool(subdomainsKey) ?? false, keys: keys)
    }
}
