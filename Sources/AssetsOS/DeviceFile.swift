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
    /// SYNC_FILE_RANGE_WRITE: begin to write, wait for nothing.
    private static let beginWriting: UInt32 = 2
    /// FALLOC_FL_KEEP_SIZE
    private static let keepSize: Int32 = 1

    private let descriptor: Descriptor
    let inode: UInt64
    private(set) var length: Int64
    private var writtenBack: Int64

    init(_ descriptor: consuming Descriptor) throws(SystemCallError) {
        let status = try FileStatus(descriptor: descriptor.rawValue)
        guard status.kind == .file else { throw SystemCallError(call: "openat2", number: EINVAL) }
        self.descriptor = descriptor
        inode = status.inode
        length = status.size
        writtenBack = status.size
    }

    func append(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError) {
        let fd = descriptor.rawValue
        var rest = bytes
        while !rest.isEmpty {
            let count = try check("pwrite") { pwrite(fd, rest.baseAddress, rest.count, off_t(length)) }
            length += Int64(count)
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        if length - writtenBack >= Self.writeBackBytes {
            // A hint: where it cannot be taken, the sync does it all.
            _ = clinux_sync_file_range(fd, off_t(writtenBack), off_t(length - writtenBack), Self.beginWriting)
            writtenBack = length
        }
    }

    func truncate(to length: Int64) throws(SystemCallError) {
        let fd = descriptor.rawValue
        try check("ftruncate") { ftruncate(fd, off_t(length)) }
        self.length = length
        writtenBack = min(writtenBack, length)
    }

    /// Asks for room only where there is enough: an allocation that fails halfway has taken all that was left from
    /// everybody.
    func reserve(total: Int64) throws(SystemCallError) {
        let fd = descriptor.rawValue
        var status = stat()
        try check("fstat") { fstat(fd, &status) }
        let allocated = Int64(status.st_blocks) * 512
        guard total > max(length, allocated) else { return }
        guard try total - allocated <= DeviceTree.space(fd).free else {
            throw SystemCallError(call: "fallocate", number: ENOSPC)
        }
        do throws(SystemCallError) {
            try check("fallocate") { clinux_fallocate(fd, Self.keepSize, 0, off_t(total)) }
        } catch let error where error.number == EOPNOTSUPP || error.number == ENOSYS {
            return
        } catch {
            // Gives back what was allocated before it failed.
            _ = ftruncate(fd, off_t(length))
            throw error
        }
    }

    func sync() throws(SystemCallError) {
        let fd = descriptor.rawValue
        try check("fdatasync") { fdatasync(fd) }
    }

    func read(from offset: Int64, _ body: (UnsafeRawBufferPointer) -> Void) throws(SystemCallError) {
        let fd = descriptor.rawValue
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 16)
        defer { piece.deallocate() }
        var position = offset
        while true {
            let count = try check("pread") { pread(fd, piece.baseAddress, piece.count, off_t(position)) }
            if count == 0 { return }
            body(UnsafeRawBufferPointer(rebasing: piece[..<count]))
            position += Int64(count)
        }
    }
}
