// The way of a message out of the process: to the journal of systemd, else to standard error.

internal import Foundation
internal import Glibc

/// Writes messages, each whole.
struct LogOutput: Sendable {
    enum Sink: Hashable, Sendable {
        /// The journal's socket.
        case journal(path: String)
        /// An open descriptor.
        case lines(descriptor: Int32, isTerminal: Bool)
    }

    static let shared = LogOutput(sink: chosen(environment: ProcessInfo.processInfo.environment))

    /// Bytes of a message; the rest of it is dropped. The kernel takes datagrams of 200 KiB unless told otherwise.
    static let messageMax = 64 << 10

    private let sink: Sink
    /// The socket, made once; -1 where the kernel has none for us.
    private let socket: Int32

    init(sink: Sink) {
        self.sink = sink
        if case .journal = sink {
            socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        } else {
            socket = -1
        }
    }

    /// What an extension prints is a part of the device's journal, and its sandbox has no sockets: it writes lines.
    static func chosen(
        environment: [String: String], journal: String = "/run/systemd/journal/socket"
    ) -> Sink {
        if environment["BACKGROUNDASSETS_EXTENSION"] != "1", access(journal, W_OK) == 0 {
            return .journal(path: journal)
        }
        return .lines(descriptor: STDERR_FILENO, isTerminal: isatty(STDERR_FILENO) == 1)
    }

    func write(_ message: OSLogMessage, _ type: OSLogType, from source: LogSource) {
        switch sink {
        case .journal(let path):
            let text = Self.bounded(message.text(showsPrivate: false))
            if !send(Self.datagram(text, type, source), to: path) {
                Self.writeLine(Self.line(text, type, source), to: STDERR_FILENO)
            }
        case .lines(let descriptor, let isTerminal):
            Self.writeLine(
                Self.line(Self.bounded(message.text(showsPrivate: isTerminal)), type, source), to: descriptor)
        }
    }

    static func bounded(_ text: String) -> String {
        text.utf8.count <= messageMax ? text : String(decoding: text.utf8.prefix(messageMax), as: UTF8.self)
    }

    // MARK: The journal

    /// Fields of the journal's own protocol: `NAME=value` lines; a value with line feeds is preceded by its length.
    static func datagram(_ text: String, _ type: OSLogType, _ source: LogSource) -> [UInt8] {
        var bytes: [UInt8] = []
        func add(_ name: String, _ value: String) {
            bytes += Array(name.utf8)
            let value = Array(value.utf8)
            if value.contains(UInt8(ascii: "\n")) {
                bytes.append(UInt8(ascii: "\n"))
                bytes += withUnsafeBytes(of: UInt64(value.count).littleEndian, Array.init)
            } else {
                bytes.append(UInt8(ascii: "="))
            }
            bytes += value
            bytes.append(UInt8(ascii: "\n"))
        }
        add("PRIORITY", "\(type.priority)")
        add("SYSLOG_IDENTIFIER", program)
        if !source.subsystem.isEmpty { add("SUBSYSTEM", source.subsystem) }
        if !source.category.isEmpty { add("CATEGORY", source.category) }
        add("MESSAGE", text)
        return bytes
    }

    private static let program = ProcessInfo.processInfo.processName

    private func send(_ bytes: [UInt8], to path: String) -> Bool {
        guard socket >= 0 else { return false }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < room else { return false }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        // A full journal must not hold up the program.
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        return withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                sendto(socket, bytes, bytes.count, flags, address, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        } == bytes.count
    }

    // MARK: Lines

    /// One line; what could move a terminal's cursor or start another line is shown, not done.
    static func line(_ text: String, _ type: OSLogType, _ source: LogSource) -> String {
        let origin = [source.subsystem, source.category].filter { !$0.isEmpty }.joined(separator: ":")
        let head = origin.isEmpty ? "\(type.name): " : "\(type.name) [\(origin)] "
        return head.printable + text.printable + "\n"
    }

    private static func writeLine(_ line: String, to descriptor: Int32) {
        let bytes = Array(line.utf8)
        var count = 0
        while count < bytes.count {
            let written = bytes[count...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { return }
            count += written
        }
    }
}

extension String {
    /// The text with control characters written out.
    fileprivate var printable: String {
        guard unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return self }
        return unicodeScalars.reduce(into: "") { result, scalar in
            if scalar == "\t" {
                result += "\t"
            } else if scalar.properties.generalCategory == .control {
                result += scalar.escaped(asASCII: true)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
    }
}
