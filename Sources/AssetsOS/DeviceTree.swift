// Files below one real directory. Everything is reached through its descriptor and never through a link, so that
// whoever may write into a folder of the tree cannot lead the service out of it.
internal import CLinux
internal import Glibc

/// A directory on a disk.
package final class DeviceTree: FileTree {
    package let root: String
    let directory: Descriptor
    /// Neither boot nor mount changes under an open directory.
    private let epoch = Guarded<String?>(nil)

    /// Names that begin so are of files and links that were being written when the machine stopped: nobody needs them.
    package static let temporaryPrefix = ".new-"

    /// Bytes of an extended attribute; the kernel allows no more.
    private static let attributeMax = 64 << 10

    private static let directoryMode: mode_t = 0o700

    /// Opens an existing directory, by any path to it.
    package init(root: String) throws(SystemCallError) {
        directory = try Descriptor.directory(root)
        self.root = root
    }

    package func makeDirectory(_ path: String) throws(SystemCallError) {
        if try isDirectory(path) { return }
        var made = ""
        for part in path.utf8.split(separator: UInt8(ascii: "/")) {
            let name = String(Substring(part))
            let parent = made.isEmpty ? "." : made
            made += made.isEmpty ? name : "/" + name
            let folder = try open(parent, OpenFlag.path | O_DIRECTORY)
            do throws(SystemCallError) {
                let fd = folder.rawValue
                try check("mkdirat") { mkdirat(fd, name, Self.directoryMode) }
            } catch let error where error.number == EEXIST {
                // The next round opens it, which fails where it is no directory.
            }
        }
        _ = try open(path, OpenFlag.path | O_DIRECTORY)
    }

    private func isDirectory(_ path: String) throws(SystemCallError) -> Bool {
        try status(path)?.kind == .directory
    }

    package func openAppendable(_ path: String) throws(SystemCallError) -> any AppendableFile {
        try TreePath.check(path)
        return try DeviceFile(open(path, O_RDWR | O_CREAT | O_NONBLOCK, mode: 0o600))
    }

    package func status(_ path: String) throws(SystemCallError) -> FileStatus? {
        do throws(SystemCallError) {
            return try withParent(of: path) { (parent, name) throws(SystemCallError) in
                var result = stat()
                try check("fstatat") { fstatat(parent, name, &result, AT_SYMLINK_NOFOLLOW) }
                return FileStatus(result)
            }
        } catch let error where error.number == ENOENT || error.number == ENOTDIR {
            return nil
        }
    }

    package func list(_ path: String) throws(SystemCallError) -> [String] {
        let names = try DirectoryReader.names(in: open(path, O_RDONLY | O_DIRECTORY), limit: .max)
        return names.map { String(decoding: $0, as: UTF8.self) }
            .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    package func read(_ path: String, limit: Int) throws(SystemCallError) -> [UInt8] {
        let file = try open(path, O_RDONLY | O_NONBLOCK)
        let fd = file.rawValue
        let status = try FileStatus(descriptor: fd)
        guard status.kind == .file else { throw SystemCallError(call: "openat2", number: EINVAL) }
        guard status.size <= Int64(limit) else { throw SystemCallError(call: "read", number: EFBIG) }
        // The file may grow meanwhile: one byte beyond the limit tells.
        var bytes = [UInt8](repeating: 0, count: Int(status.size) + 1)
        var count = 0
        while true {
            let got = try check("read") {
                bytes.withUnsafeMutableBytes { Glibc.read(fd, $0.baseAddress?.advanced(by: count), $0.count - count) }
            }
            if got == 0 { break }
            count += got
            guard count <= limit else { throw SystemCallError(call: "read", number: EFBIG) }
            if count == bytes.count { bytes.append(contentsOf: repeatElement(0, count: bytes.count)) }
        }
        bytes.removeSubrange(count...)
        return bytes
    }

    package func replace(_ path: String, with bytes: [UInt8], mode: UInt32) throws(SystemCallError) {
        try withParent(of: path) { (parent, name) throws(SystemCallError) in
            let temporary = Self.temporaryName()
            do throws(SystemCallError) {
                try Self.write(bytes, to: temporary, in: parent, mode: mode)
                try check("renameat") { renameat(parent, temporary, parent, name) }
            } catch {
                unlinkat(parent, temporary, 0)
                throw error
            }
            try Self.sync(parent)
        }
    }

    private static func write(
        _ bytes: [UInt8], to name: String, in parent: Int32, mode: UInt32
    ) throws(SystemCallError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let file = Descriptor(owning: try check("openat") { openat(parent, name, flags, 0o600) })
        let fd = file.rawValue
        var written = 0
        while written < bytes.count {
            written += try check("write") {
                bytes.withUnsafeBytes { Glibc.write(fd, $0.baseAddress?.advanced(by: written), $0.count - written) }
            }
        }
        try check("fchmod") { fchmod(fd, mode) }
        try check("fdatasync") { fdatasync(fd) }
        try file.close()
    }

    private static func temporaryName() -> String {
        temporaryPrefix + String(SystemRandomSource().next(), radix: 16)
    }

    /// Whether a name is of the kind that `replace` and `replaceLink` use on their way.
    package static func isTemporary(_ name: String) -> Bool {
        guard name.hasPrefix(temporaryPrefix) else { return false }
        let number = name.dropFirst(temporaryPrefix.count)
        return UInt64(number, radix: 16) != nil && number == number.lowercased() && !number.hasPrefix("+")
    }

    package func rename(_ from: String, to: String, exclusively: Bool) throws(SystemCallError) {
        try withParent(of: from) { (fromParent, fromName) throws(SystemCallError) in
            try withParent(of: to) { (toParent, toName) throws(SystemCallError) in
                let flags: UInt32 = exclusively ? RenameFlag.noReplace : 0
                try check("renameat2") { clinux_renameat2(fromParent, fromName, toParent, toName, flags) }
            }
        }
    }

    package func moveFiles(
        _ names: [Renaming], from: String, to: String
    ) throws(SystemCallError) -> [SystemCallError?] {
        let source = try open(from, OpenFlag.path | O_DIRECTORY)
        let target = try open(to, OpenFlag.path | O_DIRECTORY)
        let (old, new) = (source.rawValue, target.rawValue)
        var failures: [SystemCallError?] = []
        for name in names {
            var failure: SystemCallError?
            do throws(SystemCallError) {
                try TreePath.check(name: name.from)
                try TreePath.check(name: name.to)
                try check("renameat") { renameat(old, name.from, new, name.to) }
            } catch { failure = error }
            failures.append(failure)
        }
        return failures
    }

    package func inodes(of names: [String], in folder: String) throws(SystemCallError) -> [UInt64?] {
        let parent: Descriptor
        do throws(SystemCallError) {
            parent = try open(folder, OpenFlag.path | O_DIRECTORY)
        } catch let error where error.number == ENOENT || error.number == ENOTDIR {
            return names.map { _ in nil }
        }
        let fd = parent.rawValue
        var found: [UInt64?] = []
        for name in names {
            try TreePath.check(name: name)
            var result = stat()
            do throws(SystemCallError) {
                try check("fstatat") { fstatat(fd, name, &result, AT_SYMLINK_NOFOLLOW) }
                found.append(UInt64(result.st_ino))
            } catch let error where error.number == ENOENT {
                found.append(nil)
            }
        }
        return found
    }

    package func syncDirectory(_ path: String) throws(SystemCallError) {
        let folder = try open(path, O_RDONLY | O_DIRECTORY)
        try check("fsync") { fsync(folder.rawValue) }
    }

    /// Syncs the directory behind an O_PATH descriptor.
    private static func sync(_ parent: Int32) throws(SystemCallError) {
        let folder = Descriptor(
            owning: try check("openat") { openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
        try check("fsync") { fsync(folder.rawValue) }
    }

    package func replaceLink(_ path: String, target: String) throws(SystemCallError) {
        guard !target.isEmpty, !target.utf8.contains(0) else {
            throw SystemCallError(call: "symlinkat", number: EINVAL)
        }
        try withParent(of: path) { (parent, name) throws(SystemCallError) in
            let temporary = Self.temporaryName()
            try check("symlinkat") { symlinkat(target, parent, temporary) }
            do throws(SystemCallError) {
                try check("renameat") { renameat(parent, temporary, parent, name) }
            } catch {
                unlinkat(parent, temporary, 0)
                throw error
            }
        }
    }

    package func readLink(_ path: String) throws(SystemCallError) -> String {
        try withParent(of: path) { (parent, name) throws(SystemCallError) in
            let room = Int(PATH_MAX)
            var bytes = [CChar](repeating: 0, count: room)
            let count = try check("readlinkat") { readlinkat(parent, name, &bytes, room) }
            return String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    package func setAttribute(_ path: String, name: String, value: String) throws(SystemCallError) {
        let file = try open(path, O_RDONLY | O_NONBLOCK)
        let fd = file.rawValue
        let bytes = Array(value.utf8)
        try check("fsetxattr") {
            bytes.withUnsafeBytes { clinux_set_attribute(fd, name, $0.baseAddress, $0.count) }
        }
    }

    package func makeReadOnly(_ path: String) throws(SystemCallError) {
        let file = try open(path, O_RDONLY | O_NONBLOCK)
        let fd = file.rawValue
        try check("fchmod") { fchmod(fd, 0o400) }
    }

    package func attribute(_ path: String, name: String) throws(SystemCallError) -> String? {
        let file = try open(path, O_RDONLY | O_NONBLOCK)
        let fd = file.rawValue
        var bytes = [UInt8](repeating: 0, count: Self.attributeMax)
        do throws(SystemCallError) {
            let count = try check("fgetxattr") {
                bytes.withUnsafeMutableBytes { clinux_get_attribute(fd, name, $0.baseAddress, $0.count) }
            }
            return String(decoding: bytes[..<Int(count)], as: UTF8.self)
        } catch let error where error.number == ENODATA {
            return nil
        }
    }

    package func space() throws(SystemCallError) -> (free: Int64, total: Int64) {
        try Self.space(directory.rawValue)
    }

    /// Of the file system that a descriptor belongs to.
    static func space(_ descriptor: Int32) throws(SystemCallError) -> (free: Int64, total: Int64) {
        var result = statvfs()
        try check("fstatvfs") { fstatvfs(descriptor, &result) }
        func bytes(_ blocks: UInt) -> Int64 {
            let (product, overflow) = blocks.multipliedReportingOverflow(by: result.f_frsize)
            return overflow ? .max : Int64(clamping: product)
        }
        return (free: bytes(result.f_bavail), total: bytes(result.f_blocks))
    }

    package func storageEpoch() throws(SystemCallError) -> String {
        if let known = epoch.withLock({ $0 }) { return known }
        let found = try readStorageEpoch()
        epoch.withLock { $0 = found }
        return found
    }

    private func readStorageEpoch() throws(SystemCallError) -> String {
        var mount: UInt64 = 0
        try check("statx") { clinux_mount_id(directory.rawValue, &mount) }
        let path = "/proc/sys/kernel/random/boot_id"
        let file = Descriptor(owning: try check("open") { Glibc.open(path, O_RDONLY | O_CLOEXEC) })
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try check("read") {
            bytes.withUnsafeMutableBytes { Glibc.read(file.rawValue, $0.baseAddress, $0.count) }
        }
        return "\(String(decoding: bytes[..<count].prefix { $0 > 0x20 }, as: UTF8.self)):\(mount)"
    }
}

// MARK: Reaching beneath

/// Flags that the C library's Swift module does not show.
enum OpenFlag {
    /// O_PATH: a place in the tree, not its content.
    static let path: Int32 = 0o10000000
}

/// Flags of renameat2.
enum RenameFlag {
    static let noReplace: UInt32 = 1
}

/// Paths of a tree, checked before the kernel sees them, and read as it reads them: by bytes.
enum TreePath {
    private static let slash = UInt8(ascii: "/")
    private static let dot = UInt8(ascii: ".")

    /// Throws EINVAL for what leads nowhere or elsewhere.
    static func check(_ path: String) throws(SystemCallError) {
        guard isSound(path.utf8) else { throw SystemCallError(call: "openat2", number: EINVAL) }
    }

    /// Throws EINVAL for what is no name in a folder.
    static func check(name: String) throws(SystemCallError) {
        guard !name.utf8.contains(slash) else { throw SystemCallError(call: "openat2", number: EINVAL) }
        try check(name)
    }

    /// The folder, nil for the root, and the last name.
    static func split(_ path: String) throws(SystemCallError) -> (parent: String?, name: String) {
        try check(path)
        guard let end = path.utf8.lastIndex(of: slash) else { return (nil, path) }
        return (String(path[..<end]), String(path[path.utf8.index(after: end)...]))
    }

    /// Every name has bytes, none of them zero, and is neither "." nor "..".
    private static func isSound(_ path: String.UTF8View) -> Bool {
        var (bytes, dots) = (0, 0)
        for byte in path {
            if byte == slash {
                guard bytes > 0, dots < bytes || dots > 2 else { return false }
                (bytes, dots) = (0, 0)
                continue
            }
            guard byte != 0 else { return false }
            bytes += 1
            if byte == dot { dots += 1 }
        }
        return bytes > 0 && (dots < bytes || dots > 2)
    }
}

extension DeviceTree {
    /// RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS.
    private static let resolve: UInt64 = 0x08 | 0x04 | 0x02

    /// Opens a path of the tree, or the root itself as ".".
    func open(_ path: String, _ flags: Int32, mode: UInt64 = 0) throws(SystemCallError) -> Descriptor {
        if path != "." { try TreePath.check(path) }
        return Descriptor(
            owning: try check("openat2") {
                clinux_openat2(directory.rawValue, path, UInt64(flags | O_CLOEXEC), mode, Self.resolve)
            })
    }

    /// Calls `body` with the folder of a path, open for reaching names in it, and the path's last name.
    func withParent<R>(
        of path: String, _ body: (Int32, String) throws(SystemCallError) -> R
    ) throws(SystemCallError) -> R {
        let (parent, name) = try TreePath.split(path)
        let folder = try open(parent ?? ".", OpenFlag.path | O_DIRECTORY)
        return try body(folder.rawValue, name)
    }
}

extension FileStatus {
    init(_ status: stat) {
        let kind: Kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .directory
            case S_IFLNK: .link
            default: .other
            }
        self.init(
            kind: kind, inode: UInt64(status.st_ino), size: Int64(status.st_size),
            allocated: Int64(status.st_blocks) * 512)
    }

    init(descriptor: Int32) throws(SystemCallError) {
        var result = stat()
        try check("fstat") { fstat(descriptor, &result) }
        self.init(result)
    }
}
