// Files and folders of a run.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc

enum Folder {
    /// A new folder below TMPDIR that goes when the run ends.
    static func temporary() throws -> String {
        let base = ProcessEnvironment.value("TMPDIR", in: ProcessEnvironment.current) ?? "/tmp"
        guard let template = strdup("\(base)/ba-bench-XXXXXX") else { throw BenchError("there is no memory") }
        defer { free(template) }
        return try Leftovers.addFolder {
            guard mkdtemp(template) != nil else {
                throw BenchError("no folder can be made in \(base): \(String(cString: strerror(errno)))")
            }
            return String(cString: template)
        }
    }

    /// Makes a folder and its missing parents.
    static func make(_ path: String) throws {
        var current = ""
        for part in path.split(separator: "/") {
            current += "/" + part
            guard mkdir(current, 0o700) == 0 || errno == EEXIST else {
                throw SystemCallError(call: "mkdir", number: errno)
            }
        }
    }

    static func write(_ text: String, to path: String, mode: mode_t = 0o644) throws {
        try writeBytes(Array(text.utf8), to: path, mode: mode)
    }

    static func writeBytes(_ bytes: [UInt8], to path: String, mode: mode_t = 0o644) throws {
        let file = Descriptor(owning: try check("open") { open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode) })
        try write(bytes, to: file)
    }

    /// A file of so many bytes that no file system or transport can shorten.
    static func writeRandom(_ count: Int, to path: String) throws {
        let file = Descriptor(owning: try check("open") { open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644) })
        var piece = [UInt8](repeating: 0, count: 1 << 20)
        var left = count
        while left > 0 {
            // getrandom gives at most 256 bytes without a chance of being interrupted; words are quick enough.
            piece.withUnsafeMutableBytes { bytes in
                for offset in stride(from: 0, to: bytes.count, by: 8) {
                    bytes.storeBytes(of: Mixer.next(), toByteOffset: offset, as: UInt64.self)
                }
            }
            try write(Array(piece.prefix(left)), to: file)
            left -= min(left, piece.count)
        }
    }

    /// A file of zeros that takes no space.
    static func writeHole(_ count: Int, to path: String) throws {
        let file = Descriptor(owning: try check("open") { open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644) })
        let fd = file.rawValue
        try check("ftruncate") { ftruncate(fd, count) }
    }

    /// Reads a file into memory: a server that has to wait for its disk holds up all whom it serves.
    static func warm(_ path: String) throws {
        let file = Descriptor(owning: try check("open") { open(path, O_RDONLY | O_CLOEXEC) })
        let fd = file.rawValue
        var piece = [UInt8](repeating: 0, count: 1 << 20)
        while try check("read", { read(fd, &piece, piece.count) }) > 0 {}
    }

    /// Makes a file look as old as what servers have: one of this very second has no name for its version.
    static func makeOld(_ path: String) throws {
        let time = timespec(tv_sec: Glibc.time(nil) - 3600, tv_nsec: 0)
        try check("utimensat") { utimensat(AT_FDCWD, path, [time, time], 0) }
    }

    /// Has the file system put each new folder in a folder far from all others, as it does with those of users: with others'
    /// files it then shares no tables. Where a file system does not know of that, everything stays where it was.
    static func spread(below path: String, log: String) {
        guard let program = try? Program.find("chattr") else { return }
        _ = try? Program.run(program, ["+T", path], log: log)
    }

    /// What an ordinary user may still write in a folder.
    static func freeBytes(_ path: String) throws -> Int {
        var status = statvfs()
        try check("statvfs") { statvfs(path, &status) }
        return Int(status.f_bavail) * Int(status.f_frsize)
    }

    private static func write(_ bytes: [UInt8], to file: borrowing Descriptor) throws {
        let fd = file.rawValue
        var done = 0
        while done < bytes.count {
            done += try check("write") {
                bytes.withUnsafeBytes { Glibc.write(fd, $0.baseAddress?.advanced(by: done), $0.count - done) }
            }
        }
    }

    static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

    static func bytes(_ path: String) throws -> [UInt8] {
        let file = Descriptor(owning: try check("open") { open(path, O_RDONLY | O_CLOEXEC) })
        let fd = file.rawValue
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try check("read") { piece.withUnsafeMutableBytes { read(fd, $0.baseAddress, $0.count) } }
            if count == 0 { return bytes }
            bytes += piece.prefix(count)
        }
    }

    static func copy(_ from: String, to path: String) throws {
        let source = Descriptor(owning: try check("open") { open(from, O_RDONLY | O_CLOEXEC) })
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC
        let target = Descriptor(owning: try check("open") { open(path, flags, 0o755) })
        while try source.copy(to: target, count: 1 << 30) > 0 {}
    }

    static func size(_ path: String) throws -> Int {
        var status = stat()
        try check("stat") { stat(path, &status) }
        return Int(status.st_size)
    }

    /// Removes a file or folder with everything in it; nothing there is no error.
    static func remove(_ path: String) throws {
        if unlink(path) == 0 || errno == ENOENT { return }
        guard let folder = opendir(path) else { throw SystemCallError(call: "opendir", number: errno) }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { try remove("\(path)/\(name)") }
        }
        try check("rmdir") { rmdir(path) }
    }

    static func ofThisProgram() throws -> String {
        guard let resolved = realpath("/proc/self/exe", nil) else {
            throw SystemCallError(call: "realpath", number: errno)
        }
        defer { free(resolved) }
        let path = String(cString: resolved)
        return path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "/"
    }

    /// Whether two files hold the same bytes.
    static func isEqual(_ one: String, _ other: String) throws -> Bool {
        guard access(one, F_OK) == 0, try size(one) == size(other) else { return false }
        let files = try [one, other].map { try OpenFile($0) }
        var pieces = [[UInt8](repeating: 0, count: 1 << 20), [UInt8](repeating: 0, count: 1 << 20)]
        while true {
            let first = try files[0].read(&pieces[0])
            guard try files[1].read(&pieces[1]) == first else { return false }
            if first == 0 { return true }
            guard memcmp(pieces[0], pieces[1], first) == 0 else { return false }
        }
    }

    /// Waits until everything that was written lies on the disk, so that no one pays for what another left.
    static func settle() { sync() }
}

/// Splitmix64: bytes without a pattern, the same in every run.
private enum Mixer {
    private static let state = Guarded<UInt64>(0x4241_7374)

    static func next() -> UInt64 {
        var word = state.withLock { state in
            state &+= 0x9E37_79B9_7F4A_7C15
            return state
        }
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

/// A file that is read from its beginning on.
private final class OpenFile {
    private let descriptor: Descriptor

    init(_ path: String) throws {
        descriptor = Descriptor(owning: try check("open") { open(path, O_RDONLY | O_CLOEXEC) })
    }

    /// Fills the piece, but at the end of the file.
    func read(_ piece: inout [UInt8]) throws -> Int {
        let fd = descriptor.rawValue
        let most = piece.count
        return try check("read") { piece.withUnsafeMutableBytes { Glibc.read(fd, $0.baseAddress, most) } }
    }
}
