// The process that no probe may reach: Tests/Fixtures/EscapeBystander, and what can be seen of it.
import AssetsOS
import Foundation
import Glibc

/// A started bystander. Used on one thread, which has to live as long as it: the bystander dies with that thread.
final class EscapeBystander {
    /// Milliseconds in which it answers, also on a busy machine.
    private static let patience: Int32 = 30_000

    let name: String
    let tcpPort: Int
    let udpPort: Int
    let sharedMemory: Int
    private let child: ChildProcess
    private let link: Descriptor
    private let priority: Int32

    var process: Int32 { child.process }

    /// - Parameters:
    ///   - socket: Path of the socket that it makes.
    ///   - name: Of its abstract socket and its message queue.
    init(socket: String, name: String) throws {
        self.name = name
        var pair = try UnixSocket.pair()
        let theirs = pair.takeSecond()
        link = pair.takeFirst()
        child = try ChildProcess(
            ProgramStart(
                path: Products.folder + "/EscapeBystander", arguments: [socket, name],
                environment: ProcessEnvironment.current, descriptors: [theirs.rawValue, theirs.rawValue, 2]))
        // Its end is seen when nobody else has that socket.
        try theirs.close()
        let words = try Self.line(link.rawValue).split(separator: " ").compactMap { Int($0) }
        guard words.count == 3 else { throw HarnessError("the bystander is not ready") }
        (tcpPort, udpPort, sharedMemory) = (words[0], words[1], words[2])
        priority = Self.priority(of: child.process)
    }

    /// What has become of it, as sentences.
    func damage() -> [String] {
        // It carries out a signal that was sent to it before it answers.
        guard send(link.rawValue, "\n", 1, Int32(MSG_NOSIGNAL)) == 1, let line = try? Self.line(link.rawValue)
        else { return ["the bystander was killed"] }
        var result = line == "nobody" ? [] : ["somebody came to the bystander: \(line)"]
        if Self.priority(of: process) != priority { result.append("the bystander has another priority") }
        if sched_getscheduler(process) != SCHED_OTHER { result.append("the bystander is scheduled otherwise") }
        return result
    }

    func end() {
        shutdown(link.rawValue, Int32(SHUT_WR))
        _ = child.wait()
    }

    private static func priority(of process: Int32) -> Int32 {
        getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(process))
    }

    /// Reads a line; every line is written at once.
    private static func line(_ descriptor: Int32) throws -> String {
        var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&watched, 1, patience) == 1 else { throw HarnessError("the bystander says nothing") }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = try check("read") { read(descriptor, &buffer, buffer.count) }
        guard count > 0 else { throw HarnessError("the bystander is gone") }
        return String(decoding: buffer.prefix(count), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
