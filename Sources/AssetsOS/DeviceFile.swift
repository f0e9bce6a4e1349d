// An unfinished download on a disk.
internal import CLinux
internal import Glibc

/// A file that grows at its end.
///
/// Unchecked: `length` and what belongs to it are used by one executor at a time, as `AppendableFile` demands; `sync`
/// touches nothing but the descriptor, which never changes.
final class DeviceFile: AppendableFile, @unchecked Sendable {
    /// The kernel is told to write so many bytes as soon as they are there, so that a sync finds little left to do.
    private static let writeBackBytes: Int64 = 8 << 20
    private static let pieceBytes = 256 << 10
    /// Pieces of at least so many bytes go past the page cache.
    private static let directBytesMin = 256 << 10
    /// What offset, count and address of such a piece are multiples of, on every file system we know.
    private static let directAlignment: Int64 = 4096
    /// Bytes a second, over so many bytes: a disk that takes them more slowly does better when the page cache orders them.
    private static let directRateMin = 100.0 * 1024 * 1024
    private static let directTrialBytes: Int64 = 8 << 20
    /// SYNC_FILE_RANGE_WRITE: begin to write, wait for nothing.
    private static let beginWriting: UInt32 = 2
    /// FALLOC_FL_KEEP_SIZE
    private static let keepSize: Int32 = 1

    private let descriptor: Descriptor
    let inode: UInt64
    private(set) var length: Int64
    private var writtenBack: Int64
    /// False where the file system or the disk has shown not to be made for it.
    private var mayWriteDirectly = true
    private var directBytes: Int64 = 0
    private var directTime = Duration.zero

    init(_ descriptor: consuming Descriptor) throws(SystemCallError) {
        let status = try FileStatus(descriptor: descriptor.rawValue)
        guard status.kind == .file else { throw SystemCallError(call: "openat2", number: EINVAL) }
        self.descriptor = descriptor
        inode = status.inode
        length = status.size
        writtenBack = status.size
    }

    /// Large aligned pieces go straight to the disk: that takes a third of the processor time of a copy through the page
    /// cache, leaves the sync little to do, and does not push what the user works with out of memory.
    func append(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError) {
        guard try !appendDirectly(bytes) else { return }
        try appendThroughCache(bytes)
    }

    /// False when nothing was written because it cannot be done this way.
    private func appendDirectly(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError) -> Bool {
        let fd = descriptor.rawValue
        guard mayWriteDirectly, bytes.count >= Self.directBytesMin, length % Self.directAlignment == 0,
            Int64(bytes.count) % Self.directAlignment == 0,
            Int(bitPattern: bytes.baseAddress) % Int(Self.directAlignment) == 0
        else { return false }
        guard clinux_set_direct(fd, 1) == 0 else {
            mayWriteDirectly = false
            return false
        }
        defer { _ = clinux_set_direct(fd, 0) }
        let start = MonotonicClock.now
        let count: Int
        do throws(SystemCallError) {
            count = try check("pwrite") { pwrite(fd, bytes.baseAddress, bytes.count, off_t(length)) }
        } catch let error where error.number == EINVAL {
            mayWriteDirectly = false
            return false
        }
        length += Int64(count)
        writtenBack = length
        directBytes += Int64(count)
        directTime += MonotonicClock.now - start
        let isSlow = Double(directBytes) < Self.directRateMin * (directTime / .seconds(1))
        if directBytes >= Self.directTrialBytes, isSlow { mayWriteDirectly = false }
        if count < bytes.count { try appendThroughCache(UnsafeRawBufferPointer(rebasing: bytes[count...])) }
        return true
    }

    private func appendThroughCache(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError) {
        let fd = descriptor.rawValue
        var rest = bytes
        while !rest.isEmpty {
            let count = try check("pwrite") { pwrite(fd, rest.baseAddress, rest.count, off_t(length)) }
            length += Int64(count)
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        if length - writtenBack >= Self.writeBackBytes { beginSync() }
    }

    func truncate(to length: Int64) throws(SystemCallError) {
        let fd = descriptor.rawValue
        try check("ftruncate") { ftruncate(fd, off_t(length)) }
        self.length = length
        writtenBack = min(writtenBack, length)
    }

    /// Asks for room only where there is enough: an allocation that fails halfway has taken all that was left from
    /// everybody.
    func reserve(total: Int64) throws(SystemCallError) -> Bool {
        let fd = descriptor.rawValue
        let allocated = try allocated
        guard total > max(length, allocated) else { return true }
        guard try total - allocated <= DeviceTree.space(fd).free else {
            throw SystemCallError(call: "fallocate", number: ENOSPC)
        }
        do throws(SystemCallError) {
            try check("fallocate") { clinux_fallocate(fd, Self.keepSize, 0, off_t(total)) }
        } catch let error where error.number == EOPNOTSUPP || error.number == ENOSYS {
            return false
        } catch {
            // Gives back what was allocated before it failed.
            _ = ftruncate(fd, off_t(length))
            throw error
        }
        return true
    }

    var allocated: Int64 {
        get throws(SystemCallError) { try FileStatus(descriptor: descriptor.rawValue).allocated }
    }

    /// A hint: where it cannot be taken, the sync does it all.
    func beginSync() {
        _ = clinux_sync_file_range(
            descriptor.rawValue, off_t(writtenBack), off_t(length - writtenBack), Self.beginWriting)
        writtenBack = length
    }

    func sync() throws(SystemCallError) {
        let fd = descriptor.rawValue
        try check("fdatasync") { fdatasync(fd) }
    }

    func setAttribute(name: String, value: String) throws(SystemCallError) {
        let fd = descriptor.rawValue
        let bytes = Array(value.utf8)
        try check("fsetxattr") {
            bytes.withUnsafeBytes { clinux_set_attribute(fd, name, $0.baseAddress, $0.count) }
        }
    }

    /// Reads by a descriptor of its own: what `append` changes about the other would go for these reads too. The pages are
    /// not kept, nobody looks at them a second time.
    func read(
        from offset: Int64, count: Int64, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws(SystemCallError) {
        let own = descriptor.rawValue
        let reader = Descriptor(
            owning: try check("open") { open("/proc/self/fd/\(own)", O_RDONLY | O_CLOEXEC) })
        let fd = reader.rawValue
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 16)
        defer { piece.deallocate() }
        var position = offset
        let end = offset + min(count, .max - offset)
        while position < end {
            let wanted = Int(min(Int64(piece.count), end - position))
            let count = try check("pread") { pread(fd, piece.baseAddress, wanted, off_t(position)) }
            if count == 0 { break }
            body(UnsafeRawBufferPointer(rebasing: piece[..<count]))
            position += Int64(count)
        }
        _ = posix_fadvise(fd, off_t(offset), off_t(position - offset), POSIX_FADV_DONTNEED)
    }
}
