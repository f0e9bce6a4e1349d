// One connection of a client, as the service sees it.
internal import AssetsModel
internal import AssetsOS
internal import AssetsWire

/// A connection with what the service knows of who is behind it.
///
/// Used on the service's executor only.
final class Peer: @unchecked Sendable {
    // Sendable because every access is on the service's loop: FrameConnection checks it with each call.

    /// Who is behind a connection.
    enum Origin {
        /// A process of the device's user; the path of its executable when the connection was made.
        case process(pid: Int32, executable: String)
        /// A socket that an extension inherited.
        case extensionOf(app: String)
    }

    /// Events that wait for a client that takes none, beside merged progress; more and it is cut off.
    private static let heldEventsMax = 4096

    let number: Int
    let origin: Origin
    /// Developer Mode: the app that the connection says it speaks for.
    var declaredApp: String?
    /// The app that was accepted, once it was.
    var acceptedApp: String?
    var session: String?
    var connection: FrameConnection?
    /// Called once when the connection has ended.
    var whenEnded: [@Sendable (isolated AssetsService) -> Void] = []
    private var drainWaiters: [CheckedContinuation<Void, Never>] = []
    /// Events that go out together, when what happens now is done.
    private var heldEvents: [ManagerInterface.Event] = []
    private var isFlushPlanned = false
    private var flushTimer: TimerToken?
    private var pacing = EventPacing()
    private let loop: EventLoop

    init(number: Int, origin: Origin, loop: EventLoop) {
        self.number = number
        self.origin = origin
        self.loop = loop
    }

    /// The client's number; nil for an extension, whose socket was inherited.
    var process: Int32? {
        switch origin {
        case .process(let pid, _): pid
        case .extensionOf: nil
        }
    }

    var isExtension: Bool {
        switch origin {
        case .process: false
        case .extensionOf: true
        }
    }

    var isOpen: Bool { connection?.isOpen == true }

    // MARK: Answers

    /// The last or only reply; the next call may come.
    func reply<M: WireMethod>(_ method: M.Type, _ value: M.Reply, to header: CallHeader) {
        if !header.oneway { send { () throws(WireError) in try WireCodec.reply(method, value) } }
        connection?.release()
    }

    /// One of several replies.
    func stream<M: WireMethod>(_ method: M.Type, _ value: M.Reply) {
        send { () throws(WireError) in try WireCodec.reply(method, value, continues: true) }
    }

    func refuse(_ header: CallHeader, _ error: AssetsError) {
        let refusal = Refusal(code: error.code.rawValue, reason: error.reason, remedy: error.remedy)
        if !header.oneway { connection?.send(WireCodec.refusal(of: header.method, refusal)) }
        connection?.release()
    }

    private func send(_ encode: () throws(WireError) -> [UInt8]) {
        do throws(WireError) { connection?.send(try encode()) } catch { connection?.finish() }
    }

    // MARK: Back-pressure

    /// Returns when the client has taken what was sent, or is gone.
    func drained() async {
        await withCheckedContinuation { continuation in
            // Asked in here, because this body may run as a job of its own, after others.
            if let connection, connection.isOpen, connection.isCongested {
                drainWaiters.append(continuation)
            } else {
                continuation.resume()
            }
        }
    }

    func didDrain() {
        let waiters = drainWaiters
        drainWaiters = []
        for waiter in waiters { waiter.resume() }
        flushEvents()
    }

    /// Sends an event soon, with others of this moment, or once the client takes something again; progress is merged for
    /// each download. What nobody answers may wait a little for more.
    func tell(_ event: ManagerInterface.Event) {
        guard let connection, connection.isOpen else { return }
        defer { planFlush(isAnswered: !event.isReport) }
        if event.kind == "progress", let id = event.download?.uniqueIdentifier,
            let index = heldEvents.lastIndex(where: { $0.download?.uniqueIdentifier == id }),
            heldEvents[index].kind == "progress"
        {
            let before = heldEvents[index].written ?? 0
            heldEvents[index] = event
            heldEvents[index].written = before + (event.written ?? 0)
            return
        }
        heldEvents.append(event)
        if connection.isCongested, heldEvents.count > Self.heldEventsMax { connection.finish() }
    }

    private func planFlush(isAnswered: Bool) {
        guard !isFlushPlanned, connection?.isCongested == false else { return }
        if let end = pacing.deadline(isAnswered: isAnswered, at: loop.now) {
            guard flushTimer == nil else { return }
            flushTimer = loop.schedule(at: end) { [self] in
                flushTimer = nil
                flushEvents()
            }
            return
        }
        isFlushPlanned = true
        loop.perform { [self] in
            isFlushPlanned = false
            flushEvents()
        }
    }

    private func flushEvents() {
        guard !heldEvents.isEmpty, connection?.isCongested == false else { return }
        if let flushTimer { loop.cancel(flushTimer) }
        flushTimer = nil
        pacing.sent(at: loop.now)
        let events = heldEvents
        heldEvents = []
        for page in stride(from: 0, to: events.count, by: WireLimit.pageMax) {
            let page = Array(events[page..<min(page + WireLimit.pageMax, events.count)])
            stream(ManagerInterface.Events.self, .init(events: page))
        }
    }
}

extension ManagerInterface.Event {
    /// Nobody waits for it or answers it.
    fileprivate var isReport: Bool { ["began", "paused", "progress"].contains(kind) }
}
