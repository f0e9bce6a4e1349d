// Names of unix sockets as the kernel wants them: at most 107 bytes, whatever the length of the path.
internal import Glibc

/// A socket's path in its two parts.
struct SocketPath {
    let folder: String
    let name: String

    init(_ path: String) {
        guard let slash = path.lastIndex(of: "/") else {
            folder = "."
            name = path
            return
        }
        folder = slash == path.startIndex ? "/" : String(path[..<slash])
        name = String(path[path.index(after: slash)...])
    }
}

/// A path, or an abstract name with a leading `@`, as socket address.
struct SocketAddress {
    /// Bytes of `sun_path`, with the closing NUL.
    private static let pathMax = 108
    /// `O_PATH`, which Swift's Glibc does not show.
    private static let openPath: Int32 = 0o10000000

    private let path: String

    init(_ path: String) { self.path = path }

    /// Calls `body` with the address; a path that is too long goes through its open folder.
    func with(
        _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemCallError) -> Void
    ) throws(SystemCallError) {
        guard path.utf8.count >= Self.pathMax, !path.hasPrefix("@") else {
            return try Self.with(bytes: Array(path.utf8), body)
        }
        let parts = SocketPath(path)
        let folder = Descriptor(
            owning: try check("open") { open(parts.folder, Self.openPath | O_DIRECTORY | O_CLOEXEC) })
        try Self.with(bytes: Array("/proc/self/fd/\(folder.rawValue)/\(parts.name)".utf8), body)
    }

    private static func with(
        bytes: [UInt8], _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemCallError) -> Void
    ) throws(SystemCallError) {
        let isAbstract = bytes.first == UInt8(ascii: "@")
        guard bytes.count < pathMax, !bytes.isEmpty, !bytes.contains(0) else {
            throw SystemCallError(call: "bind", number: bytes.count < pathMax ? EINVAL : ENAMETOOLONG)
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { room in
            room.copyBytes(from: bytes)
            if isAbstract { room[0] = 0 }
        }
        // An abstract name ends where the address ends, a path with its NUL.
        let length = MemoryLayout<sa_family_t>.size + bytes.count + (isAbstract ? 0 : 1)
        let failure = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic -> SystemCallError? in
                do throws(SystemCallError) {
                    try body(generic, socklen_t(length))
                    return nil
                } catch {
                    return error
                }
            }
        }
        if let failure { throw failure }
    }
}
