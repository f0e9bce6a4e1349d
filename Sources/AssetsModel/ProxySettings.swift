// Whether a request goes through a proxy, as curl and most programs of Linux understand the variables for it.

/// A proxy server. `description` never has its credentials.
package struct ProxyServer: Hashable, Sendable, CustomStringConvertible {
    package enum Scheme: String, Hashable, Sendable, CaseIterable {
        /// CONNECT, over a plain or a secure connection.
        case http, https
        /// With names looked up here, or by the proxy.
        case socks5, socks5h
    }

    /// Where nothing is said, as curl has it.
    private static let standardPort = 1080

    package var scheme: Scheme
    package var host: String
    package var port: Int
    package var user: String?
    package var password: String?

    /// Reads `[scheme://][user[:password]@]host[:port][/]`; nil for anything else.
    package init?(_ text: String) {
        guard text.utf8.count <= PolicyNumbers.proxyMax, let (scheme, rest) = Self.splitScheme(text) else {
            return nil
        }
        var authority = rest
        if authority.hasSuffix("/") { authority = authority.dropLast() }
        guard !authority.contains(where: { "/?#\\".contains($0) }) else { return nil }
        if let end = authority.lastIndex(of: "@") {
            let halves = authority[..<end].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let user = Self.decoded(halves[0]), let password = Self.decoded(halves.count > 1 ? halves[1] : "")
            else { return nil }
            (self.user, self.password) = (user, password)
            authority = authority[authority.index(after: end)...]
        }
        // Whoever names no port gets another one from each scheme.
        guard let plain = try? WebAddress("http://\(authority)"), let secure = try? WebAddress("https://\(authority)")
        else { return nil }
        self.scheme = scheme
        host = plain.host
        port = plain.port == secure.port ? plain.port : scheme == .https ? secure.port : Self.standardPort
    }

    private static func splitScheme(_ text: String) -> (Scheme, Substring)? {
        let halves = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2 else { return (.http, text[...]) }
        return Scheme(rawValue: halves[0].lowercased()).map { ($0, halves[1]) }
    }

    /// Without percent signs; nil where one stands for nothing, or for a control character.
    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard digits.utf8.count == 2, let value = UInt8(digits, radix: 16) else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Where it is, for people and for libcurl.
    package var description: String {
        "\(scheme.rawValue)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }
}

/// How one request gets to its server.
package enum ProxyChoice: Hashable, Sendable {
    case direct
    case through(ProxyServer)
    /// A proxy was named that cannot be one, by this variable or setting: to go past it could be what was not wanted.
    case unusable(String)
}

/// The proxies of a device.
package struct ProxySettings: Hashable, Sendable {
    /// The words of the setting `proxy` that name no proxy.
    package static let fromEnvironment = "environment"
    package static let none = "none"

    /// The variables that are read. `HTTP_PROXY` is not: where requests of others are served it would be theirs.
    package static let variables = [
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    ]

    private struct Named: Hashable, Sendable {
        var name: String
        var server: ProxyServer?
    }
    private var plain: Named?
    private var secure: Named?
    private var exceptions: ProxyExceptions

    /// No proxies.
    package init() { exceptions = ProxyExceptions("") }

    /// - Parameters:
    ///   - environment: The service's variables.
    ///   - setting: What the device's user has set; it goes before the variables.
    package init(environment: [String: String], setting: String = Self.fromEnvironment) {
        func named(_ names: [String]) -> Named? {
            for name in names {
                guard let text = environment[name], !text.isEmpty else { continue }
                return Named(name: name, server: ProxyServer(text))
            }
            return nil
        }
        exceptions = ProxyExceptions(environment["no_proxy"] ?? environment["NO_PROXY"] ?? "")
        switch setting {
        case Self.none: break
        case Self.fromEnvironment:
            plain = named(["http_proxy", "all_proxy", "ALL_PROXY"])
            secure = named(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
        default:
            plain = Named(name: "the setting proxy", server: ProxyServer(setting))
            secure = plain
        }
    }

    /// The word or URL of a setting; nil for what is neither.
    package static func setting(_ text: String) -> String? {
        text == none || text == fromEnvironment || ProxyServer(text) != nil ? text : nil
    }

    /// Never a proxy to this machine itself.
    package func choice(for address: WebAddress) -> ProxyChoice {
        guard !RequestOrigin.isLoopback(address.host), !exceptions.contains(address.host) else { return .direct }
        guard let named = address.scheme == .http ? plain : secure else { return .direct }
        guard let server = named.server else { return .unusable(named.name) }
        return .through(server)
    }

    /// False for a request that reaches its server, or the proxy before it, without leaving this machine.
    package func needsNetwork(_ address: WebAddress) -> Bool {
        switch choice(for: address) {
        case .direct, .unusable: !RequestOrigin.isLoopback(address.host)
        case .through(let server): !RequestOrigin.isLoopback(server.host)
        }
    }
}

/// Hosts that are reached without a proxy: names with all below them, addresses, networks such as 10.0.0.0/8, or `*`.
package struct ProxyExceptions: Hashable, Sendable {
    private var all = false
    private var names: [String] = []
    private var networks: [Network] = []
    private struct Network: Hashable, Sendable {
        var address: IPAddress
        var bits: Int
    }

    /// Reads a list with commas or spaces; what is none of the above excepts nothing.
    package init(_ list: String) {
        for entry in list.split(whereSeparator: { $0 == "," || $0 == " " }) {
            if entry == "*" {
                all = true
            } else if let network = Self.network(entry) {
                networks.append(network)
            } else {
                var name = entry.lowercased()[...]
                if name.hasPrefix("*.") { name = name.dropFirst() }
                if name.hasPrefix(".") { name = name.dropFirst() }
                if name.hasSuffix(".") { name = name.dropLast() }
                if !name.isEmpty { names.append(String(name)) }
            }
        }
    }

    private static func network(_ entry: Substring) -> Network? {
        let halves = entry.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let text = halves[0].hasPrefix("[") && halves[0].hasSuffix("]") ? halves[0].dropFirst().dropLast() : halves[0]
        guard let address = IPAddress(text) else { return nil }
        let most = address.bytes.count * 8
        guard halves.count == 2 else { return Network(address: address, bits: most) }
        guard let bits = ASCIIText.number(halves[1]), bits <= Int64(most) else { return nil }
        return Network(address: address, bits: Int(bits))
    }

    /// Whether a host (lower case, without brackets and port) is excepted.
    package func contains(_ host: String) -> Bool {
        if all { return true }
        if let address = IPAddress(host) {
            return networks.contains { address.begins(like: $0.address, bits: $0.bits) }
        }
        return names.contains { host == $0 || host.hasSuffix("." + $0) }
    }
}
