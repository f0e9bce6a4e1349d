// The checksum at the end of gzip files, which libarchive does not compare.
internal import AssetsOS
internal import Glibc

/// Computes length and checksum of what comes out of a gzip file, for the comparison with its last eight bytes.
struct GzipCheck {
    private static let trailerSize = 8

    private var register = ~UInt32(0)
    private var length: UInt64 = 0

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        length += UInt64(bytes.count)
        register = CRC32.update(register, bytes)
    }

    /// Whether `file` ends with what was computed. Files of several members do not: each has only its own sums.
    func matches(endOf file: borrowing Descriptor) -> Bool {
        var status = stat()
        guard fstat(file.rawValue, &status) == 0 else { return false }
        var trailer = [UInt8](repeating: 0, count: Self.trailerSize)
        let start = off_t(status.st_size) - Self.trailerSize
        guard start > 0, pread(file.rawValue, &trailer, trailer.count, start) == trailer.count else { return false }
        let number = { (range: Range<Int>) in trailer[range].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) } }
        return number(0..<4) == ~register && number(4..<8) == UInt32(truncatingIfNeeded: length)
    }
}

/// The checksum of gzip and zip, eight bytes at a time.
private enum CRC32 {
    private static let polynomial: UInt32 = 0xEDB8_8320

    /// Eight tables of 256: what a byte does to the register when it is followed by none to seven others.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            tables[byte] = (0..<8).reduce(UInt32(byte)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ polynomial : sum >> 1 }
        }
        for index in 256..<tables.count {
            let before = tables[index - 256]
            tables[index] = before >> 8 ^ tables[Int(before & 0xFF)]
        }
        return tables
    }()

    static func update(_ register: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
        tables.withUnsafeBufferPointer { tables in
            var register = register
            var index = 0
            while index + 8 <= bytes.count {
                let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                let mixed = word ^ UInt64(register)
                register = 0
                for place in 0..<8 {
                    register ^= tables[(7 - place) * 256 + Int(mixed >> (8 * UInt64(place)) & 0xFF)]
                }
                index += 8
            }
            while index < bytes.count {
                register = register >> 8 ^ tables[Int(UInt8(truncatingIfNeeded: register) ^ bytes[index])]
                index += 1
            }
            return register
        }
    }
}
