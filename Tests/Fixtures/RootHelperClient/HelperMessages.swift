// What tests ask of the root helper, and what it answers: one JSON value a packet.

/// A file system of its own disk.
package struct FileSystemOptions: Codable, Hashable, Sendable {
    package enum Kind: String, Codable, CaseIterable, Sendable {
        case ext4
        /// As small machines and containers have it.
        case ext4WithoutJournal
        case xfs
        case btrfs
        case tmpfs
    }

    /// More would be memory that a test takes from all others.
    package static let bytesMax: Int64 = 4 << 30

    package var kind: Kind
    package var bytes: Int64
    /// The disk keeps what is written in a cache of its own until it is told to flush, as real ones do: a power cut
    /// loses what was not flushed. Without it only the kernel's own memory is lost.
    package var hasWriteCache: Bool

    package init(_ kind: Kind = .ext4, bytes: Int64, hasWriteCache: Bool = false) {
        self.kind = kind
        self.bytes = bytes
        self.hasWriteCache = hasWriteCache
    }
}

/// The two machines of a network, joined by a cable.
package enum NetworkSide: String, Codable, CaseIterable, Sendable {
    /// Where the service runs: 10.77.0.2, with a default route to the world.
    case device
    /// Where servers are: 10.77.0.1.
    case world

    package var address: String {
        switch self {
        case .device: "10.77.0.2"
        case .world: "10.77.0.1"
        }
    }
}

/// What happens to the device's side of a network.
package enum NetworkChange: Codable, Hashable, Sendable {
    /// The cable is pulled, or put back; the kernel then forgets the routes through it.
    case link(isUp: Bool)
    case address(isThere: Bool)
    /// The way to everything beyond the cable.
    case defaultRoute(isThere: Bool)
    /// What comes to the device, in bytes a second; nil is as quick as it goes.
    case rate(bytesPerSecond: Int?)
}

/// What root does for a test. Each connection has one file system, one network or one program, which ends with it.
package enum HelperRequest: Codable, Hashable, Sendable {
    case describe
    case makeFileSystem(FileSystemOptions)
    /// Everything that was not flushed is gone, and every call fails from now on. `seed`: the disk had written some of
    /// its cache, another part for each number; nil: nothing of it.
    case cutPower(seed: UInt64?)
    /// Unmounts, and mounts again as after a start of the machine. Nobody may use the file system any more.
    case mountAgain
    case makeNetwork
    case changeNetwork(NetworkChange)
    /// A socket that listens at a side's address; it comes with the answer. Port 0 is any free one.
    case listen(NetworkSide, port: UInt16)
    /// A connection to a port of a side's own 127.0.0.1; its socket comes with the answer.
    case connect(NetworkSide, port: UInt16)
    /// A datagram socket of the world, which comes with the answer: programs that are started on the device's side from
    /// now on send their questions for names there.
    case takeNameQuestions
    /// Runs a program with the four descriptors that come along: 0, 1, 2 and its folder.
    case run(network: Int, NetworkSide, path: String, arguments: [String], environment: [String: String])
    /// Sends a signal to the program of this connection.
    case signal(Int32)
}

/// What the helper can be asked for.
package enum HelperService: String, Codable, CaseIterable, Sendable {
    case fileSystems
    case networks
}

package enum HelperReply: Codable, Hashable, Sendable {
    /// Why a service is not to be had on this machine; empty where all are.
    case described(missing: [HelperService.RawValue: String])
    case done
    /// The folder it is mounted at, which belongs to the user of the tests.
    case fileSystem(path: String)
    case network(number: Int)
    /// It comes along.
    case socket(port: UInt16)
    case started(process: Int32)
    case exited(status: Int32)
    case killed(signal: Int32)
    case failed(String)
}
