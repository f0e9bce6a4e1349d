// The port of a server, which can be closed for a while and opened again.
internal import AssetsOS
internal import Glibc

/// A listening socket of this machine. Used on the server's loop only, once it runs.
final class ListeningSocket {
    /// Connections that the kernel keeps while all of ours are taken.
    private static let backlog: Int32 = 128

    let port: UInt16
    private let address: String
    private(set) var descriptor: Descriptor
    private var isBound = true

    /// `port` 0 takes a free one.
    init(address: String, port: UInt16) throws(SystemCallError) {
        let socket = try Self.bound(to: address, port)
        self.address = address
        self.port = try Self.port(of: socket)
        descriptor = socket
        let fd = descriptor.rawValue
        try check("listen") { Glibc.listen(fd, Self.backlog) }
    }

    /// Connections are refused from now on. The port stays ours by a socket that does not listen.
    func close() {
        // Two sockets may have one port while neither listens.
        shutdown(descriptor.rawValue, Int32(SHUT_RDWR))
        rebind()
    }

    /// Opens the port again; false when that has to be tried later.
    func listen() -> Bool {
        if !isBound { rebind() }
        return isBound && Glibc.listen(descriptor.rawValue, Self.backlog) == 0
    }

    private func rebind() {
        do throws(SystemCallError) {
            descriptor = try Self.bound(to: address, port)
            isBound = true
        } catch {
            // Somebody was quicker to take the port.
            isBound = false
        }
    }

    private static func bound(to address: String, _ port: UInt16) throws(SystemCallError) -> Descriptor {
        var v4 = sockaddr_in()
        v4.sin_family = sa_family_t(AF_INET)
        v4.sin_port = port.bigEndian
        var v6 = sockaddr_in6()
        v6.sin6_family = sa_family_t(AF_INET6)
        v6.sin6_port = port.bigEndian
        if inet_pton(AF_INET, address, &v4.sin_addr) == 1 { return try bound(to: v4, family: AF_INET) }
        guard inet_pton(AF_INET6, address, &v6.sin6_addr) == 1 else {
            throw SystemCallError(call: "bind", number: EINVAL)
        }
        return try bound(to: v6, family: AF_INET6)
    }

    private static func bound<Address>(to address: Address, family: Int32) throws(SystemCallError) -> Descriptor {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let socket = Descriptor(owning: try check("socket") { Glibc.socket(family, type, 0) })
        let fd = socket.rawValue
        var on: Int32 = 1
        try check("setsockopt") {
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout.size(ofValue: on)))
        }
        try check("bind") {
            withUnsafePointer(to: address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(fd, $0, socklen_t(MemoryLayout<Address>.size))
                }
            }
        }
        return socket
    }

    /// The port stands at the same place in the addresses of both families.
    private static func port(of socket: borrowing Descriptor) throws(SystemCallError) -> UInt16 {
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout.size(ofValue: address))
        let fd = socket.rawValue
        try check("getsockname") {
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(fd, $0, &length) }
            }
        }
        return UInt16(bigEndian: address.sin6_port)
    }
}
