// What a file's bytes must come to.

/// A hash of a file's bytes, as an app declares it or a server sends it.
package struct ContentDigest: Hashable, Sendable {
    package enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case sha256 = "sha-256"
        case sha512 = "sha-512"

        package var byteCount: Int {
            switch self {
            case .sha256: 32
            case .sha512: 64
            }
        }

        /// As people write it.
        package var name: String {
            switch self {
            case .sha256: "SHA-256"
            case .sha512: "SHA-512"
            }
        }
    }

    package let algorithm: Algorithm
    package let bytes: [UInt8]

    /// nil when there are more or fewer bytes than the algorithm gives.
    package init?(_ algorithm: Algorithm, _ bytes: [UInt8]) {
        guard bytes.count == algorithm.byteCount else { return nil }
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Reads `text`; nil for anything else.
    package init?(_ text: String) {
        guard let mark = text.firstIndex(of: "="), let algorithm = Algorithm(rawValue: String(text[..<mark])),
            let bytes = Hexadecimal.decode(text[text.index(after: mark)...])
        else { return nil }
        self.init(algorithm, bytes)
    }

    /// As it is kept: "sha-256=" and hexadecimal digits.
    package var text: String { "\(algorithm.rawValue)=\(hexadecimal)" }

    /// Lower-case digits.
    package var hexadecimal: String { Hexadecimal.encode(bytes) }

    /// As it stands in a message for people.
    package var shown: String { "\(algorithm.name) \(hexadecimal)" }
}

/// Bytes as pairs of digits.
package enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    package static func encode(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Digits of either case; nil for anything else.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let values = text.utf8.map { digits.firstIndex(of: ASCIIText.lower($0)) }
        guard values.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        for place in stride(from: 0, to: values.count, by: 2) {
            guard let high = values[place], let low = values[place + 1] else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        return bytes
    }
}
