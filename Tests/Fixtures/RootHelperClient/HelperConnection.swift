// A connection to the root helper.
package import AssetsOS
internal import FoundationEssentials
internal import Glibc

/// Why the helper did not do what it was asked for.
package struct HelperError: Error, CustomStringConvertible {
    package var description: String
    package init(_ description: String) { self.description = description }
}

/// Packets of both sides.
package enum HelperPacket {
    /// The name of the variable that leads tests to the helper's socket.
    package static let variable = "BACKGROUNDASSETS_ROOT_HELPER"
    /// Below what a socket's buffer holds by default; an environment and a command line are far smaller.
    package static let bytesMax = 128 << 10

    package static func send<Value: Encodable>(
        _ value: Value, descriptors: [Int32] = [], over socket: borrowing Descriptor
    ) throws {
        let bytes = [UInt8](try JSONEncoder().encode(value))
        guard bytes.count <= bytesMax else { throw HelperError("\(bytes.count) bytes do not fit into a packet") }
        let sent = try bytes.withUnsafeBytes { [descriptors] in
            try UnixSocket.send($0, descriptors: descriptors, over: socket)
        }
        guard sent == bytes.count else { throw HelperError("only \(sent) of \(bytes.count) bytes were sent") }
    }

    /// The next packet and its descriptors; nil when the other side has closed.
    package static func receive<Value: Decodable>(
        _ type: Value.Type, from socket: borrowing Descriptor
    ) throws -> (value: Value, descriptors: [SharedDescriptor])? {
        let message = try UnixSocket.receive(bytesMax, from: socket)
        guard !message.bytes.isEmpty else { return nil }
        return (try JSONDecoder().decode(type, from: Data(message.bytes)), message.descriptors)
    }
}

/// One connection, and what the helper made for it. It is all removed with this value, or with this process.
package final class HelperConnection: Sendable {
    private let socket: Descriptor

    /// The helper's socket; nil where nobody started one.
    package static var path: String? {
        ProcessEnvironment.value(HelperPacket.variable, in: ProcessEnvironment.current)
    }

    package init() throws {
        guard let path = Self.path else {
            throw HelperError("there is no root helper: start the tests as root, with scripts/run-tests")
        }
        socket = try UnixSocket.connect(to: path, .sequencedPackets)
    }

    package var descriptor: Int32 { socket.rawValue }

    /// Why a service is not to be had; nil when it is.
    package static func whyMissing(_ service: HelperService) -> String? {
        guard path != nil else { return "no root helper runs; start as root, with scripts/run-tests or scripts/bench" }
        do {
            guard case .described(let missing) = try HelperConnection().call(.describe) else {
                return "the root helper does not describe itself"
            }
            return missing[service.rawValue]
        } catch {
            return "the root helper does not answer: \(error)"
        }
    }

    package func send(_ request: HelperRequest, descriptors: [Int32] = []) throws {
        try HelperPacket.send(request, descriptors: descriptors, over: socket)
    }

    package func receive() throws -> (reply: HelperReply, descriptors: [SharedDescriptor]) {
        guard let (reply, descriptors) = try HelperPacket.receive(HelperReply.self, from: socket) else {
            throw HelperError("the root helper has ended")
        }
        if case .failed(let reason) = reply { throw HelperError("root helper: \(reason)") }
        return (reply, descriptors)
    }

    @discardableResult
    package func call(_ request: HelperRequest) throws -> HelperReply {
        try send(request)
        return try receive().reply
    }

    package static func unexpected(_ reply: HelperReply) -> HelperError { HelperError("unexpected answer: \(reply)") }

    /// Gives everything back and returns when it is gone; nothing can be asked for any more.
    package func close() {
        _ = shutdown(socket.rawValue, Int32(SHUT_WR))
        while let message = try? UnixSocket.receive(HelperPacket.bytesMax, from: socket), !message.bytes.isEmpty {}
    }
}
