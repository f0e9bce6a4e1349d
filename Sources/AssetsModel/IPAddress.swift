// Addresses written as numbers, and the networks they lie in.

/// An address of IPv4 (4 bytes) or IPv6 (16 bytes).
package struct IPAddress: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }

    /// Reads "192.0.2.1" or "2001:db8::1", without brackets and zone.
    package init?(_ text: some StringProtocol) {
        guard let bytes = text.contains(":") ? Self.sixteen(text) : Self.four(text) else { return nil }
        self.bytes = bytes
    }

    /// True when the first `bits` are those of `other`.
    package func begins(like other: IPAddress, bits: Int) -> Bool {
        guard bytes.count == other.bytes.count, (0...bytes.count * 8).contains(bits) else { return false }
        let whole = bits / 8
        guard bytes.prefix(whole) == other.bytes.prefix(whole) else { return false }
        guard bits % 8 > 0 else { return true }
        return (bytes[whole] ^ other.bytes[whole]) >> (8 - UInt8(bits % 8)) == 0
    }

    private static func four(_ text: some StringProtocol) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        let numbers = parts.compactMap { part in
            part.utf8.count <= 3 ? ASCIIText.number(part).flatMap { UInt8(exactly: $0) } : nil
        }
        return numbers.count == 4 ? numbers : nil
    }

    private static func sixteen(_ text: some StringProtocol) -> [UInt8]? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        let halves = String(text).split(separator: "::", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 3, halves.count <= 2, let front = groups(halves[0]) else { return nil }
        guard halves.count == 2 else { return front.count == 16 ? front : nil }
        guard let back = groups(halves[1]), front.count + back.count <= 14 else { return nil }
        return front + [UInt8](repeating: 0, count: 16 - front.count - back.count) + back
    }

    /// "20:1:db8" as bytes; the last group may be an IPv4 address.
    private static func groups(_ text: Substring) -> [UInt8]? {
        guard !text.isEmpty else { return [] }
        var bytes: [UInt8] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, part.contains(".") {
                guard let last = four(part) else { return nil }
                bytes += last
            } else {
                guard (1...4).contains(part.utf8.count), !part.hasPrefix("+"), !part.hasPrefix("-"),
                    let group = UInt16(part, radix: 16)
                else { return nil }
                bytes += [UInt8(group >> 8), UInt8(group & 0xFF)]
            }
        }
        return bytes
    }
}
