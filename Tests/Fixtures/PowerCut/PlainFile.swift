// Files of a run, read and written with plain system calls.
internal import AssetsOS
internal import Glibc

/// Whole files in one go.
enum PlainFile {
    static func write(_ content: [UInt8], to path: String) throws(SystemCallError) {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC
        let file = Descriptor(owning: try check("open") { open(path, flags, 0o644) })
        let raw = file.rawValue
        var done = 0
        while done < content.count {
            done += try check("write") {
                content.withUnsafeBytes { Glibc.write(raw, $0.baseAddress?.advanced(by: done), $0.count - done) }
            }
        }
    }

    /// nil when there is none.
    static func read(_ path: String) throws(SystemCallError) -> [UInt8]? {
        let raw = open(path, O_RDONLY | O_CLOEXEC)
        if raw == -1 && errno == ENOENT { return nil }
        let file = Descriptor(owning: try check("open") { raw })
        var status = stat()
        try check("fstat") { fstat(raw, &status) }
        var content = [UInt8](repeating: 0, count: Int(status.st_size))
        var done = 0
        while done < content.count {
            let count = try check("read") {
                content.withUnsafeMutableBytes { Glibc.read(raw, $0.baseAddress?.advanced(by: done), $0.count - done) }
            }
            guard count > 0 else { return Array(content.prefix(done)) }
            done += count
        }
        _ = file
        return content
    }

    static func exists(_ path: String) throws(SystemCallError) -> Bool {
        var status = stat()
        if stat(path, &status) == -1 && errno == ENOENT { return false }
        try check("stat") { stat(path, &status) }
        return true
    }

    static func syncFolder(_ path: String) throws(SystemCallError) {
        let folder = try Descriptor.directory(path)
        let raw = folder.rawValue
        try check("fsync") { fsync(raw) }
    }

    /// Names in a folder; none where it is missing.
    static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
