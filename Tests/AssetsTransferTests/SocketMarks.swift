// How the kernel and the network treat what this process sends to a server.
import AssetsOS
import Glibc

/// The marks of one connection.
struct SocketMarks: Hashable {
    /// The traffic class byte.
    var network: Int32
    /// The kernel's own priority.
    var kernel: Int32

    static let ordinary = SocketMarks(network: 0, kernel: 0)
    /// Lower Effort of RFC 8622, and TC_PRIO_FILLER.
    static let discretionary = SocketMarks(network: 4, kernel: 1)

    /// Those of all connections of this process with a port of 127.0.0.1.
    static func ofConnections(to port: UInt16) throws -> [SocketMarks] {
        let names = try DeviceTree(root: "/proc/self").list("fd")
        return names.compactMap { Int32($0) }.filter { peerPort($0) == port }.map { descriptor in
            SocketMarks(
                network: option(descriptor, Int32(IPPROTO_IP), IP_TOS),
                kernel: option(descriptor, SOL_SOCKET, SO_PRIORITY))
        }
    }

    /// nil for what is no connection by IPv4.
    private static func peerPort(_ descriptor: Int32) -> UInt16? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
        }
        guard result == 0, Int32(address.sin_family) == AF_INET else { return nil }
        return UInt16(bigEndian: address.sin_port)
    }

    private static func option(_ descriptor: Int32, _ level: Int32, _ name: Int32) -> Int32 {
        var value: Int32 = -1
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, level, name, &value, &length) == 0 ? value : -1
    }
}
