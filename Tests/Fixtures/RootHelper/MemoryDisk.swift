// A disk in memory, with or without a cache that forgets.
internal import AssetsOS
internal import CRootHelper
internal import Glibc
internal import RootHelperClient

/// A disk of a file in memory.
///
/// One with a write cache is a file of a file system of its own, whose cached pages are the disk's cache: a flush of the
/// loop device above syncs the file, and shutting that file system down drops all that was not flushed. The file is
/// written once in full before, so that later writes change nothing but its pages: in a hole they would also change what
/// the lower file system knows of itself, which a power cut would leave half done.
final class MemoryDisk {
    /// Beside its one file a file system needs some room for itself.
    private static let overhead: Int64 = 64 << 20
    private static let pieceSize = 1 << 20
    /// What a disk writes in one go, in some order of its own.
    private static let blockSize: Int64 = 64 << 10

    private let memory: Descriptor
    private let bytes: Int64
    /// Where the file system of the cache is mounted; nil without a cache.
    private let cache: String?

    init(bytes: Int64, hasWriteCache: Bool, folder: String) throws {
        self.bytes = bytes
        memory = Descriptor(owning: try check("memfd_create") { croot_memory_file("disk") })
        cache = hasWriteCache ? folder : nil
        let (raw, size) = (memory.rawValue, Int(hasWriteCache ? bytes + bytes / 32 + Self.overhead : bytes))
        try check("ftruncate") { ftruncate(raw, size) }
        guard let cache else { return }
        try check("mkdir") { mkdir(cache, 0o700) }
        do {
            try mountCache(makes: true)
            try fill()
        } catch {
            remove()
            throw error
        }
    }

    private func mountCache(makes: Bool) throws {
        guard let cache else { return }
        let device = try LoopDevice(of: memory)
        // Without a journal: nothing but pages of the one file ever changes, and it is mounted in no time.
        if makes {
            let options = ["-q", "-F", "-m", "0", "-E", MountedFileSystem.noLazyWork, "-O", "^has_journal"]
            try Command.run("mkfs.ext4", options + [device.path])
        }
        try check("mount") { croot_mount(device.path, cache, "ext4", "") }
    }

    private func image(_ flags: Int32) throws -> Descriptor {
        let path = (cache ?? "") + "/image"
        return Descriptor(owning: try check("open") { open(path, flags | O_CLOEXEC, 0o600) })
    }

    private func fill() throws {
        let image = try image(O_RDWR | O_CREAT | O_EXCL)
        let raw = image.rawValue
        let piece = [UInt8](repeating: 0, count: Self.pieceSize)
        var offset: Int64 = 0
        while offset < bytes {
            let (place, count) = (Int(offset), Int(min(bytes - offset, Int64(piece.count))))
            offset += Int64(try check("pwrite") { pwrite(raw, piece, count, place) })
        }
        // Not only the file: the bitmaps too, which say that its places are taken.
        try Command.run("sync", ["-f", cache ?? ""])
    }

    /// Throws when somebody has made a hole in it.
    func checkIsWhole() throws {
        guard cache != nil else { return }
        let image = try image(O_RDONLY)
        let raw = image.rawValue
        var status = stat()
        try check("fstat") { fstat(raw, &status) }
        guard Int64(status.st_blocks) * 512 >= bytes else { throw HelperError("the disk with a cache has holes") }
    }

    /// The disk as a device.
    func attach() throws -> LoopDevice {
        guard cache != nil else { return try LoopDevice(of: memory) }
        return try LoopDevice(of: try image(O_RDWR))
    }

    /// Drops what is in the cache; with a seed, after writing a random part of it.
    func cutPower(seed: UInt64?) throws {
        guard let cache else { return }
        if let seed { try writeSome(seed) }
        let folder = try Descriptor.directory(cache)
        let raw = folder.rawValue
        try check("ioctl") { croot_shut_down_file_system(raw) }
    }

    private func writeSome(_ seed: UInt64) throws {
        let image = try image(O_RDWR)
        let raw = image.rawValue
        var random = Chance(seed: seed)
        for offset in stride(from: 0, to: bytes, by: Int(Self.blockSize)) where random.next() & 1 == 0 {
            try check("sync_file_range") { croot_write_out(raw, Int(offset), Int(Self.blockSize)) }
        }
    }

    /// Makes it usable after a power cut. Nobody may use its device any more.
    func start() throws {
        guard let cache else { return }
        try MountedFileSystem.unmount(cache)
        try mountCache(makes: false)
    }

    func remove() {
        guard let cache else { return }
        if (try? MountedFileSystem.unmount(cache)) == nil { croot_unmount(cache, 1) }
        rmdir(cache)
    }
}

/// Splitmix64.
private struct Chance {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
