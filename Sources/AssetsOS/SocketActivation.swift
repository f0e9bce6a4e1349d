// Sockets that the service manager opened before it started us: LISTEN_FDS and its neighbours.
internal import CLinux
internal import Glibc

/// Sockets handed over by the service manager, each taken once.
package struct SocketActivation: ~Copyable {
    /// The first descriptor that the protocol uses.
    package static let firstDescriptor: Int32 = 3
    /// More than this is no honest count.
    private static let countMax: Int32 = 64

    private var waiting: [(name: String, descriptor: Int32)] = []

    /// Takes over what `environment` announces for `process`; nothing when it speaks of another process.
    package init(
        environment: [String: String], process: Int32 = getpid(), firstDescriptor: Int32 = Self.firstDescriptor
    ) {
        guard environment["LISTEN_PID"] == String(process),
            let count = environment["LISTEN_FDS"].flatMap(Int32.init), (1...Self.countMax).contains(count)
        else { return }
        let names = environment["LISTEN_FDNAMES"]?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        for index in 0..<count {
            let descriptor = firstDescriptor + index
            // Not open: the environment lies, or somebody closed it.
            guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) != -1 else { continue }
            waiting.append((Int(index) < names.count ? String(names[Int(index)]) : "unknown", descriptor))
        }
    }

    deinit {
        for socket in waiting { _ = close(socket.descriptor) }
    }

    /// Names of the sockets that were not taken yet, in their order.
    package var names: [String] { waiting.map(\.name) }

    /// The first listening unix stream socket called `name`, or the first of any name.
    package mutating func takeListener(named name: String? = nil) -> Descriptor? {
        let found = waiting.firstIndex { socket in
            (name == nil || socket.name == name) && Self.isListener(socket.descriptor)
        }
        return found.map { Descriptor(owning: waiting.remove(at: $0).descriptor) }
    }

    private static func isListener(_ descriptor: Int32) -> Bool {
        option(SO_ACCEPTCONN, of: descriptor) == 1 && option(SO_DOMAIN, of: descriptor) == AF_UNIX
            && option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}
