// Scheme and host of a URL, as far as rules need them.

/// Where a request goes.
package struct RequestOrigin: Hashable, Sendable {
    /// Lower case, without brackets and port.
    package let host: String
    package let isHTTPS: Bool

    /// Throws unless the URL is https (or http on a loopback host where `allowsLoopbackHTTP`).
    package init(url: String, allowsLoopbackHTTP: Bool) throws(AssetsError) {
        func refuse(_ why: String) -> AssetsError {
            AssetsError(.downloadFailedToStart, "\(url.prefix(200)): \(why)", remedy: "use an https URL")
        }
        guard let mark = url.utf8.firstRange(of: "://".utf8) else { throw refuse("not an absolute URL") }
        guard url.utf8.allSatisfy({ $0 > 32 && $0 != 127 }) else { throw refuse("holds spaces or control characters") }
        let scheme = url[..<mark.lowerBound].lowercased()
        let rest = url[mark.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" && $0 != "\\" }
        let hostAndPort = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        let host = Self.host(of: hostAndPort)
        guard !host.isEmpty else { throw refuse("names no host") }
        switch scheme {
        case "https": isHTTPS = true
        case "http" where allowsLoopbackHTTP && Self.isLoopback(host): isHTTPS = false
        case "http": throw refuse("only https is allowed")
        default: throw refuse("the scheme \(scheme.prefix(20)) is not supported")
        }
        self.host = host
    }

    /// True for names and addresses that never leave the machine.
    package static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
            || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (48...57).contains($0) })
    }

    private static func host(of hostAndPort: Substring) -> String {
        if hostAndPort.hasPrefix("["), let end = hostAndPort.firstIndex(of: "]") {
            return hostAndPort[hostAndPort.index(after: hostAndPort.startIndex)..<end].lowercased()
        }
        return hostAndPort.prefix { $0 != ":" }.lowercased()
    }
}
