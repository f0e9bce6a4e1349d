// Removing folders that others have filled: any depth, any names, any modes, links never followed.
internal import CLinux
internal import Glibc

extension DeviceTree {
    /// Names taken from a folder at a time.
    private static let removalBatchMax = 4096
    /// How often a folder that was empty a moment ago may have been filled again by somebody.
    private static let refillsMax = 100

    package func remove(_ path: String) throws(SystemCallError) {
        do throws(SystemCallError) {
            try withParent(of: path) { (parent, name) throws(SystemCallError) in
                try Self.remove(FileName(name), in: parent)
            }
        } catch let error where error.number == ENOENT || error.number == ENOTDIR {
            return
        }
    }

    package func removeEmptyDirectory(_ path: String) throws(SystemCallError) -> Bool {
        do throws(SystemCallError) {
            return try withParent(of: path) { (parent, name) throws(SystemCallError) in
                try Self.unlinkFolder(FileName(name), in: parent)
            }
        } catch let error where error.number == ENOENT {
            return true
        } catch let error where error.number == ENOTDIR {
            return false
        }
    }

    /// Folders inside are lifted to the first level before they are emptied, so that neither descriptors nor path
    /// lengths nor the stack bound the depth. A removal cut short is finished by calling it again.
    private static func remove(_ name: FileName, in parent: Int32) throws(SystemCallError) {
        if try unlinkFile(name, in: parent) { return }
        var lifted = 0
        var refills = 0
        while true {
            let top = try openFolder(name, in: parent)
            let entries = try DirectoryReader.names(in: top, limit: removalBatchMax)
            guard entries.isEmpty else {
                let fd = try openFolder(name, in: parent)
                for entry in entries { try removeChild(FileName(entry), of: fd.rawValue, &lifted) }
                continue
            }
            if try unlinkFolder(name, in: parent) { return }
            refills += 1
            guard refills <= refillsMax else { throw SystemCallError(call: "unlinkat", number: ENOTEMPTY) }
        }
    }

    /// Removes a file or an empty folder; of another folder only what is no folder, and lifts the rest.
    private static func removeChild(_ name: FileName, of top: Int32, _ lifted: inout Int) throws(SystemCallError) {
        if try unlinkFile(name, in: top) { return }
        while true {
            if try unlinkFolder(name, in: top) { return }
            let folder = try openFolder(name, in: top)
            let entries = try DirectoryReader.names(in: folder, limit: removalBatchMax)
            if entries.isEmpty {
                // Filled and emptied by somebody else meanwhile: the caller comes back to it.
                _ = try unlinkFolder(name, in: top)
                return
            }
            let reopened = try openFolder(name, in: top)
            for entry in entries { try lift(FileName(entry), from: reopened.rawValue, to: top, &lifted) }
        }
    }

    private static func lift(
        _ name: FileName, from folder: Int32, to top: Int32, _ lifted: inout Int
    ) throws(SystemCallError) {
        if try unlinkFile(name, in: folder) { return }
        if try unlinkFolder(name, in: folder) { return }
        // A folder's mode must allow writing before it can be moved.
        _ = try openFolder(name, in: folder)
        while true {
            lifted += 1
            do throws(SystemCallError) {
                let number = lifted
                try check("renameat2") {
                    name.with { clinux_renameat2(folder, $0, top, "\(temporaryPrefix)\(number)", RenameFlag.noReplace) }
                }
                return
            } catch let error where error.number == EEXIST {
                continue
            } catch let error where error.number == ENOENT {
                return
            }
        }
    }

    /// False when it is a folder.
    private static func unlinkFile(_ name: FileName, in parent: Int32) throws(SystemCallError) -> Bool {
        do throws(SystemCallError) {
            try check("unlinkat") { name.with { unlinkat(parent, $0, 0) } }
            return true
        } catch let error where error.number == EISDIR {
            return false
        } catch let error where error.number == ENOENT {
            return true
        }
    }

    /// False when something is in it.
    private static func unlinkFolder(_ name: FileName, in parent: Int32) throws(SystemCallError) -> Bool {
        do throws(SystemCallError) {
            try check("unlinkat") { name.with { unlinkat(parent, $0, AT_REMOVEDIR) } }
            return true
        } catch let error where error.number == ENOTEMPTY || error.number == EEXIST {
            return false
        } catch let error where error.number == ENOENT {
            return true
        }
    }

    /// Opens a folder for reading, after making it readable and writable for us.
    static func openFolder(_ name: FileName, in parent: Int32) throws(SystemCallError) -> Descriptor {
        let flags = OpenFlag.path | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        let folder = Descriptor(owning: try check("openat") { name.with { openat(parent, $0, flags) } })
        let fd = folder.rawValue
        var status = stat()
        try check("fstat") { fstat(fd, &status) }
        if status.st_mode & S_IRWXU != S_IRWXU {
            try check("chmod") { clinux_chmod_path(fd, status.st_mode & 0o7777 | S_IRWXU) }
        }
        return Descriptor(owning: try check("openat") { openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
    }
}

/// A name as the file system has it: bytes that need not be text.
struct FileName {
    private let bytes: [CChar]

    init(_ name: String) { bytes = name.utf8.map { CChar(bitPattern: $0) } + [0] }
    init(_ name: [UInt8]) { bytes = name.map { CChar(bitPattern: $0) } + [0] }

    func with<R>(_ body: (UnsafePointer<CChar>) -> R) -> R {
        bytes.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress else { preconditionFailure("a name without its end") }
            return body(start)
        }
    }
}

/// Reads names out of directories.
enum DirectoryReader {
    /// At most `limit` names, without `.` and `..`, in no order.
    static func names(in folder: consuming Descriptor, limit: Int) throws(SystemCallError) -> [[UInt8]] {
        let fd = folder.release()
        guard let stream = fdopendir(fd) else {
            let number = errno
            close(fd)
            throw SystemCallError(call: "fdopendir", number: number)
        }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while names.count < limit {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw SystemCallError(call: "getdents", number: errno) }
                break
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != [0x2E] && name != [0x2E, 0x2E] { names.append(name) }
        }
        return names
    }
}
