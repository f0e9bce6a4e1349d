// URLs of http and https, taken apart once; what goes to the network is put together again from the checked parts, so
// that no other reader of the same text can come to another host.

/// An absolute http or https URL without credentials and fragment.
package struct WebAddress: Hashable, Sendable {
    package enum Scheme: String, Hashable, Sendable {
        case http
        case https
        fileprivate var standardPort: Int { self == .https ? 443 : 80 }
    }

    package enum Problem: Error, Hashable, Sendable {
        /// Not a URL with a host.
        case malformed
        /// A URL of something else than http.
        case foreignScheme
    }

    package let scheme: Scheme
    /// Lower case, without brackets and without a last dot.
    package let host: String
    package let port: Int
    /// Begins with a slash.
    package let path: String
    /// With its question mark; empty when there is none.
    package let query: String

    /// Reads an absolute URL.
    package init(_ text: String) throws(Problem) {
        let (scheme, rest) = try Self.splitScheme(text)
        guard let scheme else { throw .malformed }
        try self.init(scheme: scheme, afterScheme: rest)
    }

    private init(scheme: Scheme, afterScheme rest: Substring) throws(Problem) {
        guard rest.utf8.starts(with: "//".utf8) else { throw .malformed }
        let authority = Substring(rest.utf8.dropFirst(2).prefix { !Self.endsAuthority($0) })
        let reference = Substring(rest[authority.endIndex...].utf8.prefix { $0 != UInt8(ascii: "#") })
        guard reference.utf8.first != UInt8(ascii: "\\") else { throw .malformed }
        (host, port) = try Self.readAuthority(authority, scheme)
        self.scheme = scheme
        let path = Substring(reference.utf8.prefix { $0 != UInt8(ascii: "?") })
        // Without dots: else libcurl would take them out, and ask for another path than a digest is made of.
        self.path = path.isEmpty ? "/" : Self.removingDots(try Self.encode(path))
        query = try Self.encode(reference[path.endIndex...])
    }

    private init(scheme: Scheme, host: String, port: Int, path: String, query: String) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path
        self.query = query
    }

    /// What a Location field means in a response from here.
    package func resolving(_ reference: String) throws(Problem) -> WebAddress {
        let (scheme, rest) = try Self.splitScheme(reference)
        if let scheme { return try WebAddress(scheme: scheme, afterScheme: rest) }
        if rest.utf8.starts(with: "//".utf8) { return try WebAddress(scheme: self.scheme, afterScheme: rest) }
        // By bytes: a mark before or after a character would make another one of it.
        let relative = Substring(rest.utf8.prefix { $0 != UInt8(ascii: "#") })
        let relativePath = Substring(relative.utf8.prefix { $0 != UInt8(ascii: "?") })
        let relativeQuery = try Self.encode(relative[relativePath.endIndex...])
        if relativePath.isEmpty {
            return with(path: path, query: relativeQuery.isEmpty ? query : relativeQuery)
        }
        let encoded = try Self.encode(relativePath)
        if encoded.hasPrefix("/") { return with(path: Self.removingDots(encoded), query: relativeQuery) }
        let folder = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
        return with(path: Self.removingDots(folder + "/" + encoded), query: relativeQuery)
    }

    private func with(path: String, query: String) -> WebAddress {
        WebAddress(scheme: scheme, host: host, port: port, path: path, query: query)
    }

    package var url: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "\(scheme.rawValue)://\(name)\(port == scheme.standardPort ? "" : ":\(port)")\(path)\(query)"
    }

    /// What stands in the request line.
    package var target: String { path + query }

    package func isSameOrigin(as other: WebAddress) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }
}

extension WebAddress {
    /// nil for a relative reference.
    private static func splitScheme(_ text: String) throws(Problem) -> (Scheme?, Substring) {
        let name = Substring(text.utf8.prefix(while: isSchemeByte))
        let rest = text.utf8[name.endIndex...]
        guard let first = name.utf8.first, ASCIIText.isLetter(first), rest.first == UInt8(ascii: ":") else {
            return (nil, text[...])
        }
        guard let scheme = Scheme(rawValue: name.lowercased()) else { throw .foreignScheme }
        return (scheme, Substring(rest.dropFirst()))
    }

    private static func isSchemeByte(_ byte: UInt8) -> Bool {
        ASCIIText.isLetter(byte) || ASCIIText.isDigit(byte) || isOneOf(byte, "+-.")
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool { isOneOf(byte, "/?#\\") }

    private static func isOneOf(_ byte: UInt8, _ bytes: StaticString) -> Bool {
        unsafe UnsafeBufferPointer(start: bytes.utf8Start, count: bytes.utf8CodeUnitCount).contains(byte)
    }

    /// Credentials before an @ are left out: they would go to whoever the text names.
    private static func readAuthority(_ authority: Substring, _ scheme: Scheme) throws(Problem) -> (String, Int) {
        var place = authority.utf8
        if let end = place.lastIndex(of: UInt8(ascii: "@")) { place = place[place.index(after: end)...] }
        var host: Substring.UTF8View
        let rest: Substring.UTF8View
        if place.first == UInt8(ascii: "[") {
            guard let end = place.firstIndex(of: UInt8(ascii: "]")) else { throw .malformed }
            host = place[..<end].dropFirst()
            rest = place[end...].dropFirst()
            guard host.contains(colon), host.allSatisfy({ isHexadecimal($0) || isOneOf($0, ":.") }) else {
                throw .malformed
            }
        } else {
            host = place.prefix { $0 != colon }
            rest = place[host.endIndex...]
            if host.last == dot { host = host.dropLast() }
            guard isNamed(host), host.count <= 253, host.allSatisfy(isHostByte) else { throw .malformed }
        }
        let name = Substring(host).lowercased()
        guard let mark = rest.first else { return (name, scheme.standardPort) }
        let digits = Substring(rest.dropFirst())
        guard mark == colon else { throw .malformed }
        if digits.isEmpty { return (name, scheme.standardPort) }
        guard let port = ASCIIText.number(digits), (1...65535).contains(port) else { throw .malformed }
        return (name, Int(port))
    }

    private static let colon = UInt8(ascii: ":")
    private static let dot = UInt8(ascii: ".")

    /// Between two dots, and before the first, stands a name.
    private static func isNamed(_ host: Substring.UTF8View) -> Bool {
        var last = dot
        for byte in host {
            if byte == dot, last == dot { return false }
            last = byte
        }
        return last != dot
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        ASCIIText.isLetter(byte) || ASCIIText.isDigit(byte) || isOneOf(byte, "-._")
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        ASCIIText.isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(ASCIIText.lower(byte))
    }

    private static func isEncoded(_ byte: UInt8) -> Bool { byte >= 0x80 || isOneOf(byte, " \"<>\\^`{|}") }
    private static let digits = [UInt8]("0123456789ABCDEF".utf8)

    /// Percent-encodes what may not stand in a request line; control characters are nobody's URL.
    private static func encode(_ text: Substring) throws(Problem) -> String {
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { throw .malformed }
        guard text.utf8.contains(where: isEncoded) else { return String(text) }
        var result: [UInt8] = []
        for byte in text.utf8 {
            if isEncoded(byte) {
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Section 5.2.4 of RFC 3986 for a path that begins with a slash.
    private static func removingDots(_ path: String) -> String {
        // Few have any.
        guard zip(path.utf8, path.utf8.dropFirst()).contains(where: { $0 == (UInt8(ascii: "/"), UInt8(ascii: ".")) })
        else {
            return path
        }
        var kept: [Substring] = []
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for segment in segments {
            switch segment {
            case ".": continue
            case "..": _ = kept.popLast()
            default: kept.append(segment)
            }
        }
        if segments.last == "." || segments.last == ".." { kept.append("") }
        return "/" + kept.joined(separator: "/")
    }
}
