// Gathers small pieces of one file after another into large writes.
internal import AssetsOS
internal import Glibc

/// One buffer for all files of a bundle.
final class FileWriter {
    /// Bytes of one write: large enough that system calls no longer show in a profile.
    static let bufferSize = 512 << 10

    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 4096)
    private var count = 0
    /// Where in the file the buffer's first byte belongs.
    private var start: Int64 = 0

    deinit { buffer.deallocate() }

    /// Takes bytes for `offset`; pieces of a sparse file leave holes between them.
    func write(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, to file: borrowing Descriptor
    ) throws(SystemCallError) {
        if offset != start + Int64(count) || bytes.count > Self.bufferSize - count {
            try flush(to: file)
            start = offset
        }
        if bytes.count >= Self.bufferSize {
            try Self.writeAll(bytes, at: offset, to: file)
            start = offset + Int64(bytes.count)
        } else {
            UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: bytes)
            count += bytes.count
        }
    }

    /// Ends a file of `length` bytes, the last of which may be a hole.
    func finish(_ file: borrowing Descriptor, length: Int64) throws(SystemCallError) {
        try flush(to: file)
        if length > start {
            let fd = file.rawValue
            try check("ftruncate") { ftruncate(fd, off_t(length)) }
        }
        start = 0
    }

    /// Forgets what was not written yet, after a failure.
    func discardBuffered() {
        count = 0
        start = 0
    }

    private func flush(to file: borrowing Descriptor) throws(SystemCallError) {
        guard count > 0 else { return }
        try Self.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: start, to: file)
        start += Int64(count)
        count = 0
    }

    private static func writeAll(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, to file: borrowing Descriptor
    ) throws(SystemCallError) {
        let fd = file.rawValue
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            done += try check("pwrite") { pwrite(fd, rest.baseAddress, rest.count, off_t(offset) + done) }
        }
    }
}
