// One client: reads requests, sends answers, applies faults. Never blocks; says what it waits for.
internal import AssetsOS
internal import Glibc

/// A connection of the server. Used on the server's loop only.
final class Connection {
    /// What has to happen before `advance` is called again.
    enum Wait: Equatable {
        case readable
        case writable
        /// Only the peer's leaving matters.
        case hangUp
        case time(Duration)
        /// Nothing more; the owner drops the connection.
        case closed
    }

    private enum Phase: Equatable {
        case receiving
        /// The answer goes out at this time.
        case waiting(Duration)
        case sending
        case stalled
        /// The answer was the last; what the peer still sends is thrown away, so that the kernel does not answer it
        /// with a reset that overtakes our answer.
        case lingering
        case closed
    }

    private static let lingerMax = Duration.seconds(2)
    /// Bytes sent before other connections have their turn.
    private static let turnMax = 1 << 20

    let number: Int
    let stream: Stream
    private let site: Site
    /// How long a client may take for a request, or for taking bytes of the answer.
    private let idleMax: Duration
    private var phase = Phase.receiving
    private var input: [UInt8] = []
    private var requests = 0
    private var answer: AnswerSender?
    private var record = AccessRecord(
        time: .zero, connection: 0, method: "", path: "", range: nil, status: 0, bytesSent: 0, isComplete: false,
        fault: "")
    /// When the connection is closed for doing nothing; nil while a fault stalls it.
    private(set) var deadline: Duration?
    /// A fault wants the port closed for so long.
    private(set) var refusal: Duration?

    init(number: Int, stream: Stream, site: Site, idleMax: Duration, now: Duration) {
        self.number = number
        self.stream = stream
        self.site = site
        self.idleMax = idleMax
        deadline = now + idleMax
        stream.chooseFault = { [site] host in site.faults(forHost: host) }
    }

    /// Goes on until it would have to wait. `now` is the process clock.
    func advance(now: Duration) -> Wait {
        var turn = Self.turnMax
        while true {
            // Others have their turn; the loop comes back at once, since the socket still takes bytes.
            guard turn > 0 else { return .writable }
            let wait: Wait? =
                switch phase {
                case .receiving: receive(now: now)
                case .waiting(let time): begin(at: time, now: now)
                case .sending: send(now: now, turn: &turn)
                case .lingering: linger()
                case .stalled, .closed: .closed
                }
            guard let wait else { continue }
            if wait == .closed { close() }
            return wait
        }
    }

    /// Ends at once; an answer that was under way is logged as cut short.
    func close() {
        switch phase {
        case .waiting, .sending, .stalled: finishRecord(isComplete: false)
        case .receiving: logHandshake()
        case .lingering, .closed: break
        }
        phase = .closed
        answer = nil
    }

    // MARK: Receiving

    private func receive(now: Duration) -> Wait? {
        do throws(RequestFault) {
            if let (head, length) = try RequestParser.parse(input) {
                input.removeFirst(length)
                return begin(head, now: now)
            }
        } catch {
            begin(Answer(.plain(error.status, to: nil)), head: nil, now: now)
            return nil
        }
        return withUnsafeTemporaryAllocation(byteCount: RequestParser.headMax, alignment: 1) { buffer in
            switch stream.read(into: buffer) {
            case .bytes(let count):
                input.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                return nil
            case .awaitsRead: return .readable
            case .awaitsWrite: return .writable
            case .ended: return .closed
            }
        }
    }

    private func begin(_ head: RequestHead, now: Duration) -> Wait? {
        requests += 1
        let answer = site.respond(to: head, isReused: requests > 1)
        begin(answer, head: head, now: now)
        let faults = answer.faults
        if let seconds = faults[.refuse] { refusal = .seconds(seconds) }
        if refusal != nil || faults.has(.drop) || faults.has(.dropReused) {
            record.status = 0
            return .closed
        }
        if faults.has(.hang) {
            record.status = 0
            return stall()
        }
        if let seconds = faults[.wait] {
            deadline = nil
            phase = .waiting(now + .seconds(seconds))
        }
        return nil
    }

    private func begin(_ answer: Answer, head: RequestHead?, now: Duration) {
        self.answer = AnswerSender(answer.response, file: answer.file, faults: answer.faults, now: now, date: site.now)
        record = AccessRecord(
            time: .zero, connection: number, method: head?.method ?? "", path: head?.path ?? "", range: head?.range,
            status: answer.response.status, bytesSent: 0, isComplete: false, fault: answer.faults.description)
        deadline = now + idleMax
        phase = .sending
    }

    private func begin(at time: Duration, now: Duration) -> Wait? {
        guard now >= time else { return .time(time) }
        deadline = now + idleMax
        phase = .sending
        return nil
    }

    // MARK: Sending

    private func send(now: Duration, turn: inout Int) -> Wait? {
        guard let step = answer?.step(on: stream, now: now, most: turn) else { return .closed }
        switch step {
        case .sent(let count):
            record.bytesSent = answer?.fileSent ?? 0
            turn -= count
            deadline = now + idleMax
            return nil
        case .awaitsRead: return .readable
        case .awaitsWrite: return .writable
        case .awaits(let time): return .time(time)
        case .whole: return finish(now: now)
        case .broken: return .closed
        case .reset:
            stream.resetWhenClosed()
            return .closed
        case .stalled: return stall()
        }
    }

    private func stall() -> Wait {
        phase = .stalled
        deadline = nil
        return .hangUp
    }

    private func finish(now: Duration) -> Wait? {
        finishRecord(isComplete: true)
        let closes = answer?.response.closes ?? true
        answer = nil
        if closes {
            stream.finishWriting()
            deadline = now + Self.lingerMax
            phase = .lingering
        } else {
            deadline = now + idleMax
            phase = .receiving
        }
        return nil
    }

    private func finishRecord(isComplete: Bool) {
        record.time = site.now
        record.isComplete = isComplete
        site.record(record)
    }

    /// A handshake that a fault has spoilt is worth a line; a client that merely leaves is not.
    private func logHandshake() {
        guard requests == 0, let faults = stream.fault else { return }
        site.record(
            AccessRecord(
                time: site.now, connection: number, method: "", path: "", range: nil, status: 0, bytesSent: 0,
                isComplete: false, fault: faults.description))
    }

    private func linger() -> Wait? {
        withUnsafeTemporaryAllocation(byteCount: RequestParser.headMax, alignment: 1) { buffer in
            switch stream.read(into: buffer) {
            case .bytes: nil
            case .awaitsRead: .readable
            case .awaitsWrite: .writable
            case .ended: .closed
            }
        }
    }
}
