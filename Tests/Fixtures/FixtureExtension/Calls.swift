// What an extension says to the service by itself, without its download manager.
import Glibc

/// The service's answer to a message on the socket for requests, which the manager does not use meanwhile.
func serviceAnswer(to message: String) -> String {
    /// Where an extension finds that socket.
    let requests: Int32 = 4
    let frame = Array(message.utf8) + [0]
    guard write(requests, frame, frame.count) == frame.count else { return "not sent" }
    var answer: [UInt8] = []
    while true {
        var watched = pollfd(fd: requests, events: Int16(POLLIN), revents: 0)
        var byte: UInt8 = 0
        guard poll(&watched, 1, 10_000) == 1, read(requests, &byte, 1) == 1 else { return "not answered" }
        guard byte != 0 else { return String(decoding: answer, as: UTF8.self) }
        answer.append(byte)
    }
}
