// Sends one answer piece by piece, as quickly as its faults allow.
internal import AssetsOS
internal import Glibc

/// A file that is being sent.
final class ServedFile {
    let descriptor: Descriptor
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// An answer under way. Never blocks.
struct AnswerSender {
    /// How far one step came.
    enum Step: Equatable {
        /// Bytes of any kind were sent; there may be more to do at once.
        case sent(Int)
        /// Nothing can be sent before the socket is ready, or before a time.
        case awaitsRead
        case awaitsWrite
        case awaits(Duration)
        case whole
        /// The connection is over, or a fault wants it to be.
        case broken
        case reset
        /// Nothing more is sent, for good.
        case stalled
    }

    /// Bytes of a file that are read at once where they pass through this process.
    private static let chunkMax = 256 << 10
    /// A throttled answer is sent in some 20 pieces a second.
    private static let pieces: Int64 = 20

    let response: Response
    private let head: [UInt8]
    private let file: ServedFile?
    private let faults: AppliedFaults
    private let began: Duration
    private var headSent = 0
    private var parts: ArraySlice<BodyPart>
    /// Bytes that were taken out of the file and not sent yet.
    private var chunk: ArraySlice<UInt8> = []
    /// Bytes of the file that were sent.
    private(set) var fileSent: Int64 = 0

    /// `now` is the process clock, `date` the calendar's.
    init(_ response: Response, file: ServedFile?, faults: AppliedFaults, now: Duration, date: Duration) {
        self.response = response
        head = response.head(now: date)
        self.file = file
        self.faults = faults
        began = now
        parts = response.body[...]
    }

    /// Sends no more than `most` bytes.
    mutating func step(on stream: Stream, now: Duration, most: Int) -> Step {
        if headSent < head.count { return sendHead(on: stream, now: now) }
        guard let part = parts.first else { return .whole }
        switch part {
        case .bytes(let bytes): return send(bytes, on: stream)
        case .file(let offset, let count): return sendFile(offset, count, on: stream, now: now, most: most)
        }
    }

    private mutating func sendHead(on stream: Stream, now: Duration) -> Step {
        var end = head.count
        if let seconds = faults[.slowHead], seconds > 0 {
            let each = Duration.seconds(seconds) / head.count
            end = min(head.count, 1 + Int((now - began) / each))
            guard end > headSent else { return .awaits(began + each * (headSent + 1)) }
        }
        let result = head.withUnsafeBytes { stream.write(UnsafeRawBufferPointer(rebasing: $0[headSent..<end])) }
        return step(after: result) { $0.headSent += $1 }
    }

    private mutating func send(_ bytes: [UInt8], on stream: Stream) -> Step {
        guard !bytes.isEmpty else {
            parts.removeFirst()
            return .sent(0)
        }
        let result = bytes.withUnsafeBytes { stream.write($0) }
        return step(after: result) { sender, count in
            sender.parts.removeFirst()
            if count < bytes.count { sender.parts.insert(.bytes(Array(bytes[count...])), at: sender.parts.startIndex) }
        }
    }

    private mutating func sendFile(
        _ offset: Int64, _ count: Int64, on stream: Stream, now: Duration, most: Int
    ) -> Step {
        if let end = end(of: count) { return end }
        var count = min(count, Int64(most))
        for fault in [Fault.close, .reset, .stall] {
            if let limit = faults[fault] { count = min(count, limit - fileSent) }
        }
        if let rate = faults[.rate] {
            let (allowed, next) = throttled(rate, left: count, now: now)
            guard allowed > 0 else { return .awaits(next) }
            count = min(count, allowed)
        }
        return step(after: sendFile(from: offset, count: Int(count), on: stream)) { $0.advance(by: Int64($1)) }
    }

    /// What a fault wants at this point of the file; nothing happens to files that end before.
    private func end(of left: Int64) -> Step? {
        guard left > 0 else { return nil }
        if let limit = faults[.close], fileSent >= limit { return .broken }
        if let limit = faults[.reset], fileSent >= limit { return .reset }
        if let limit = faults[.stall], fileSent >= limit { return .stalled }
        return nil
    }

    private mutating func advance(by sent: Int64) {
        guard case .file(let offset, let count)? = parts.popFirst() else { preconditionFailure("no file is sent") }
        fileSent += sent
        if sent < count { parts.insert(.file(offset: offset + sent, count: count - sent), at: parts.startIndex) }
    }

    private mutating func sendFile(from offset: Int64, count: Int, on stream: Stream) -> StreamResult {
        guard let file else { preconditionFailure("a part of a file without the file") }
        if stream.takesFiles, response.change.isNone {
            return stream.send(file.descriptor, from: offset, count: count)
        }
        if chunk.isEmpty {
            var bytes = Self.read(file.descriptor, from: offset, count: min(count, Self.chunkMax))
            response.change.apply(to: &bytes, at: offset)
            chunk = bytes[...]
        }
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

    private mutating func step(after result: StreamResult, _ sent: (inout Self, Int) -> Void) -> Step {
        switch result {
        case .bytes(let count):
            sent(&self, count)
            return .sent(count)
        case .awaitsRead: return .awaitsRead
        case .awaitsWrite: return .awaitsWrite
        case .ended: return .broken
        }
    }

    /// How much may be sent now, and when more.
    private func throttled(_ rate: Int64, left: Int64, now: Duration) -> (allowed: Int64, next: Duration) {
        let piece = max(1, rate / Self.pieces)
        let (seconds, attoseconds) = (now - began).components
        let elapsed = Double(seconds) + Double(attoseconds) / 1e18
        let due = Double(rate) * elapsed + Double(piece)
        let allowed = due >= 9e18 ? Int64.max : Int64(due) - fileSent
        if allowed >= min(piece, left) { return (allowed, now) }
        return (0, now + .nanoseconds(Int64(1e9 * Double(piece - max(0, allowed)) / Double(rate)) + 1))
    }
}
