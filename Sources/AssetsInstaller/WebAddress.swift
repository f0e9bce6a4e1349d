// What an http or https address must look like to be stored and shown.

/// The parts of an absolute address that decide whether it is admitted. The fetching itself parses anew.
struct WebAddress {
    /// Bytes of an address.
    static let lengthMax = 8192

    let isSecure: Bool
    /// In lower case, without port and brackets.
    let host: String

    /// nil for anything but plain ASCII `http(s)://host[:port][/...]`; no user, no password.
    init?(_ text: String) {
        guard text.utf8.count <= Self.lengthMax, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x5C }),
            let colon = text.firstIndex(of: ":")
        else { return nil }
        switch text[..<colon].lowercased() {
        case "https": isSecure = true
        case "http": isSecure = false
        default: return nil
        }
        let rest = text[text.index(after: colon)...]
        guard rest.hasPrefix("//") else { return nil }
        let authority = rest.dropFirst(2).prefix { !"/?#".contains($0) }
        guard let host = Self.host(authority) else { return nil }
        self.host = host
    }

    /// Whether the host is this machine by its name or address.
    var isLoopback: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { $0.utf8.count <= 3 && UInt8($0) != nil }
    }

    private static func host(_ authority: Substring) -> String? {
        guard !authority.contains("@") else { return nil }
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]"), isPort(authority[authority.index(after: end)...]) else {
                return nil
            }
            let inner = authority[authority.index(after: authority.startIndex)..<end].lowercased()
            let isAddress = inner.contains(":") && inner.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." }
            return isAddress ? inner : nil
        }
        let name = authority.prefix { $0 != ":" }
        guard isPort(authority[name.endIndex...]) else { return nil }
        let host = name.hasSuffix(".") ? name.dropLast().lowercased() : name.lowercased()
        let isHost =
            !host.isEmpty && host.utf8.count <= 253
            && host.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
                !label.isEmpty && label.allSatisfy { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" }
            }
        return isHost ? host : nil
    }

    private static func isPort(_ text: Substring) -> Bool {
        if text.isEmpty { return true }
        guard text.first == ":" else { return false }
        return text.count == 1 || UInt16(text.dropFirst()) != nil
    }
}
