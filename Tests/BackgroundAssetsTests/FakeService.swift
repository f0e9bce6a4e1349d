// A peer that speaks the service's side of the protocol over socket pairs, as far as a test tells it.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Foundation
internal import Testing

@testable import BackgroundAssets

/// One call that arrived.
struct FakeCall: Sendable {
    let method: String
    let frame: [UInt8]
    let socket: EntrySocket

    func parameters<M: WireMethod>(_ method: M.Type) throws -> M.Parameters {
        try frame.withUnsafeBytes { bytes in try WireCodec.decodeParameters(method, bytes) }
    }

    func reply<M: WireMethod>(_ method: M.Type, _ value: M.Reply, continues: Bool = false) {
        do {
            socket.write(try WireCodec.reply(method, value, continues: continues))
        } catch {
            Issue.record("\(M.name) cannot be answered: \(error)")
        }
    }

    func refuse(_ code: BAErrorCode, _ reason: String = "because", remedy: String = "") {
        do {
            socket.write(
                try WireCodec.error(
                    ManagerInterface.refused, Refusal(code: code.rawValue, reason: reason, remedy: remedy)))
        } catch {
            Issue.record("a refusal cannot be sent: \(error)")
        }
    }
}

/// What the service was asked, as a test compares it.
enum Asked: Hashable, Sendable {
    case connected
    case events(String)
    case delegate(String, Bool)
    /// A delegate without a method for progress.
    case deafDelegate(String)
    case answer(String, Int64, Bool)
    case acquire(String, Int64?)
    case release(String, Int64)
    case other(String)
}

/// The service of one test.
///
/// It opens sessions, takes delegates and answers, and hands out tickets by itself; a test adds the rest with `on` and
/// sends events.
final class FakeService: ServiceConnector {
    typealias Handler = @Sendable (FakeCall) throws -> Void

    private struct Content {
        var handlers: [String: Handler] = [:]
        var sockets: [EntrySocket] = []
        var streams: [String: EntrySocket] = [:]
        var sessions = 0
        var tickets: Int64 = 0
        var isDown = false
    }
    private let content = Guarded(Content())
    let asked = EventLog<Asked>()
    let canReconnect: Bool

    init(canReconnect: Bool = true) { self.canReconnect = canReconnect }

    /// Handles a method in place of the usual.
    func on<M: WireMethod>(_ method: M.Type, _ handler: @escaping Handler) {
        content.withLock { $0.handlers[M.name] = handler }
    }

    /// Sends events to an open session.
    func send(_ events: ManagerInterface.Event..., to session: String = "s1") {
        guard let socket = content.withLock({ $0.streams[session] }) else {
            Issue.record("there is no session \(session)")
            return
        }
        FakeCall(method: "", frame: [], socket: socket).reply(
            ManagerInterface.Events.self, ManagerInterface.Events.Reply(events: events), continues: true)
    }

    func hasSession(_ name: String) -> Bool { content.withLock { $0.streams[name] != nil } }

    /// Dies: all connections end, and none can be made until `restart`.
    func die() {
        content.withLock { $0.isDown = true }
        drop()
    }

    func restart() { content.withLock { $0.isDown = false } }

    /// Ends the connections, but takes new ones at once.
    func drop() {
        let sockets = content.withLock { content in
            defer { content.sockets = []; content.streams = [:] }
            return content.sockets
        }
        for socket in sockets { socket.shutDown() }
    }

    // MARK: ServiceConnector

    func openRequests() throws -> ServiceConnection { try open() }
    func openEvents() throws -> ServiceConnection { try open() }

    private func open() throws -> ServiceConnection { ServiceConnection(descriptor: try connect()) }

    /// The client's end of a new connection.
    func connect() throws -> Descriptor {
        if content.withLock({ $0.isDown }) { throw ClientError.unreachable("the fake service is down") }
        var pair = try UnixSocket.pair()
        let socket = EntrySocket(pair.takeFirst())
        content.withLock { $0.sockets.append(socket) }
        asked.add(.connected)
        let reader = Thread {
            socket.readFrames { frame in
                self.receive(frame, on: socket)
                return true
            }
            socket.shutDown()
        }
        reader.start()
        return pair.takeSecond()
    }

    // MARK: The service's side

    private func receive(_ frame: UnsafeRawBufferPointer, on socket: EntrySocket) {
        do {
            let header = try WireCodec.decodeHeader(frame)
            let call = FakeCall(method: header.method, frame: Array(frame), socket: socket)
            let handler = content.withLock { $0.handlers[header.method] }
            if let handler {
                asked.add(.other(header.method))
                try handler(call)
            } else {
                try answer(call)
            }
        } catch {
            Issue.record("a call cannot be handled: \(error)")
        }
    }

    private func answer(_ call: FakeCall) throws {
        switch call.method {
        case ManagerInterface.Events.name:
            let name = content.withLock { content in
                content.sessions += 1
                let name = "s\(content.sessions)"
                content.streams[name] = call.socket
                return name
            }
            send(ManagerInterface.Event(kind: "session", number: 0, session: name), to: name)
            asked.add(.events(name))
        case ManagerInterface.SetDelegate.name:
            let parameters = try call.parameters(ManagerInterface.SetDelegate.self)
            let isDeaf = parameters.present && parameters.progress == false
            asked.add(
                isDeaf ? .deafDelegate(parameters.session) : .delegate(parameters.session, parameters.present))
            call.reply(ManagerInterface.SetDelegate.self, Nothing())
        case ManagerInterface.Answer.name:
            let parameters = try call.parameters(ManagerInterface.Answer.self)
            for number in (parameters.handled + parameters.notHandled).sorted() {
                asked.add(.answer(parameters.session, number, parameters.handled.contains(number)))
            }
            call.reply(ManagerInterface.Answer.self, Nothing())
        case ManagerInterface.AcquireControl.name:
            let parameters = try call.parameters(ManagerInterface.AcquireControl.self)
            let ticket = nextTicket()
            call.reply(
                ManagerInterface.AcquireControl.self, ManagerInterface.AcquireControl.Reply(ticket: ticket))
            asked.add(.acquire(parameters.session, parameters.within))
        case ManagerInterface.ReleaseControl.name:
            let parameters = try call.parameters(ManagerInterface.ReleaseControl.self)
            asked.add(.release(parameters.session, parameters.ticket))
            call.reply(ManagerInterface.ReleaseControl.self, Nothing())
        default:
            Issue.record("nobody expects \(call.method)")
            call.refuse(.downloadInvalid)
        }
    }

    func nextTicket() -> Int64 {
        content.withLock { content in
            content.tickets += 1
            return content.tickets
        }
    }
}

extension ManagerInterface.Event {
    static func granted(_ ticket: Int64) -> Self { Self(kind: "control-granted", number: 0, ticket: ticket) }
    static func refused(_ ticket: Int64, _ reason: String? = nil) -> Self {
        Self(
            kind: "control-refused", number: 0,
            failure: reason.map { WireFailure(domain: "BAErrorDomain", code: 0, reason: $0) }, ticket: ticket)
    }
    static func finished(_ download: WireDownload, number: Int64, path: String = "/file") -> Self {
        Self(kind: "finished", number: number, download: download, path: path)
    }
}
