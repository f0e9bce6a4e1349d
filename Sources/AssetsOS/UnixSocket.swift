// Unix sockets: making them, reaching them by paths of any length, knowing the peer, passing descriptors.
internal import CLinux
internal import Glibc

/// A descriptor with several holders; closed when the last one lets go.
package final class SharedDescriptor: Sendable {
    private let descriptor: Descriptor

    package init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    package var rawValue: Int32 { descriptor.rawValue }
}

/// Two connected sockets, each taken once.
package struct SocketPair: ~Copyable {
    private var first: Descriptor?
    private var second: Descriptor?

    fileprivate init(first: consuming Descriptor, second: consuming Descriptor) {
        self.first = consume first
        self.second = consume second
    }

    package mutating func takeFirst() -> Descriptor { Self.once(first.take()) }
    package mutating func takeSecond() -> Descriptor { Self.once(second.take()) }

    private static func once(_ descriptor: consuming Descriptor?) -> Descriptor {
        guard let descriptor = consume descriptor else { preconditionFailure("a socket of the pair was taken twice") }
        return descriptor
    }
}

/// Who opened the other end of a connection, as the kernel noted it then.
package struct PeerCredentials: Hashable, Sendable {
    package var process: Int32
    package var user: UInt32
    package var group: UInt32
}

/// One message and the descriptors that came with it.
package struct ReceivedMessage: Sendable {
    package var bytes: [UInt8]
    package var descriptors: [SharedDescriptor]
}

/// Calls on unix sockets. All descriptors are close-on-exec.
package enum UnixSocket {
    /// What keeps message borders and what does not.
    package enum Kind: Sendable {
        case stream
        case sequencedPackets
        case datagrams

        fileprivate var rawValue: Int32 {
            switch self {
            case .stream: Int32(SOCK_STREAM.rawValue)
            case .sequencedPackets: Int32(SOCK_SEQPACKET.rawValue)
            case .datagrams: Int32(SOCK_DGRAM.rawValue)
            }
        }
    }

    /// Connections that may wait to be accepted.
    private static let backlog: Int32 = 128

    /// A socket that is neither bound nor connected.
    package static func make(_ kind: Kind) throws(SystemCallError) -> Descriptor {
        let type = kind.rawValue | Int32(SOCK_CLOEXEC.rawValue)
        return Descriptor(owning: try check("socket") { socket(AF_UNIX, type, 0) })
    }

    /// Two sockets connected to each other.
    package static func pair(_ kind: Kind = .stream) throws(SystemCallError) -> SocketPair {
        var raw: [Int32] = [-1, -1]
        let type = kind.rawValue | Int32(SOCK_CLOEXEC.rawValue)
        try check("socketpair") { socketpair(AF_UNIX, type, 0, &raw) }
        return SocketPair(first: Descriptor(owning: raw[0]), second: Descriptor(owning: raw[1]))
    }

    /// Listens at `path`, which only this user can reach: its folder is 0700 and made when missing, the socket 0600.
    ///
    /// A socket that is already there is replaced; the caller makes sure, with a `LockFile`, that nobody serves it.
    package static func listen(at path: String) throws(SystemCallError) -> Descriptor {
        let folder = try makePrivateFolder(SocketPath(path).folder)
        let name = SocketPath(path).name
        try removeSocket(name, in: folder)
        let listener = try make(.stream)
        try bind(listener, to: path)
        let raw = listener.rawValue
        try check("listen") { Glibc.listen(raw, backlog) }
        return listener
    }

    /// Gives `socket` the name `path`, mode 0600 from its first moment on.
    package static func bind(_ socket: borrowing Descriptor, to path: String) throws(SystemCallError) {
        let raw = socket.rawValue
        // The mode of the unbound socket is what bind gives to the new name, less the umask.
        try check("fchmod") { fchmod(raw, 0o600) }
        try SocketAddress(path).with { (address, length) throws(SystemCallError) in
            _ = try check("bind") { Glibc.bind(raw, address, length) }
        }
    }

    /// Connects to the socket at `path`. A leading `@` means an abstract name.
    package static func connect(to path: String, _ kind: Kind = .stream) throws(SystemCallError) -> Descriptor {
        let connection = try make(kind)
        let raw = connection.rawValue
        try SocketAddress(path).with { (address, length) throws(SystemCallError) in
            _ = try check("connect") { Glibc.connect(raw, address, length) }
        }
        return connection
    }

    /// The next waiting connection, nonblocking; nil when there is none.
    package static func accept(_ listener: borrowing Descriptor) throws(SystemCallError) -> Descriptor? {
        let raw = listener.rawValue
        let flags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        do throws(SystemCallError) {
            return Descriptor(owning: try check("accept4") { clinux_accept4(raw, flags) })
        } catch {
            // A client that gave up before it was accepted is nobody's failure.
            if error.number == EAGAIN || error.number == ECONNABORTED { return nil }
            throw error
        }
    }

    package static func setNonblocking(_ descriptor: borrowing Descriptor) throws(SystemCallError) {
        let raw = descriptor.rawValue
        let flags = try check("fcntl") { fcntl(raw, F_GETFL) }
        try check("fcntl") { fcntl(raw, F_SETFL, flags | O_NONBLOCK) }
    }

    /// Ends both directions, so that blocked calls on `socket` return; the descriptor stays open.
    package static func shutDown(_ socket: SharedDescriptor) {
        _ = shutdown(socket.rawValue, Int32(SHUT_RDWR))
    }

    // MARK: The peer

    package static func peerCredentials(_ socket: borrowing Descriptor) throws(SystemCallError) -> PeerCredentials {
        let raw = socket.rawValue
        var credentials = PeerCredentials(process: 0, user: 0, group: 0)
        try check("getsockopt") {
            clinux_peer_credentials(raw, &credentials.process, &credentials.user, &credentials.group)
        }
        return credentials
    }

    /// A pidfd of the process that connected; nil where the kernel has none.
    ///
    /// Throws ESRCH when that process is gone.
    package static func peerProcess(_ socket: borrowing Descriptor) throws(SystemCallError) -> Descriptor? {
        let raw = socket.rawValue
        do throws(SystemCallError) {
            return Descriptor(owning: try check("getsockopt") { clinux_peer_pidfd(raw) })
        } catch {
            if error.number == ENOPROTOOPT { return nil }
            throw error
        }
    }

    // MARK: Descriptors

    /// Descriptors that fit into one message.
    package static let descriptorsMax = 4

    /// Sends bytes, and descriptors with the first of them; returns how many bytes went.
    package static func send(
        _ bytes: UnsafeRawBufferPointer, descriptors: [Int32], over socket: borrowing Descriptor
    ) throws(SystemCallError) -> Int {
        try send(bytes, descriptors: descriptors, overRaw: socket.rawValue)
    }

    static func send(
        _ bytes: UnsafeRawBufferPointer, descriptors: [Int32], overRaw socket: Int32
    ) throws(SystemCallError) -> Int {
        try check("sendmsg") {
            clinux_send_descriptors(socket, bytes.baseAddress, bytes.count, descriptors, Int32(descriptors.count))
        }
    }

    /// Receives up to `max` bytes and the descriptors with them; no bytes mean that the peer closed.
    package static func receive(_ max: Int, from socket: borrowing Descriptor) throws(SystemCallError)
        -> ReceivedMessage
    {
        let raw = socket.rawValue
        var bytes = [UInt8](repeating: 0, count: max)
        var numbers = [Int32](repeating: -1, count: descriptorsMax)
        var count = Int32(descriptorsMax)
        let received = try check("recvmsg") {
            count = Int32(descriptorsMax)
            return clinux_receive_descriptors(raw, &bytes, max, &numbers, &count)
        }
        bytes.removeLast(max - received)
        let descriptors = numbers.prefix(Int(count)).map { SharedDescriptor(Descriptor(owning: $0)) }
        return ReceivedMessage(bytes: bytes, descriptors: descriptors)
    }

    // MARK: The folder

    /// Opens a folder that nobody else can enter; makes it, and what is missing above it, with mode 0700.
    @discardableResult
    package static func makePrivateFolder(_ path: String) throws(SystemCallError) -> Descriptor {
        try makeFolder(path)
        let folder = try Descriptor.directory(path)
        let raw = folder.rawValue
        var status = stat()
        try check("fstat") { fstat(raw, &status) }
        guard status.st_uid == geteuid() else { throw SystemCallError(call: "fstat", number: EPERM) }
        guard status.st_mode & 0o077 != 0 else { return folder }
        // A shared folder such as /tmp is not ours to close, even if we could.
        guard status.st_mode & S_ISVTX == 0 else { throw SystemCallError(call: "fchmod", number: EPERM) }
        try check("fchmod") { fchmod(raw, 0o700) }
        return folder
    }

    private static func makeFolder(_ path: String) throws(SystemCallError) {
        do throws(SystemCallError) {
            try check("mkdir") { mkdir(path, 0o700) }
        } catch {
            if error.number == EEXIST { return }
            let parent = SocketPath(path).folder
            guard error.number == ENOENT, parent != path, parent != "." else { throw error }
            try makeFolder(parent)
            // Somebody else may have made it meanwhile.
            if mkdir(path, 0o700) == -1 && errno != EEXIST { throw SystemCallError(call: "mkdir", number: errno) }
        }
    }

    /// Removes the socket that an earlier service left. Anything else of that name stays, and `bind` fails.
    private static func removeSocket(_ name: String, in folder: borrowing Descriptor) throws(SystemCallError) {
        let raw = folder.rawValue
        var status = stat()
        guard fstatat(raw, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { return }
        try check("unlinkat") { unlinkat(raw, name, 0) }
    }
}
