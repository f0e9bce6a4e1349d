// Two network namespaces and the cable between them.
internal import AssetsOS
internal import CRootHelper
internal import Glibc
internal import RootHelperClient

/// Two machines, as far as sockets can tell.
final class NetworkPair {
    private static let interface = "eth0"
    private static let prefix = 24
    /// A bucket holds what arrives in a hundredth of a second, but never less than a few packets.
    private static let burstsASecond = 100
    private static let burstMin = 32 << 10

    private static let namePort: UInt16 = 53

    private let own: Descriptor
    private let device: Descriptor
    private let world: Descriptor
    /// Says which name server the device's programs ask; nil for that of the machine.
    private var nameFile: String?

    /// Looks whether there can be any.
    static func prepare() throws {
        for program in ["ip", "tc", "setpriv", "unshare", "mount"] { _ = try Command.find(program) }
        let own = try current()
        _ = try make(from: own)
    }

    init() throws {
        own = try Self.current()
        device = try Self.make(from: own)
        world = try Self.make(from: own)
        let far = "/proc/\(getpid())/fd/\(device.rawValue)"
        try ip(.world, "link", "add", Self.interface, "type", "veth", "peer", "name", "far0")
        try ip(.world, "link", "set", "far0", "netns", far)
        try ip(.device, "link", "set", "far0", "name", Self.interface)
        for side in NetworkSide.allCases {
            try ip(side, "link", "set", "lo", "up")
            try ip(side, "address", "add", "\(side.address)/\(Self.prefix)", "dev", Self.interface)
            try ip(side, "link", "set", Self.interface, "up")
        }
        try apply(.defaultRoute(isThere: true))
    }

    private static func current() throws -> Descriptor {
        Descriptor(owning: try check("open") { open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC) })
    }

    private static func make(from own: borrowing Descriptor) throws -> Descriptor {
        try check("unshare") { croot_new_network() }
        let made = try current()
        let raw = own.rawValue
        try check("setns") { croot_enter_network(raw) }
        return made
    }

    /// Runs `body` on a side: sockets and programs that it makes stay there.
    func inside<Value: ~Copyable>(_ side: NetworkSide, _ body: () throws -> Value) throws -> Value {
        let network = side == .device ? device.rawValue : world.rawValue
        try check("setns") { croot_enter_network(network) }
        defer {
            // A helper in the wrong network must not go on.
            guard croot_enter_network(own.rawValue) == 0 else { preconditionFailure("the way back is shut: \(errno)") }
        }
        return try body()
    }

    private func ip(_ side: NetworkSide, _ arguments: String...) throws {
        try inside(side) { try Command.run("ip", arguments) }
    }

    /// Carries out a change; one that is there already is an error.
    func apply(_ change: NetworkChange) throws {
        let address = "\(NetworkSide.device.address)/\(Self.prefix)"
        switch change {
        case .link(let isUp): try ip(.device, "link", "set", Self.interface, isUp ? "up" : "down")
        case .address(let isThere):
            try ip(.device, "address", isThere ? "add" : "del", address, "dev", Self.interface)
        case .defaultRoute(let isThere):
            try ip(.device, "route", isThere ? "add" : "del", "default", "via", NetworkSide.world.address)
        case .rate(nil):
            try inside(.world) { try Command.run("tc", ["qdisc", "del", "dev", Self.interface, "root"]) }
        case .rate(let bytesPerSecond?):
            guard bytesPerSecond > 0, bytesPerSecond <= Int(Int32.max) else {
                throw HelperError("a rate is 1 to \(Int32.max) bytes a second")
            }
            let burst = max(Self.burstMin, bytesPerSecond / Self.burstsASecond)
            try inside(.world) {
                try Command.run(
                    "tc",
                    [
                        "qdisc", "replace", "dev", Self.interface, "root", "tbf", "rate", "\(bytesPerSecond)bps",
                        "burst", "\(burst)", "latency", "100ms",
                    ])
            }
        }
    }

    /// A listening socket at a side's address.
    func listen(on side: NetworkSide, port: UInt16) throws -> (socket: SharedDescriptor, port: UInt16) {
        let bound = try bind(on: side, port: port, Int32(SOCK_STREAM.rawValue))
        let raw = bound.socket.rawValue
        try check("listen") { Glibc.listen(raw, SOMAXCONN) }
        return bound
    }

    /// A connection to a port of a side's own 127.0.0.1.
    func connect(on side: NetworkSide, port: UInt16) throws -> SharedDescriptor {
        let socket = try make(Int32(SOCK_STREAM.rawValue), on: side)
        let raw = socket.rawValue
        _ = try Self.withAddress("127.0.0.1", port) { address, length in
            try check("connect") { Glibc.connect(raw, address, length) }
        }
        return SharedDescriptor(socket)
    }

    /// The socket of a name server in the world. Programs that are started on the device's side from now on ask it.
    ///
    /// - Parameter file: where its address is written down.
    func takeNameQuestions(naming file: String) throws -> (socket: SharedDescriptor, port: UInt16) {
        let bound = try bind(on: .world, port: Self.namePort, Int32(SOCK_DGRAM.rawValue))
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC
        let descriptor = Descriptor(owning: try check("open") { open(file, flags, 0o644) })
        let (raw, text) = (descriptor.rawValue, "nameserver \(NetworkSide.world.address)\n")
        try check("write") { write(raw, text, text.utf8.count) }
        nameFile = file
        return bound
    }

    /// The command that runs another one where it finds the side's name server.
    func asking(_ command: [String], on side: NetworkSide) throws -> [String] {
        guard side == .device, let nameFile else { return command }
        let mount = "\(try Command.find("mount")) --bind \"$0\" /etc/resolv.conf && exec \"$@\""
        return [
            try Command.find("unshare"), "--mount", "--propagation", "private", try Command.find("sh"), "-c", mount,
            nameFile,
        ] + command
    }

    private func bind(
        on side: NetworkSide, port: UInt16, _ type: Int32
    ) throws -> (socket: SharedDescriptor, port: UInt16) {
        let socket = try make(type, on: side)
        let raw = socket.rawValue
        let bound = try Self.withAddress(side.address, port) { address, length in
            var length = length
            try check("bind") { Glibc.bind(raw, address, length) }
            try check("getsockname") { getsockname(raw, address, &length) }
        }
        return (SharedDescriptor(socket), bound)
    }

    private func make(_ type: Int32, on side: NetworkSide) throws -> Descriptor {
        try inside(side) {
            Descriptor(owning: try check("socket") { Glibc.socket(AF_INET, type | Int32(SOCK_CLOEXEC.rawValue), 0) })
        }
    }

    /// Returns the port that the address has afterwards.
    private static func withAddress(
        _ words: String, _ port: UInt16, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) throws -> Void
    ) throws -> UInt16 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard inet_pton(AF_INET, words, &address.sin_addr) == 1 else { preconditionFailure("\(words) is no address") }
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// Kills whatever still runs on its sides; the namespaces go with their last user.
    func remove() {
        if let nameFile { unlink(nameFile) }
        let numbers = [device.rawValue, world.rawValue].compactMap { Self.inode("/proc/self/fd/\($0)") }
        guard let folder = opendir("/proc") else { return }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard let process = Int32(name), let number = Self.inode("/proc/\(process)/ns/net") else { continue }
            if numbers.contains(number) { kill(process, SIGKILL) }
        }
    }

    private static func inode(_ path: String) -> ino_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_ino : nil
    }
}
