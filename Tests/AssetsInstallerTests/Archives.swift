// Archives made byte by byte, so that they can be wrong in every way.

/// Writes ustar files.
struct TarFile {
    private(set) var bytes: [UInt8] = []

    mutating func add(
        _ name: String, _ content: [UInt8] = [], type: Character = "0", mode: Int = 0o644, link: String = "",
        statedSize: Int? = nil
    ) {
        add(nameBytes: Array(name.utf8), content, type: type, mode: mode, link: link, statedSize: statedSize)
    }

    mutating func add(
        nameBytes: [UInt8], _ content: [UInt8] = [], type: Character = "0", mode: Int = 0o644, link: String = "",
        statedSize: Int? = nil
    ) {
        if nameBytes.count > 100 {
            add("././@LongLink", nameBytes + [0], type: "L")
        }
        var header = [UInt8](repeating: 0, count: 512)
        func put(_ text: some Sequence<UInt8>, at offset: Int, max: Int) {
            for (index, byte) in text.prefix(max).enumerated() { header[offset + index] = byte }
        }
        func octal(_ number: Int, width: Int) -> [UInt8] {
            let digits = Array(String(number, radix: 8).utf8)
            return [UInt8](repeating: 0x30, count: max(0, width - digits.count)) + digits
        }
        put(nameBytes, at: 0, max: 100)
        put(octal(mode, width: 7), at: 100, max: 7)
        put(octal(0, width: 7), at: 108, max: 7)
        put(octal(0, width: 7), at: 116, max: 7)
        put(octal(statedSize ?? content.count, width: 11), at: 124, max: 11)
        put(octal(0, width: 11), at: 136, max: 11)
        put([UInt8](repeating: 0x20, count: 8), at: 148, max: 8)
        put(String(type).utf8, at: 156, max: 1)
        put(link.utf8, at: 157, max: 100)
        put(Array("ustar\0".utf8) + Array("00".utf8), at: 257, max: 8)
        let sum = header.reduce(0) { $0 + Int($1) }
        put(octal(sum, width: 6) + [0, 0x20], at: 148, max: 8)
        bytes += header + content
        bytes += [UInt8](repeating: 0, count: (512 - content.count % 512) % 512)
    }

    /// The two empty blocks that end a tar file.
    var ended: [UInt8] { bytes + [UInt8](repeating: 0, count: 1024) }
}

private func little(_ value: some FixedWidthInteger, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: UInt64(truncatingIfNeeded: value) >> (8 * UInt64($0))) }
}

func crc32(_ bytes: [UInt8]) -> UInt32 {
    let table = (0..<256).map { value -> UInt32 in
        (0..<8).reduce(UInt32(value)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
    }
    return ~bytes.reduce(~UInt32(0)) { $0 >> 8 ^ table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] }
}

/// A gzip member of stored blocks.
func gzipped(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3]
    var rest = bytes[...]
    repeat {
        let block = rest.prefix(65_535)
        rest = rest.dropFirst(block.count)
        result += [rest.isEmpty ? 1 : 0] + little(block.count, 2) + little(~UInt16(block.count), 2) + block
    } while !rest.isEmpty
    return result + little(crc32(bytes), 4) + little(bytes.count, 4)
}

/// A zstd frame of raw blocks, then one byte repeated in further blocks.
func zstandard(_ bytes: [UInt8], zeros: Int = 0) -> [UInt8] {
    let blockMax = 128 << 10
    // No checksum, no content size, a window of 1 MiB.
    var result: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x50]
    var rest = bytes[...]
    while !rest.isEmpty {
        let block = rest.prefix(blockMax)
        rest = rest.dropFirst(block.count)
        result += little(block.count << 3, 3) + block
    }
    var left = zeros
    while left > 0 {
        let count = min(left, blockMax)
        left -= count
        result += little(count << 3 | 1 << 1, 3) + [0]
    }
    // The last block, empty.
    return result + little(1, 3)
}

/// A zip file of stored entries.
struct ZipFile {
    private var bytes: [UInt8] = []
    private var directory: [UInt8] = []
    private var count = 0

    /// `mode` with its file type, as Unix systems store it.
    mutating func add(_ name: String, _ content: [UInt8] = [], mode: Int = 0o100644, statedSize: Int? = nil) {
        let offset = bytes.count
        let size = statedSize ?? content.count
        // Version, flags (UTF-8 names), method, time, date, checksum, sizes, lengths of name and extra field.
        let common =
            little(20, 2) + little(1 << 11, 2) + little(0, 2) + little(0, 2) + little(0x21, 2)
            + little(crc32(content), 4) + little(size, 4) + little(size, 4) + little(name.utf8.count, 2) + little(0, 2)
        bytes += [0x50, 0x4B, 3, 4] + common + Array(name.utf8) + content
        directory += [0x50, 0x4B, 1, 2, 20, 3] + common
        directory += little(0, 2) + little(0, 2) + little(0, 2) + little(mode << 16, 4) + little(offset, 4)
        directory += Array(name.utf8)
        count += 1
    }

    var ended: [UInt8] {
        bytes + directory + [0x50, 0x4B, 5, 6] + little(0, 4) + little(count, 2) + little(count, 2)
            + little(directory.count, 4) + little(bytes.count, 4) + little(0, 2)
    }
}
