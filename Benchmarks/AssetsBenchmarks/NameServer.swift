// A name server that takes questions and answers none.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc
internal import RootHelperClient

struct DeadNameServer {
    private static let limit = Duration.seconds(10)
    /// Where the name begins in a question.
    private static let headBytes = 12

    private let socket: SharedDescriptor

    /// The one that the programs of a network ask.
    init(of network: HelperNetwork) throws { socket = try network.takeNameQuestions() }

    /// Returns when somebody has asked for a name that begins with this label.
    func waitForQuestion(_ label: String) throws {
        let deadline = Deadline(in: Self.limit)
        var question = [UInt8](repeating: 0, count: 512)
        let name = [UInt8(label.utf8.count)] + Array(label.utf8)
        while true {
            var watched = pollfd(fd: socket.rawValue, events: Int16(POLLIN), revents: 0)
            guard try check("poll", { poll(&watched, 1, Int32(deadline.left.milliseconds)) }) == 1 else {
                throw BenchError("nobody asks for \(label)")
            }
            let count = try check("recv") { recv(socket.rawValue, &question, question.count, 0) }
            if question.prefix(count).dropFirst(Self.headBytes).starts(with: name) { return }
        }
    }
}
