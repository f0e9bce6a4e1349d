// File systems for tests, and the disks below them.
internal import AssetsOS
internal import CRootHelper
internal import Glibc
internal import RootHelperClient

/// A mounted file system that belongs to the tests' user.
final class MountedFileSystem {
    /// How long somebody whose end is already known may still hold a file while others wait for us.
    private static let busyMax = Duration.milliseconds(20)
    private static let busyInterval: Int32 = 2

    private let options: FileSystemOptions
    private let disk: MemoryDisk
    let path: String

    /// Looks whether there can be any; from now on this process and its children have mounts of their own.
    static func prepare() throws {
        try check("unshare") { croot_new_mounts() }
        try check("mount") { croot_make_mounts_private() }
        _ = try Command.find("mkfs.ext4")
        // A container may show the kernel's loop devices without having any.
        let image = Descriptor(owning: try check("memfd_create") { croot_memory_file("probe") })
        let raw = image.rawValue
        try check("ftruncate") { ftruncate(raw, 1 << 20) }
        _ = try LoopDevice(of: image)
    }

    init(_ options: FileSystemOptions, at path: String, for user: uid_t) throws {
        guard (1...FileSystemOptions.bytesMax).contains(options.bytes) else {
            throw HelperError("a file system has 1 to \(FileSystemOptions.bytesMax) bytes")
        }
        self.options = options
        self.path = path
        disk = try MemoryDisk(bytes: options.bytes, hasWriteCache: options.hasWriteCache, folder: path + ".disk")
        try check("mkdir") { mkdir(path, 0o700) }
        do {
            try mount(makes: true)
            try check("chown") { chown(path, user, user) }
            try check("chmod") { chmod(path, 0o700) }
            // A power cut must not make it root's again.
            let folder = try Descriptor.directory(path)
            let raw = folder.rawValue
            try check("fsync") { fsync(raw) }
        } catch {
            remove()
            throw error
        }
    }

    private func mount(makes: Bool) throws {
        if options.kind == .tmpfs {
            guard makes else { throw HelperError("what was in a tmpfs is gone") }
            let (path, size) = (path, "size=\(options.bytes)")
            try check("mount") { croot_mount("tmpfs", path, "tmpfs", size) }
            return
        }
        let device = try disk.attach()
        if makes { try make(on: device.path) }
        let type = options.kind == .ext4WithoutJournal ? "ext4" : options.kind.rawValue
        // The others discard nothing by themselves.
        let (path, mountOptions) = (path, options.kind == .btrfs ? "nodiscard" : "")
        try check("mount") { croot_mount(device.path, path, type, mountOptions) }
        if makes { try disk.checkIsWhole() }
    }

    /// Options of ext4 that have it made in full: else the kernel goes on making it, and a power cut finds it half made.
    static let noLazyWork = "lazy_itable_init=0,lazy_journal_init=0"

    /// Without discarding: that would make holes in the disk.
    private func make(on device: String) throws {
        let ext4 = ["-q", "-F", "-m", "0", "-E", "nodiscard," + Self.noLazyWork]
        switch options.kind {
        case .ext4: try Command.run("mkfs.ext4", ext4 + [device])
        case .ext4WithoutJournal: try Command.run("mkfs.ext4", ext4 + ["-O", "^has_journal", device])
        case .xfs: try Command.run("mkfs.xfs", ["-q", "-f", "-K", device])
        case .btrfs: try Command.run("mkfs.btrfs", ["-q", "-f", "-K", device])
        case .tmpfs: preconditionFailure("a tmpfs has no device")
        }
    }

    /// Pulls the plug: first of the disk, so that nothing of what follows reaches it.
    func cutPower(seed: UInt64?) throws {
        try disk.cutPower(seed: seed)
        let folder = try Descriptor.directory(path)
        let raw = folder.rawValue
        do {
            try check("ioctl") { croot_shut_down_file_system(raw) }
        } catch {
            // Who cannot be told notices by its disk, where that has gone.
            guard options.hasWriteCache, [ENOTTY, EOPNOTSUPP].contains(error.number) else { throw error }
        }
    }

    func mountAgain() throws {
        try Self.unmount(path)
        try disk.start()
        if options.kind == .ext4WithoutJournal { try repair() }
        try mount(makes: false)
    }

    /// What a start of the machine does for a file system without a journal.
    private func repair() throws {
        let device = try disk.attach()
        // 1: repaired.
        do { try Command.run("fsck.ext4", ["-p", "-f", device.path]) } catch {
            guard "\(error)".contains("exited with 1:") else { throw error }
        }
    }

    func remove() {
        // Who still has a file open keeps the file system without a name until it ends.
        if (try? Self.unmount(path)) == nil { croot_unmount(path, 1) }
        disk.remove()
        rmdir(path)
    }

    /// Unmounts, and waits for the last user where that has just ended.
    static func unmount(_ path: String) throws {
        let end = MonotonicClock.now + busyMax
        while true {
            do {
                try check("umount") { croot_unmount(path, 0) }
                return
            } catch {
                // Nothing is mounted there any more.
                if error.number == EINVAL { return }
                guard error.number == EBUSY, MonotonicClock.now < end else { throw error }
                poll(nil, 0, busyInterval)
            }
        }
    }
}

/// A loop device; it goes when nobody uses it any more.
struct LoopDevice: ~Copyable {
    private let descriptor: Descriptor
    let path: String

    init(of image: borrowing Descriptor) throws {
        let raw = image.rawValue
        var number: Int32 = -1
        descriptor = Descriptor(owning: try check("loop device") { croot_attach_loop(raw, &number) })
        path = "/dev/loop\(number)"
    }
}
