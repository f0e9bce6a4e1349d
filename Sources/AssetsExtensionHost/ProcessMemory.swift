// What the kernel says of a process's memory.
package import AssetsModel
package import AssetsOS
internal import Glibc

/// Reads the memory of one process, again and again.
package struct ProcessMemory: ~Copyable {
    /// Bytes of /proc/<pid>/status: some 1500.
    private static let statusMax = 4096

    private let status: Descriptor

    /// Opened once: the file stays that of this process, also when its number is given to another one.
    package init(of process: Int32) throws(SystemCallError) {
        status = Descriptor(
            owning: try check("open") { open("/proc/\(process)/status", O_RDONLY | O_CLOEXEC) })
    }

    /// Nil when the process has ended.
    package borrowing func read() -> MemoryUse? {
        let raw = status.rawValue
        return withUnsafeTemporaryAllocation(byteCount: Self.statusMax, alignment: 1) { buffer in
            let count = pread(raw, buffer.baseAddress, buffer.count, 0)
            guard count > 0 else { return nil }
            return Self.parse(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    /// A process that is ending has no such lines any more.
    static func parse(_ text: UnsafeRawBufferPointer) -> MemoryUse? {
        guard let anonymous = kibibytes("RssAnon:", in: text) else { return nil }
        return MemoryUse(
            anonymous: anonymous << 10, shared: (kibibytes("RssShmem:", in: text) ?? 0) << 10,
            swapped: (kibibytes("VmSwap:", in: text) ?? 0) << 10)
    }

    /// The number behind a name at the beginning of a line.
    private static func kibibytes(_ name: StaticString, in text: UnsafeRawBufferPointer) -> Int64? {
        var line = text[...]
        while !line.isEmpty {
            let rest = line.drop { $0 != UInt8(ascii: "\n") }
            if line.starts(with: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)) {
                return number(line.dropFirst(name.utf8CodeUnitCount))
            }
            line = rest.dropFirst()
        }
        return nil
    }

    private static func number(_ text: Slice<UnsafeRawBufferPointer>) -> Int64 {
        var number: Int64 = 0
        for byte in text.drop(while: { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), number < 1 << 40 else { break }
            number = number * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        return number
    }
}
