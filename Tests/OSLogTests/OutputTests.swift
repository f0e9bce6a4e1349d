// Where log messages go.
import Foundation
import Glibc
import Testing

@testable import os

@Suite struct OutputTests {
    private let source = LogSource(subsystem: "org.example", category: "downloads")

    /// Stands in for the journal: a socket that takes datagrams, which is all that the journal is for a program.
    private func withJournal(_ body: (String, () -> [UInt8]) throws -> Void) throws {
        var template = Array((FileManager.default.temporaryDirectory.path + "/log-XXXXXX").utf8CString)
        let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/socket"
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        try #require(socket >= 0)
        defer { close(socket) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
        try body(path) {
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let count = recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            return Array(bytes.prefix(max(0, count)))
        }
    }

    @Test(
        "The journal gets level, subsystem, category and message as fields",
        arguments: [(OSLogType.debug, 7), (.info, 6), (.default, 5), (.error, 3), (.fault, 2)])
    func journal(type: OSLogType, priority: Int) throws {
        try withJournal { path, receive in
            let output = LogOutput(sink: .journal(path: path))
            output.write("\(3) of \("x")", type, from: source)
            let fields = String(decoding: receive(), as: UTF8.self).split(separator: "\n").map(String.init)
            #expect(fields.contains("PRIORITY=\(priority)"))
            #expect(fields.contains("SUBSYSTEM=org.example"))
            #expect(fields.contains("CATEGORY=downloads"))
            #expect(fields.contains("MESSAGE=3 of <private>"))
            #expect(fields.contains("SYSLOG_IDENTIFIER=\(ProcessInfo.processInfo.processName)"))
        }
    }

    @Test("A text with line feeds stays one message, and cannot become a field of its own")
    func lineFeeds() throws {
        try withJournal { path, receive in
            LogOutput(sink: .journal(path: path)).write(
                "a\n\("b\nPRIORITY=0", privacy: .public)", .info, from: LogSource(subsystem: "", category: ""))
            let text = "a\nb\nPRIORITY=0"
            let size = withUnsafeBytes(of: UInt64(text.utf8.count).littleEndian, Array.init)
            let expected = Array("MESSAGE\n".utf8) + size + Array((text + "\n").utf8)
            #expect(Array(receive().suffix(expected.count)) == expected)
        }
    }

    @Test("A message without an end is cut, and still arrives")
    func long() throws {
        try withJournal { path, receive in
            let text = String(repeating: "ä", count: 1 << 20)
            LogOutput(sink: .journal(path: path)).write("\(text, privacy: .public)", .error, from: source)
            let received = receive()
            #expect(received.count > LogOutput.messageMax && received.count < LogOutput.messageMax + 1024)
        }
    }

    /// What is written to a pipe.
    private func written(isTerminal: Bool, _ body: (LogOutput) -> Void) throws -> String {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        body(LogOutput(sink: .lines(descriptor: ends[1], isTerminal: isTerminal)))
        close(ends[1])
        let reading = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        return String(decoding: try reading.readToEnd() ?? Data(), as: UTF8.self)
    }

    @Test("Without a journal each message is one line, which cannot play with a terminal")
    func lines() throws {
        let text = try written(isTerminal: false) { output in
            output.write("a\n\("\u{1B}[2J\u{9B}", privacy: .public)\t\("hidden")", .error, from: source)
            output.write("b", .default, from: LogSource(subsystem: "", category: ""))
        }
        #expect(text == "error [org.example:downloads] a\\n\\u{1B}[2J\\u{009B}\t<private>\ndefault: b\n")
        #expect(try written(isTerminal: true) { $0.write("\("shown")", .info, from: source) }.contains("shown"))
    }

    @Test("The journal is taken where it is; an extension's messages go to its device's journal")
    func choice() throws {
        try withJournal { path, _ in
            #expect(LogOutput.chosen(environment: [:], journal: path) == .journal(path: path))
            for (environment, journal) in [(["BACKGROUNDASSETS_EXTENSION": "1"], path), ([:], path + ".none")] {
                guard case .lines(let descriptor, _) = LogOutput.chosen(environment: environment, journal: journal)
                else {
                    Issue.record("expected lines")
                    continue
                }
                #expect(descriptor == STDERR_FILENO)
            }
        }
    }

    @Test("A disabled source is silent, and says so")
    func disabled() {
        #expect(!OSLog.disabled.isEnabled(type: .fault))
        #expect(OSLog.default.isEnabled(type: .debug))
        #expect(OSLog(subsystem: "a", category: .pointsOfInterest).isEnabled(type: .info))
    }
}
