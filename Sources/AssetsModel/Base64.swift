// Bytes as text: RFC 4648.

/// The usual alphabet, with padding.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let piece = bytes[start..<min(start + 3, bytes.count)]
            let word = piece.reduce(0) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - piece.count))
            for place in 0..<4 {
                let sign = alphabet[Int(word >> (18 - 6 * UInt32(place)) & 63)]
                text.append(place <= piece.count ? sign : padding)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// What `encode` gives, back; nil for anything else, so that no two texts mean the same bytes.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let signs = Array(text.utf8)
        guard signs.count % 4 == 0 else { return nil }
        let filled = signs.count - signs.suffix(2).count { $0 == padding }
        var bytes: [UInt8] = []
        var word: UInt32 = 0
        for (place, sign) in signs[..<filled].enumerated() {
            guard let value = value(of: sign) else { return nil }
            word = word << 6 | UInt32(value)
            guard place % 4 == 3 else { continue }
            bytes += [UInt8(truncatingIfNeeded: word >> 16), UInt8(truncatingIfNeeded: word >> 8)]
            bytes.append(UInt8(truncatingIfNeeded: word))
            word = 0
        }
        switch filled % 4 {
        case 2 where word & 15 == 0: bytes.append(UInt8(truncatingIfNeeded: word >> 4))
        case 3 where word & 3 == 0:
            bytes += [UInt8(truncatingIfNeeded: word >> 10), UInt8(truncatingIfNeeded: word >> 2)]
        case 0: break
        default: return nil
        }
        return bytes
    }

    private static func value(of sign: UInt8) -> UInt8? {
        switch sign {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): sign - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): sign - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): sign - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
