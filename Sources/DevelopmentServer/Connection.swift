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
        case sending
        case stalled
        /// The answer was the last; what the peer still sends is thrown away, so that the kernel does not answer it
        /// with a reset that overtakes our answer.
        case lingering
        case closed
    }

    private static let lingerMax = Duration.seconds(2)
    /// Bytes of a file that are read at once for TLS.
    private static let chunkMax = 256 << 10
    /// Bytes sent before other connections have their turn.
    private static let turnMax = 1 << 20
    /// A throttled answer is sent in some 20 pieces a second.
    private static let throttlePieces: Int64 = 20

    let number: Int
    let stream: Stream
    private let site: Site
    /// How long a client may take for a request, or for taking bytes of the answer.
    private let idleMax: Duration
    private var phase = Phase.receiving
    private var input: [UInt8] = []
    private var response: Response?
    private var faults = AppliedFaults()
    private var record = AccessRecord(
        time: .zero, connection: 0, method: "", path: "", range: nil, status: 0, bytesSent: 0, isComplete: false,
        fault: "")
    private var headSent = 0
    /// Bytes read from the file and not sent yet; TLS only.
    private var chunk: ArraySlice<UInt8> = []
    private var sendingSince = Duration.zero
    /// When the connection is closed for doing nothing; nil while a fault stalls it.
    private(set) var deadline: Duration?

    init(number: Int, stream: Stream, site: Site, idleMax: Duration, now: Duration) {
        self.number = number
        self.stream = stream
        self.site = site
        self.idleMax = idleMax
        deadline = now + idleMax
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
        if phase == .sending || phase == .stalled { finishRecord(isComplete: false) }
        phase = .closed
        response = nil
    }

    // MARK: Receiving

    private func receive(now: Duration) -> Wait? {
        do throws(RequestFault) {
            if let (head, length) = try RequestParser.parse(input) {
                input.removeFirst(length)
                begin(head, now: now)
                return nil
            }
        } catch {
            let response = Response.plain(error.status, head: nil, now: site.now)
            begin(response, AppliedFaults(), method: "", path: "", range: nil, now: now)
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

    private func begin(_ head: RequestHead, now: Duration) {
        let (response, faults) = site.respond(to: head)
        begin(response, faults, method: head.method, path: head.path, range: head.range, now: now)
    }

    private func begin(
        _ response: Response, _ faults: AppliedFaults, method: String, path: String, range: String?, now: Duration
    ) {
        self.response = response
        self.faults = faults
        record = AccessRecord(
            time: .zero, connection: number, method: method, path: path, range: range, status: response.status,
            bytesSent: 0, isComplete: false, fault: faults.description)
        headSent = 0
        sendingSince = now
        deadline = now + idleMax
        phase = .sending
    }

    // MARK: Sending

    private func send(now: Duration, turn: inout Int) -> Wait? {
        guard let response else { return .closed }
        if headSent < response.head.count { return sendHead(response, now: now, turn: &turn) }
        if let wait = applyFault(response) { return wait }
        guard response.remaining > 0, let file = response.file else { return finish(response, now: now) }
        var count = min(response.remaining, Int64(turn))
        for limit in [faults.closeAfter, faults.stallAfter] {
            if let limit { count = min(count, limit - record.bytesSent) }
        }
        if let rate = faults.bytesPerSecond {
            let (allowed, next) = throttled(rate, now: now)
            guard allowed > 0 else { return .time(next) }
            count = min(count, allowed)
        }
        switch sendFile(file, from: response.offset, count: Int(count)) {
        case .bytes(let sent):
            self.response?.offset += Int64(sent)
            self.response?.remaining -= Int64(sent)
            record.bytesSent += Int64(sent)
            turn -= sent
            deadline = now + idleMax
            return nil
        case .awaitsRead: return .readable
        case .awaitsWrite: return .writable
        case .ended: return .closed
        }
    }

    private func sendHead(_ response: Response, now: Duration, turn: inout Int) -> Wait? {
        let result = response.head.withUnsafeBytes { stream.write(UnsafeRawBufferPointer(rebasing: $0[headSent...])) }
        switch result {
        case .bytes(let count):
            headSent += count
            turn -= count
            deadline = now + idleMax
            return nil
        case .awaitsRead: return .readable
        case .awaitsWrite: return .writable
        case .ended: return .closed
        }
    }

    private func sendFile(_ file: ServedFile, from offset: Int64, count: Int) -> StreamResult {
        if stream.takesFiles { return stream.send(file.descriptor, from: offset, count: count) }
        if chunk.isEmpty { chunk = Self.read(file.descriptor, from: offset, count: min(count, Self.chunkMax))[...] }
        // The file became shorter while it was sent: the answer cannot be completed.
        guard !chunk.isEmpty else { return .ended }
        let result = chunk.prefix(count).withUnsafeBytes { stream.write($0) }
        if case .bytes(let sent) = result { chunk.removeFirst(sent) }
        return result
    }

    private static func read(_ file: borrowing Descriptor, from offset: Int64, count: Int) -> [UInt8] {
        let fd = file.rawValue
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var result = pread(fd, buffer.baseAddress, count, off_t(offset))
            while result == -1 && errno == EINTR { result = pread(fd, buffer.baseAddress, count, off_t(offset)) }
            initialized = max(0, result)
        }
    }

    private func finish(_ response: Response, now: Duration) -> Wait? {
        finishRecord(isComplete: true)
        self.response = nil
        chunk = []
        if response.closes {
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

    // MARK: Faults

    /// Closes or stalls once enough of the body was sent; nothing happens to bodies that are shorter.
    private func applyFault(_ response: Response) -> Wait? {
        guard response.remaining > 0 else { return nil }
        if let limit = faults.closeAfter, record.bytesSent >= limit { return .closed }
        if let limit = faults.stallAfter, record.bytesSent >= limit {
            phase = .stalled
            deadline = nil
            return .hangUp
        }
        return nil
    }

    /// How much may be sent now, and when more.
    private func throttled(_ rate: Int64, now: Duration) -> (allowed: Int64, next: Duration) {
        let piece = max(1, rate / Self.throttlePieces)
        let (seconds, attoseconds) = (now - sendingSince).components
        let elapsed = Double(seconds) + Double(attoseconds) / 1e18
        let due = Double(rate) * elapsed + Double(piece)
        let allowed = due >= 9e18 ? Int64.max : Int64(due) - record.bytesSent
        if allowed >= min(piece, response?.remaining ?? piece) { return (allowed, now) }
        return (0, now + .nanoseconds(Int64(1e9 * Double(piece - max(0, allowed)) / Double(rate)) + 1))
    }
}
