// `UserDefaults(suiteName:)` of an app group: one file in the group's container, shared by all processes of the app.

internal import AssetsOS
internal import Foundation
internal import Glibc

/// The preferences of one app group.
///
/// What one process sets is what the next one reads, in this process or another, without `synchronize()`: a change is
/// made to the newest file, under a lock that all processes take, and put in place by a rename.
final class GroupDefaults: Sendable {
    /// Bytes of the preferences of a group; more belongs into files.
    static let sizeMax = 4 << 20

    private struct State {
        var file: FileIdentity?
        var list: PropertyListObject?
    }

    /// Which state of the file was read. Every change makes a new file, so that no two have the same.
    private struct FileIdentity: Equatable {
        var device: UInt64
        var inode: UInt64
        var size: Int64
        var changed: timespec

        init(_ status: stat) {
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
            size = Int64(status.st_size)
            changed = status.st_mtim
        }

        static func == (first: Self, second: Self) -> Bool {
            first.device == second.device && first.inode == second.inode && first.size == second.size
                && first.changed.tv_sec == second.changed.tv_sec && first.changed.tv_nsec == second.changed.tv_nsec
        }
    }

    private let folder: String
    private let name: String
    private let state = Guarded(State())

    private var path: String { "\(folder)/\(name).plist" }

    /// - Parameter container: The folder of the group.
    init(container: String, group: String) {
        folder = container + "/Library/Preferences"
        name = group
    }

    // MARK: Reading

    /// A retained value.
    func copyValue(forKey key: UnsafeRawPointer) -> UnsafeRawPointer? { current()?.copyValue(forKey: key) }

    /// A retained dictionary.
    func copyValues(forKeys keys: UnsafeRawPointer?) -> UnsafeRawPointer? {
        (current() ?? PropertyListObject.empty())?.copyValues(forKeys: keys)
    }

    private func current() -> PropertyListObject? {
        state.withLock { state in
            var status = stat()
            guard stat(path, &status) == 0 else {
                state = State()
                return nil
            }
            if FileIdentity(status) != state.file { read(into: &state) }
            return state.list
        }
    }

    /// Reads the file that is there now; it may be newer than the one that was asked about.
    private func read(into state: inout State) {
        state = State()
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_size <= Self.sizeMax,
            let bytes = try? file.readToEnd() ?? Data()
        else { return }
        state = State(file: FileIdentity(status), list: PropertyListObject(bytes))
    }

    // MARK: Writing

    /// Sets a value, or removes it. What cannot be done is said on standard error: there is no caller to tell.
    func set(_ value: UnsafeRawPointer?, forKey key: UnsafeRawPointer) {
        do throws(DefaultsError) {
            try change { $0.setting(value, forKey: key) }
        } catch {
            Diagnostics.warn("the preferences of '\(name)' cannot be changed: \(error)")
        }
    }

    private func change(
        _ change: (PropertyListObject) -> PropertyListObject?
    ) throws(DefaultsError) {
        try makeFolder()
        let lock = try lockFile()
        defer { close(lock) }
        let result: Result<Void, DefaultsError> = state.withLock { state in
            Result { () throws(DefaultsError) in
                read(into: &state)
                if state.list == nil { setAside() }
                guard let list = state.list ?? .empty(), let changed = change(list), let bytes = changed.encoded()
                else {
                    throw .unsuitable
                }
                guard bytes.count <= Self.sizeMax else { throw .tooMuch }
                try write(bytes)
                read(into: &state)
            }
        }
        try result.get()
    }

    private func makeFolder() throws(DefaultsError) {
        if access(folder, F_OK) == 0 { return }
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch { throw .system("\(folder)", errno) }
    }

    /// Held until it is closed; the kernel closes it when the process dies.
    private func lockFile() throws(DefaultsError) -> Int32 {
        let descriptor = open("\(folder)/.\(name).lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system("the lock", errno) }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else {
                let number = errno
                close(descriptor)
                throw .system("the lock", number)
            }
        }
        return descriptor
    }

    /// What is no property list is kept for its owner to look at.
    private func setAside() {
        guard access(path, F_OK) == 0 else { return }
        let aside = path + ".damaged"
        _ = rename(path, aside)
        Diagnostics.warn("the preferences of '\(name)' cannot be read and start anew; the old file is \(aside)")
    }

    private func write(_ bytes: Data) throws(DefaultsError) {
        // One writer at a time: the name needs no chance.
        let next = "\(folder)/.\(name).next"
        let descriptor = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(next, errno) }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .system(next, errno) }
            rest = rest.dropFirst(count)
        }
        // Else a power cut could leave the new name with no bytes.
        guard fdatasync(descriptor) == 0, rename(next, path) == 0 else { throw .system(next, errno) }
    }

    /// Makes sure that the last change survives a power cut.
    func synchronize() -> Bool {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno == ENOENT }
        defer { close(descriptor) }
        return fsync(descriptor) == 0
    }
}

/// Why preferences were not changed.
private enum DefaultsError: Error, CustomStringConvertible {
    case system(String, Int32)
    case unsuitable
    case tooMuch

    var description: String {
        switch self {
        case .system(let what, let number): "\(what): \(String(cString: strerror(number)))"
        case .unsuitable: "a value is none that a property list can hold"
        case .tooMuch:
            "together they are more than \(GroupDefaults.sizeMax >> 20) MiB; keep large values in files of the container"
        }
    }
}
