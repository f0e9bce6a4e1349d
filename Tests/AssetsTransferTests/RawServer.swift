// A server that answers exactly what a test tells it, right or wrong.
import AssetsOS
import CLinux
import Glibc

/// Plain http on 127.0.0.1; one connection after another gets one answer each.
final class RawServer: Sendable {
    struct Answer: Sendable {
        enum End: Sendable {
            case close
            /// The connection breaks instead of ending.
            case reset
            /// Nothing more comes, for as long as the server runs.
            case hold
        }
        var bytes: [UInt8]
        var end = End.close

        init(_ text: String, _ end: End = .close) {
            bytes = Array(text.utf8)
            self.end = end
        }

        /// A head with these fields and then these bytes.
        init(_ status: String, _ fields: [String], _ body: some Sequence<UInt8>, _ end: End = .close) {
            bytes = Array(([status] + fields + ["", ""]).joined(separator: "\r\n").utf8) + body
            self.end = end
        }
    }

    private struct State {
        var answers: [Answer]
        var requests: [String] = []
        var held: [Int32] = []
    }

    let port: UInt16
    private let listener: Int32
    private let state: Guarded<State>
    private let thread: Guarded<pthread_t>

    init(_ answers: [Answer]) throws {
        (listener, port) = try listenOnLoopback()
        state = Guarded(State(answers: answers))
        thread = Guarded(pthread_t())
        let me = Unmanaged.passUnretained(self).toOpaque()
        // `stop` joins the thread before the server goes.
        thread.withLock { thread in
            _ = pthread_create(
                &thread, nil,
                { raw in
                    if let raw { Unmanaged<RawServer>.fromOpaque(raw).takeUnretainedValue().serve() }
                    return nil
                }, me)
        }
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    /// Ends the thread; returns the requests that were read.
    @discardableResult
    func stop() -> [String] {
        let running = thread.withLock { thread in
            defer { thread = pthread_t() }
            return thread
        }
        if running != pthread_t() {
            shutdown(listener, Int32(SHUT_RDWR))
            pthread_join(running, nil)
            close(listener)
            for fd in state.withLock({ $0.held }) { close(fd) }
        }
        return state.withLock { $0.requests }
    }

    deinit { stop() }

    private func serve() {
        while true {
            let fd = clinux_accept4(listener, Int32(SOCK_CLOEXEC.rawValue))
            if fd < 0 { return }
            guard let request = Self.readRequest(fd) else {
                close(fd)
                continue
            }
            let answer = state.withLock { state in
                state.requests.append(request)
                return state.answers.isEmpty ? nil : state.answers.removeFirst()
            }
            guard let answer else {
                close(fd)
                continue
            }
            Self.send(answer.bytes, to: fd)
            end(fd, answer.end)
        }
    }

    private func end(_ fd: Int32, _ how: Answer.End) {
        switch how {
        case .close:
            close(fd)
        case .reset:
            var now = linger(l_onoff: 1, l_linger: 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
            close(fd)
        case .hold:
            state.withLock { $0.held.append(fd) }
        }
    }

    private static func send(_ bytes: [UInt8], to fd: Int32) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return }
            sent += count
        }
    }

    /// Head and body of a request; nil when the client leaves before.
    private static func readRequest(_ fd: Int32) -> String? {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while true {
            let text = String(decoding: bytes, as: UTF8.self)
            if let end = text.firstRange(of: "\r\n\r\n") {
                let length =
                    text.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
                    .flatMap { Int($0.dropFirst(16)) } ?? 0
                if text[end.upperBound...].utf8.count >= length { return text }
            }
            let count = recv(fd, &piece, 4096, 0)
            if count <= 0 { return nil }
            bytes += piece[..<count]
        }
    }
}
