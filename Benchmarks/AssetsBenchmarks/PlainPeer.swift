// The peers of a call: a process that answers frames and does nothing else, and a lock of the kernel.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc

/// Bytes of a call and of its reply.
struct Exchange {
    var call: Int
    var reply: Int
}

/// A process behind a unix socket that answers frames of known sizes with frames of known sizes, both sides with blocking
/// calls: what two processes need at least to exchange as much.
final class PlainPeer {
    /// The argument with which this executable becomes the answering process.
    static let word = "--answer"

    private let socket: Descriptor
    private let program: Program
    private let exchanges: [Exchange]

    init(_ exchanges: [Exchange], folder: String) throws {
        self.exchanges = exchanges
        var pair = try UnixSocket.pair()
        let theirs = pair.takeSecond()
        let sizes = exchanges.flatMap { ["\($0.call)", "\($0.reply)"] }
        program = try Program(
            Program.ours("AssetsBenchmarks"), [Self.word] + sizes, log: folder + "/plain.log", input: theirs.rawValue)
        socket = pair.takeFirst()
    }

    /// Times of all exchanges in a row, in microseconds.
    func times(for window: Duration) throws -> [Double] {
        let end = MonotonicClock.now + window
        let messages = exchanges.map { [UInt8](repeating: UInt8(ascii: "x"), count: $0.call) }
        var buffer = [UInt8](repeating: 0, count: exchanges.map(\.reply).max() ?? 0)
        var times: [Double] = []
        while true {
            let begin = MonotonicClock.now
            guard begin < end else { return times }
            for (exchange, message) in zip(exchanges, messages) {
                try Self.send(message, message.count, socket.rawValue)
                guard try Self.receive(exchange.reply, into: &buffer, socket.rawValue) else {
                    throw BenchError("the answering process has ended: \(program.lastWords)")
                }
            }
            times.append((MonotonicClock.now - begin).microseconds)
        }
    }

    func end() { _ = program.end(SIGKILL) }

    /// The answering process: standard input is the socket. Returns its exit status.
    static func answer(_ sizes: [String]) -> Int32 {
        let sizes = sizes.compactMap { Int($0) }
        guard !sizes.isEmpty, sizes.count.isMultiple(of: 2) else { return 64 }
        var buffer = [UInt8](repeating: 0, count: sizes.max() ?? 0)
        do {
            while true {
                for index in stride(from: 0, to: sizes.count, by: 2) {
                    guard try receive(sizes[index], into: &buffer, STDIN_FILENO) else { return 0 }
                    try send(buffer, sizes[index + 1], STDIN_FILENO)
                }
            }
        } catch {
            return 1
        }
    }

    private static func send(_ bytes: [UInt8], _ count: Int, _ socket: Int32) throws {
        // A stream socket takes messages of this size whole.
        _ = try check("send") { Glibc.send(socket, bytes, count, Int32(MSG_NOSIGNAL)) }
    }

    /// False when the peer has closed.
    private static func receive(_ count: Int, into buffer: inout [UInt8], _ socket: Int32) throws -> Bool {
        var done = 0
        while done < count {
            let some = try check("read") { read(socket, &buffer, count - done) }
            guard some > 0 else { return false }
            done += some
        }
        return true
    }
}

/// Exclusive control as the kernel has it: flock(2), without order among those that wait, word to others or a journal.
enum KernelLock {
    /// Times of taking and giving back, in microseconds.
    static func times(of path: String, for window: Duration) throws -> [Double] {
        let file = Descriptor(owning: try check("open") { open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) })
        let fd = file.rawValue
        let end = MonotonicClock.now + window
        var times: [Double] = []
        while true {
            let begin = MonotonicClock.now
            guard begin < end else { return times }
            try check("flock") { flock(fd, LOCK_EX) }
            try check("flock") { flock(fd, LOCK_UN) }
            times.append((MonotonicClock.now - begin).microseconds)
        }
    }
}
