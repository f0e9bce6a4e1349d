// What the service tells whoever started it: the sd_notify protocol, one datagram to NOTIFY_SOCKET.
internal import Glibc

/// A message of the sd_notify protocol.
package enum ServiceState: Hashable, Sendable {
    /// Clients are served from now on.
    case ready
    /// The service is about to end.
    case stopping
    /// One line for people.
    case status(String)
    /// Another service has this device; the process ends and leaves it to that one.
    case anotherServes

    fileprivate var line: String {
        switch self {
        case .ready: "READY=1"
        case .stopping: "STOPPING=1"
        case .status(let text): "STATUS=" + String(text.map { $0.isNewline ? " " : $0 })
        case .anotherServes: "X_ANOTHER_SERVES=1"
        }
    }

    fileprivate init?(line: some StringProtocol) {
        switch line {
        case "READY=1": self = .ready
        case "STOPPING=1": self = .stopping
        case "X_ANOTHER_SERVES=1": self = .anotherServes
        default:
            guard line.hasPrefix("STATUS=") else { return nil }
            self = .status(String(line.dropFirst("STATUS=".count)))
        }
    }
}

/// The way to the service manager, or to the client that started us.
package struct ServiceNotification: Sendable {
    private let path: String

    /// nil where nobody listens.
    package init?(environment: [String: String]) {
        guard let path = ProcessEnvironment.value("NOTIFY_SOCKET", in: environment),
            path.hasPrefix("/") || path.hasPrefix("@")
        else { return nil }
        self.path = path
    }

    /// Sends one datagram. The listener may be gone: then nobody has to know, and the caller ignores the error.
    package func send(_ states: ServiceState...) throws(SystemCallError) {
        let socket = try UnixSocket.connect(to: path, .datagrams)
        let bytes = Array(states.map(\.line).joined(separator: "\n").utf8)
        let raw = socket.rawValue
        // Never waits: a listener that does not read must not hold up the service.
        let flags = Int32(MSG_NOSIGNAL | MSG_DONTWAIT)
        try check("send") { Glibc.send(raw, bytes, bytes.count, flags) }
    }
}

/// The listening side: made by a client before it starts a service.
package struct NotificationListener: ~Copyable {
    /// Longest datagram that is looked at.
    private static let datagramMax = 4096

    package let descriptor: Descriptor
    private let path: String

    /// Listens at `path`, which is removed again with this value.
    package init(path: String) throws(SystemCallError) {
        let made = try UnixSocket.make(.datagrams)
        try UnixSocket.setNonblocking(made)
        try UnixSocket.bind(made, to: path)
        descriptor = made
        self.path = path
    }

    deinit { unlink(path) }

    /// What the next datagram says; nil when there is none. Lines of other meaning are left out.
    package borrowing func receive() throws(SystemCallError) -> [ServiceState]? {
        do throws(SystemCallError) {
            let message = try UnixSocket.receive(Self.datagramMax, from: descriptor)
            return String(decoding: message.bytes, as: UTF8.self).split(separator: "\n").compactMap {
                ServiceState(line: $0)
            }
        } catch {
            if error.number == EAGAIN { return nil }
            throw error
        }
    }
}
