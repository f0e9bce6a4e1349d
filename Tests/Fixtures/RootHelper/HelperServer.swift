// The helper's process: starts the tests, serves them, and ends with them.
internal import AssetsOS
internal import CRootHelper
internal import Glibc
internal import RootHelperClient

/// Who the tests run as, and where they may find what is made for them.
struct HelperPlace {
    let user: uid_t
    /// Root's own; the user can pass through it only.
    let folder: String
    var socket: String { folder + "/socket" }
}

/// One thread, one poll: requests are short, and a test that waits for a file system waits for nothing else.
final class HelperServer {
    private static let backlog: Int32 = 64
    /// Tests run a few at a time; each has a handful of connections.
    private static let connectionsMax = 256

    private let place: HelperPlace
    private let missing: [HelperService: String]
    private let listener: Descriptor
    private let tests: ChildProcess
    private let signals: TakenSignals
    private var connections: [ServedConnection] = []
    private var networks = NetworkTable()
    private var number = 0

    /// Runs the command to its end and returns its status.
    static func run(_ words: [String]) throws -> Int32 {
        guard words.count > 5, words[0] == "--user", let user = uid_t(words[1]), words[2] == "--folder",
            words[4] == "--", words[5].hasPrefix("/")
        else { throw HelperError("wrong arguments; the path of the command is absolute") }
        guard geteuid() == 0 else { throw HelperError("only root can serve") }
        guard user != 0 else { throw HelperError("tests do not run as root") }
        // A helper that was killed leaves empty folders; nobody finds those of another.
        let place = HelperPlace(user: user, folder: "\(words[3])-\(getpid())")
        return try HelperServer(place, command: Array(words[5...])).serve()
    }

    private init(_ place: HelperPlace, command: [String]) throws {
        self.place = place
        signals = try TakenSignals([SIGTERM, SIGINT, SIGHUP])
        try check("mkdir") { mkdir(place.folder, 0o711) }
        missing = HelperService.missing()
        listener = try UnixSocket.make(.sequencedPackets)
        try UnixSocket.bind(listener, to: place.socket)
        let (raw, backlog) = (listener.rawValue, Self.backlog)
        try check("chown") { chown(place.socket, place.user, place.user) }
        try check("listen") { listen(raw, backlog) }
        try UnixSocket.setNonblocking(listener)
        tests = try ChildProcess(
            ProgramStart(
                path: command[0], arguments: Array(command.dropFirst()),
                environment: ProcessEnvironment.current.merging([HelperPacket.variable: place.socket]) { $1 },
                descriptors: [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]))
    }

    private func serve() throws -> Int32 {
        defer {
            for connection in connections { connection.close() }
            unlink(place.socket)
            rmdir(place.folder)
        }
        while true {
            var watched = [listener.rawValue, tests.handle.rawValue, signals.descriptor].map(Self.readable)
            for connection in connections {
                watched.append(Self.readable(connection.socket))
                // A negative number is passed over by poll.
                watched.append(Self.readable(connection.program))
            }
            try check("poll") { poll(&watched, nfds_t(watched.count), -1) }
            if watched[1].revents != 0 { break }
            // Passed on to the tests, whose end is ours.
            for signal in signals.take() { tests.sendToGroup(signal: signal) }
            for (index, connection) in connections.enumerated() {
                if watched[4 + 2 * index].revents != 0 { connection.programEnded() }
                if watched[3 + 2 * index].revents != 0 { connection.answer(networks: &networks) }
            }
            connections.removeAll { $0.isClosed }
            if watched[0].revents != 0 { try acceptWaiting() }
        }
        switch tests.wait() {
        case .exited(let status): return status
        case .killed(let signal): return 128 + signal
        }
    }

    private static func readable(_ descriptor: Int32) -> pollfd {
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    }

    private func acceptWaiting() throws {
        while let socket = try UnixSocket.accept(listener) {
            guard try UnixSocket.peerCredentials(socket).user == place.user, connections.count < Self.connectionsMax
            else { continue }
            number += 1
            connections.append(ServedConnection(consume socket, number: number, place: place, missing: missing))
        }
    }
}

extension HelperService {
    /// What cannot be had here, and why; mounts are this process's own from now on.
    fileprivate static func missing() -> [HelperService: String] {
        var missing: [HelperService: String] = [:]
        missing[.fileSystems] = reason { try MountedFileSystem.prepare() }
        missing[.networks] = reason { try NetworkPair.prepare() }
        return missing
    }

    private static func reason(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            return "\(error)"
        }
    }
}
