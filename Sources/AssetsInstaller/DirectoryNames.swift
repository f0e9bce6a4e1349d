internal import AssetsOS
internal import Glibc

/// Names in a directory without `.` and `..`, sorted by their bytes, each ending in NUL.
func namesInDirectory(_ directory: borrowing Descriptor, limit: Int) throws(SystemCallError) -> [[CChar]] {
    let own = try directory.open(beneath: ".", flags: O_RDONLY | O_DIRECTORY)
    let raw = own.release()
    guard let stream = fdopendir(raw) else {
        let number = errno
        _ = close(raw)
        throw SystemCallError(call: "fdopendir", number: number)
    }
    defer { closedir(stream) }
    var names: [[CChar]] = []
    while true {
        errno = 0
        guard let entry = readdir(stream) else {
            if errno != 0 { throw SystemCallError(call: "readdir", number: errno) }
            break
        }
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            pointer.withMemoryRebound(to: CChar.self, capacity: 256) { text in
                Array(UnsafeBufferPointer(start: text, count: strlen(text) + 1))
            }
        }
        if name == [0x2E, 0] || name == [0x2E, 0x2E, 0] { continue }
        guard names.count < limit else { throw SystemCallError(call: "readdir", number: EFBIG) }
        names.append(name)
    }
    return names.sorted { $0.lexicographicallyPrecedes($1) }
}

/// Status of a name, links not followed; nil when there is none.
func statusOf(_ name: [CChar], in directory: borrowing Descriptor) throws(SystemCallError) -> stat? {
    var status = stat()
    let fd = directory.rawValue
    do throws(SystemCallError) {
        try check("fstatat") { fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) }
    } catch {
        if error.number == ENOENT { return nil }
        throw error
    }
    return status
}

/// What `readlinkat` says, at most `limit` bytes.
func linkTarget(of name: [CChar], in directory: borrowing Descriptor, limit: Int) throws(SystemCallError) -> [UInt8] {
    let fd = directory.rawValue
    var bytes = [CChar](repeating: 0, count: limit + 1)
    let count = try check("readlinkat") { readlinkat(fd, name, &bytes, bytes.count) }
    guard count <= limit else { throw SystemCallError(call: "readlinkat", number: ENAMETOOLONG) }
    return bytes[..<count].map { UInt8(bitPattern: $0) }
}
