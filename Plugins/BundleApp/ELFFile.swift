// Executables and shared libraries: which libraries they need, and where they look for them.
import Foundation

/// A 64-bit little-endian ELF file.
struct ELFFile {
    private enum Tag {
        static let end: UInt64 = 0
        static let needed: UInt64 = 1
        static let strings: UInt64 = 5
        static let name: UInt64 = 14
        static let oldLibraryPath: UInt64 = 15
        static let libraryPath: UInt64 = 29
    }

    private enum Segment {
        static let load: UInt32 = 1
        static let dynamic: UInt32 = 2
    }

    private let url: URL
    private var bytes: [UInt8]
    private var entries: [(tag: UInt64, value: UInt64)] = []
    /// Where in the file the texts begin that the entries point into.
    private var strings = 0

    init(_ url: URL) throws {
        self.url = url
        guard let data = try? Data(contentsOf: url) else {
            throw BundleError("\(url.path) cannot be read", "build again")
        }
        bytes = [UInt8](data)
        // Class 2: 64 bits. Data 1: little-endian.
        guard bytes.starts(with: [0x7F, UInt8(ascii: "E"), UInt8(ascii: "L"), UInt8(ascii: "F"), 2, 1]),
            readDynamicSection()
        else { throw BundleError("\(url.path) is no 64-bit ELF file that is linked dynamically", "build it for Linux") }
    }

    /// Names of the libraries it asks for.
    var needed: [String] { entries.filter { $0.tag == Tag.needed }.compactMap { text(at: $0.value) } }

    /// Where it looks for them first.
    var libraryPath: String? { pathEntry.flatMap { text(at: $0.value) } }

    /// Those folders of the library path that do not depend on where the file lies.
    var absoluteLibraryPaths: [String] {
        (libraryPath ?? "").split(separator: ":").filter { $0.hasPrefix("/") }.map(String.init)
    }

    /// Changes the library path in place; false where there is no room.
    mutating func setLibraryPath(_ path: String) -> Bool {
        guard let entry = pathEntry, let old = text(at: entry.value) else { return false }
        let room = UInt64(old.utf8.count)
        let new = Array(path.utf8)
        let texts = [Tag.needed, Tag.name]
        // A linker may let another text share the end of this one.
        let isShared = entries.contains { other in
            texts.contains(other.tag) && other.value >= entry.value && other.value <= entry.value + room
        }
        guard new.count <= old.utf8.count, !isShared else { return false }
        let start = strings + Int(entry.value)
        bytes.replaceSubrange(
            start..<start + old.utf8.count, with: new + [UInt8](repeating: 0, count: old.utf8.count - new.count))
        return true
    }

    func write(to url: URL) throws {
        // Into the file that is there: it keeps its mode.
        let file = try FileHandle(forWritingTo: url)
        defer { try? file.close() }
        try file.write(contentsOf: Data(bytes))
    }

    // MARK: Reading

    private var pathEntry: (tag: UInt64, value: UInt64)? {
        entries.first { $0.tag == Tag.libraryPath } ?? entries.first { $0.tag == Tag.oldLibraryPath }
    }

    private func number<Number: FixedWidthInteger>(_ type: Number.Type, at offset: Int) -> Number? {
        let size = MemoryLayout<Number>.size
        guard offset >= 0, offset <= bytes.count - size else { return nil }
        return (0..<size).reduce(0) { $0 | Number(truncatingIfNeeded: bytes[offset + $1]) << ($1 * 8) }
    }

    private func place(_ offset: Int) -> Int? { number(UInt64.self, at: offset).flatMap(Int.init(exactly:)) }

    private func text(at offset: UInt64) -> String? {
        guard let offset = Int(exactly: offset), offset < bytes.count - strings else { return nil }
        let rest = bytes[(strings + offset)...]
        guard let end = rest.firstIndex(of: 0) else { return nil }
        return String(decoding: rest[..<end], as: UTF8.self)
    }

    /// Program headers lead to the dynamic section; its addresses become places in the file by the loaded segments.
    private mutating func readDynamicSection() -> Bool {
        guard let table = place(32), let size = number(UInt16.self, at: 54), let count = number(UInt16.self, at: 56)
        else { return false }
        var loads: [(address: Int, place: Int, size: Int)] = []
        var dynamic: (place: Int, size: Int)?
        for index in 0..<Int(count) {
            let header = table &+ index * Int(size)
            guard let kind = number(UInt32.self, at: header), let start = place(header + 8),
                let address = place(header + 16), let length = place(header + 32)
            else { return false }
            if kind == Segment.load { loads.append((address, start, length)) }
            if kind == Segment.dynamic { dynamic = (start, length) }
        }
        guard let dynamic else { return false }
        for index in 0..<dynamic.size / 16 {
            let entry = dynamic.place &+ index * 16
            guard let tag = number(UInt64.self, at: entry), let value = number(UInt64.self, at: entry + 8) else {
                return false
            }
            if tag == Tag.end { break }
            entries.append((tag, value))
        }
        guard let address = entries.first(where: { $0.tag == Tag.strings }).flatMap({ Int(exactly: $0.value) }),
            let load = loads.first(where: { $0.address <= address && address - $0.address < $0.size })
        else { return false }
        strings = load.place + (address - load.address)
        return strings < bytes.count
    }
}
