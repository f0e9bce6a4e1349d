// The name server of a network: it takes questions, and answers none.
import AssetsOS
import Foundation
import Glibc
import RootHelperClient

enum NameQuestions {
    private static let limit: Int32 = 30_000
    /// Where the name begins in a question.
    private static let headBytes = 12
    private static let bytesMax = 512

    /// The next question that comes to a socket: the first label of its name; nil where none comes.
    static func next(at socket: SharedDescriptor) async -> String? {
        await withCheckedContinuation { continuation in
            onThread { continuation.resume(returning: label(from: socket.rawValue)) }
        }
    }

    private static func label(from socket: Int32) -> String? {
        var watched = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&watched, 1, limit) == 1 else { return nil }
        var question = [UInt8](repeating: 0, count: bytesMax)
        let count = recv(socket, &question, question.count, 0)
        guard count > headBytes else { return nil }
        let name = question[headBytes..<count]
        return String(decoding: name.dropFirst().prefix(Int(name[headBytes])), as: UTF8.self)
    }
}
