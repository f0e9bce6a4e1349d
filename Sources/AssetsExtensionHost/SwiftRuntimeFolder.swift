// The folder of the Swift runtime that an extension is linked with, where that is not in its bundle.
internal import AssetsOS
internal import Glibc

/// Finds the runtime by the library path that the executable carries. An executable is not to be trusted: of its paths
/// those count that lead to a runtime, and a runtime holds nothing that anybody would hide.
enum SwiftRuntimeFolder {
    private static let suffix = "/lib/swift/linux"
    private static let library = "libswiftCore.so"

    /// Absolute, without links; empty where the bundle has a runtime of its own.
    static func paths(of executable: String) -> [String] {
        guard let file = try? check("open", { open(executable, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }) else { return [] }
        let descriptor = Descriptor(owning: file)
        let raw = descriptor.rawValue
        let list = ElfLibraryPath.read { offset, count in
            var bytes = [UInt8](repeating: 0, count: count)
            let got = pread(raw, &bytes, count, off_t(offset))
            return got > 0 ? Array(bytes.prefix(got)) : []
        }
        return list.split(separator: ":").filter { $0.hasPrefix("/") }.compactMap { path in
            guard let real = PathTrail(String(path))?.real, real.hasSuffix(suffix),
                PathTrail("\(real)/\(library)")?.real == "\(real)/\(library)"
            else { return nil }
            return real
        }
    }
}

/// The library path of an executable: DT_RUNPATH of its dynamic section.
enum ElfLibraryPath {
    /// More is no executable of ours.
    private static let segmentsMax = 64
    private static let entriesMax = 1024
    private static let pathMax = 4096

    private enum Tag {
        static let end: UInt64 = 0
        static let strings: UInt64 = 5
        static let oldPath: UInt64 = 15
        static let path: UInt64 = 29
    }

    private struct Segment {
        var type: UInt64
        var offset: UInt64
        var address: UInt64
        var size: UInt64

        /// It is loaded, and that address is in it.
        func holds(_ address: UInt64) -> Bool {
            type == 1 && self.address <= address && address - self.address < size
        }
    }

    /// Empty where there is none, or for bytes that are no executable of 64 bits.
    ///
    /// - Parameter read: Bytes of the file from an offset on, perhaps fewer than asked for.
    static func read(_ read: (_ offset: UInt64, _ count: Int) -> [UInt8]) -> String {
        let header = read(0, 64)
        guard header.count == 64, Array(header.prefix(6)) == [0x7F, 0x45, 0x4C, 0x46, 2, 1] else { return "" }
        let segments = segments(header, read)
        guard let dynamic = segments.first(where: { $0.type == 2 }) else { return "" }
        var strings: UInt64?
        var path: UInt64?
        let entries = read(dynamic.offset, Int(clamping: min(dynamic.size, UInt64(entriesMax * 16))))
        for start in stride(from: 0, to: entries.count - 15, by: 16) {
            let (tag, value) = (number(entries, start, 8), number(entries, start + 8, 8))
            switch tag {
            case Tag.end: break
            case Tag.strings: strings = value
            case Tag.path: path = value
            case Tag.oldPath: path = path ?? value
            default: continue
            }
            if tag == Tag.end { break }
        }
        guard let strings, let path, let holder = segments.first(where: { $0.holds(strings) }) else { return "" }
        let (place, overflow) = (strings - holder.address + holder.offset).addingReportingOverflow(path)
        guard !overflow, place <= UInt64(Int64.max) else { return "" }
        return String(decoding: read(place, pathMax).prefix { $0 != 0 }, as: UTF8.self)
    }

    private static func segments(_ header: [UInt8], _ read: (UInt64, Int) -> [UInt8]) -> [Segment] {
        let size = 56
        let count = min(Int(number(header, 56, 2)), segmentsMax)
        let table = read(min(number(header, 32, 8), UInt64(Int64.max)), count * size)
        return stride(from: 0, to: table.count - size + 1, by: size).map { start in
            Segment(
                type: number(table, start, 4), offset: min(number(table, start + 8, 8), UInt64(Int64.max / 2)),
                address: number(table, start + 16, 8), size: number(table, start + 32, 8))
        }
    }

    private static func number(_ bytes: [UInt8], _ start: Int, _ count: Int) -> UInt64 {
        (start..<start + count).reversed().reduce(0) { $0 << 8 | UInt64(bytes[$1]) }
    }
}
