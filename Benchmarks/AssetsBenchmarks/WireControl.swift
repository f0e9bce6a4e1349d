// Exclusive control at the wire: what a program without our library needs.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// A session of its own with a connection for calls.
final class WireControl {
    private let calls: ServiceConnection
    private let events: ServiceConnection
    private let session: String

    init(device: PrivateDevice) throws {
        calls = try Self.declared(device)
        events = try Self.declared(device)
        let opened = Opened()
        let reader = Reader(events, opened)
        try reader.start()
        session = try opened.wait()
    }

    func close() {
        calls.close()
        events.close()
    }

    /// A connection that speaks for the installed app.
    static func declared(_ device: PrivateDevice) throws -> ServiceConnection {
        let connection = try device.connect()
        _ = try connection.call(ManagerInterface.Declare.self, .init(app: BenchBundle.identifier))
        return connection
    }

    /// Times of taking and giving back, in microseconds.
    func times(for window: Duration) throws -> [Double] {
        let end = MonotonicClock.now + window
        var times: [Double] = []
        while true {
            let begin = MonotonicClock.now
            guard begin < end else { return times }
            let reply = try calls.call(ManagerInterface.AcquireControl.self, .init(session: session))
            guard reply.granted else { throw BenchError("exclusive control is held by somebody else") }
            _ = try calls.call(ManagerInterface.ReleaseControl.self, .init(session: session, ticket: reply.ticket))
            times.append((MonotonicClock.now - begin).microseconds)
        }
    }

    /// The sizes of what is exchanged for one such pair.
    func exchanges() throws -> [Exchange] {
        let ticket: Int64 = 1000
        let acquire = try WireCodec.call(ManagerInterface.AcquireControl.self, .init(session: session))
        let granted = try WireCodec.reply(
            ManagerInterface.AcquireControl.self, .init(ticket: ticket, granted: true))
        let release = try WireCodec.call(
            ManagerInterface.ReleaseControl.self, .init(session: session, ticket: ticket))
        let released = try WireCodec.reply(ManagerInterface.ReleaseControl.self, Nothing())
        // Each with its NUL.
        return [
            Exchange(call: acquire.count + 1, reply: granted.count + 1),
            Exchange(call: release.count + 1, reply: released.count + 1),
        ]
    }
}

/// The name of a session, once it is open.
private final class Opened: Sendable {
    private static let limit = Duration.seconds(10)
    private let name = Guarded<String?>(nil)

    func set(_ session: String) { name.withLock { $0 = session } }

    func wait() throws -> String {
        let deadline = Deadline(in: Self.limit)
        while !deadline.hasPassed {
            if let name = name.withLock({ $0 }) { return name }
            usleep(1_000)
        }
        throw BenchError("the service does not open a session")
    }
}

/// Reads a stream of events on a thread of its own until the connection is closed.
private final class Reader: Sendable {
    private let connection: ServiceConnection
    private let opened: Opened

    init(_ connection: ServiceConnection, _ opened: Opened) {
        self.connection = connection
        self.opened = opened
    }

    func start() throws { try SideThread.start { self.run() } }

    private func run() {
        // It ends with an error when the connection is closed, as it is meant to.
        try? connection.stream(ManagerInterface.Events.self, Nothing()) { reply in
            for event in reply.events where event.kind == "session" { opened.set(event.session ?? "") }
            return true
        }
    }
}
