// The seam for chance: identifiers, jitter.

/// Random bits: the kernel's, or a simulation's seeded ones.
package protocol RandomSource: Sendable {
    func next() -> UInt64
}

/// getrandom(2) through the standard library.
package struct SystemRandomSource: RandomSource {
    package init() {}
    package func next() -> UInt64 { UInt64.random(in: .min ... .max) }
}

extension RandomSource {
    /// A version 4 UUID in upper case, as Foundation prints it.
    package func uuid() -> String {
        var bytes: [UInt8] = []
        for word in [next(), next()] {
            for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * shift))) }
        }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text.append(UInt8(ascii: "-")) }
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
