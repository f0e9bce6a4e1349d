// Which hosts an extension may fetch from before the app was first opened: BADownloadDomainAllowList.

/// Host names, each exact or with the prefix wildcard `*.`.
///
/// `*.example.com` admits every host below example.com at any depth, not example.com itself. Names are compared without
/// regard to case and to a dot at the end. Ports play no part. Addresses are admitted only as they were written.
package struct DomainAllowList: Hashable, Sendable {
    /// Bytes of one host name, as in DNS.
    package static let hostLengthMax = 253
    /// Bytes of one part of a host name, as in DNS.
    package static let labelLengthMax = 63

    private let hosts: [String]
    private let parents: [String]

    /// Patterns that are not valid admit nothing.
    package init(_ patterns: [String]) {
        var hosts: [String] = []
        var parents: [String] = []
        for pattern in patterns where Self.isValid(pattern: pattern) {
            if pattern.hasPrefix("*.") {
                parents.append("." + Self.normalized(pattern.dropFirst(2)))
            } else {
                hosts.append(Self.normalized(pattern[...]))
            }
        }
        self.hosts = hosts
        self.parents = parents
    }

    /// Whether `host`, alone or with a port, is admitted.
    package func admits(_ host: String) -> Bool {
        let name = Self.normalized(Self.withoutPort(host))
        guard !name.isEmpty else { return false }
        if hosts.contains(name) { return true }
        if Self.isAddress(name) { return false }
        return Self.isHostName(name[...]) && parents.contains { name.utf8.count > $0.utf8.count && name.hasSuffix($0) }
    }

    /// Whether `pattern` is a host name, an address, or `*.` and a host name.
    package static func isValid(pattern: String) -> Bool {
        if pattern.hasPrefix("*.") {
            let parent = normalized(pattern.dropFirst(2))
            return isHostName(parent[...]) && !isAddress(parent)
        }
        let name = normalized(pattern[...])
        return isAddress(name) || isHostName(name[...])
    }

    private static func normalized(_ host: Substring) -> String {
        let name = host.lowercased()
        if name.hasPrefix("["), name.hasSuffix("]"), isIPv6(name.dropFirst().dropLast()) {
            return String(name.dropFirst().dropLast())
        }
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    /// Cuts `:443` off; the colons of an IPv6 address without brackets are not a port.
    private static func withoutPort(_ host: String) -> Substring {
        if host.hasPrefix("[") {
            guard let end = host.firstIndex(of: "]") else { return "" }
            let rest = host[host.index(after: end)...]
            return rest.isEmpty || isPort(rest) ? host[...end] : ""
        }
        guard let colon = host.firstIndex(of: ":"), colon == host.lastIndex(of: ":") else { return host[...] }
        return isPort(host[colon...]) ? host[..<colon] : ""
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.first == ":" && text.utf8.count <= 6 && text.dropFirst().utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Letters beyond ASCII are taken as given: the list and the request must spell an international name alike.
    private static func isHostName(_ name: Substring) -> Bool {
        guard !name.isEmpty, name.utf8.count <= hostLengthMax else { return false }
        return name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            !label.isEmpty && label.utf8.count <= labelLengthMax && label.first != "-" && label.last != "-"
                && label.unicodeScalars.allSatisfy(isHostScalar)
        }
    }

    private static func isHostScalar(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            return scalar.properties.isAlphabetic || scalar.properties.numericType != nil || scalar == "-"
                || scalar == "_"
        }
        return scalar.properties.isAlphabetic || scalar.properties.numericType != nil
            || scalar.properties.generalCategory == .nonspacingMark
            || scalar.properties.generalCategory == .spacingMark
    }

    /// Four numbers, or hexadecimal digits with colons.
    private static func isAddress(_ name: String) -> Bool {
        if name.contains(":") { return isIPv6(name[...]) }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { $0.utf8.count <= 3 && UInt8($0) != nil }
    }

    private static func isIPv6(_ name: Substring) -> Bool {
        name.utf8.count <= 45 && name.contains(":")
            && name.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x66).contains($0) || $0 == 0x3A || $0 == 0x2E
            }
    }
}
