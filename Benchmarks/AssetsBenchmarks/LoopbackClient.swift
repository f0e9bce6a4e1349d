// One question to a server of this machine.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc

enum LoopbackClient {
    private static let tries = 5

    /// A connection to a port of 127.0.0.1.
    static func connect(to port: UInt16) throws -> Descriptor {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = Descriptor(owning: try check("socket") { Glibc.socket(AF_INET, type, 0) })
        let raw = socket.rawValue
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        try withUnsafePointer(to: address) { pointer in
            _ = try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                try check("connect") { Glibc.connect(raw, generic, socklen_t(MemoryLayout<sockaddr_in>.size)) }
            }
        }
        return socket
    }

    /// Sends a question and returns all that comes until the server closes, or the first piece of it.
    static func ask(
        _ socket: SharedDescriptor, _ question: String, isFirstPieceEnough: Bool = false
    ) throws -> [UInt8] {
        let raw = socket.rawValue
        let bytes = Array(question.utf8)
        let sent = try check("send") { send(raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
        guard sent == bytes.count else { throw BenchError("a question is too long") }
        var answer: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try check("recv") { recv(raw, &piece, piece.count, 0) }
            answer += piece.prefix(count)
            if count == 0 || isFirstPieceEnough { return answer }
        }
    }

    /// From a question to the first byte of the answer, once the connection stands: the median of a few.
    ///
    /// A server of https answers at once who does not speak TLS.
    static func roundTrip(to port: UInt16) throws -> Duration {
        let times = try (0..<tries).map { _ in
            let socket = SharedDescriptor(try connect(to: port))
            let start = MonotonicClock.now
            _ = try ask(socket, "GET / HTTP/1.0\r\n\r\n", isFirstPieceEnough: true)
            return (MonotonicClock.now - start).microseconds
        }
        return .microseconds(Sample(times).median)
    }
}
