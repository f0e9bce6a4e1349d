// A network of a test's own: two machines, as far as sockets can tell, and a cable between them.
package import AssetsOS
internal import Glibc

/// Two network namespaces joined by a cable. They go with this value, and with them all programs in them.
package final class HelperNetwork: Sendable {
    private let connection: HelperConnection
    private let number: Int

    package init() throws {
        connection = try HelperConnection()
        let reply = try connection.call(.makeNetwork)
        guard case .network(let number) = reply else { throw HelperConnection.unexpected(reply) }
        self.number = number
    }

    /// Returns when it has happened.
    package func change(_ change: NetworkChange) throws { try connection.call(.changeNetwork(change)) }

    /// A listening socket on a side, for a server that runs in this process: where a socket was made decides where it is.
    package func listen(on side: NetworkSide, port: UInt16 = 0) throws -> (
        socket: SharedDescriptor, port: UInt16
    ) {
        try take(.listen(side, port: port))
    }

    /// A connection to a program that listens at a side's own 127.0.0.1.
    package func connect(on side: NetworkSide, port: UInt16) throws -> SharedDescriptor {
        try take(.connect(side, port: port)).socket
    }

    /// The socket of the name server that programs ask which are started on the device's side from now on. Nobody answers
    /// but who has it.
    package func takeNameQuestions() throws -> SharedDescriptor { try take(.takeNameQuestions).socket }

    private func take(_ request: HelperRequest) throws -> (socket: SharedDescriptor, port: UInt16) {
        try connection.send(request)
        let (reply, descriptors) = try connection.receive()
        guard case .socket(let port) = reply, let socket = descriptors.first else {
            throw HelperConnection.unexpected(reply)
        }
        return (socket, port)
    }

    /// The command that runs another one on a side: with the caller's descriptors, folder, environment and user, and
    /// with its exit status. Signals are passed on; whoever kills it kills the other one.
    ///
    /// - Parameter products: the folder of the built executables.
    package func command(
        on side: NetworkSide, _ path: String, _ arguments: [String], products: String
    ) -> (path: String, arguments: [String]) {
        (products + "/RootHelper", ["enter", "\(number)", side.rawValue, path] + arguments)
    }

    /// Removes it, and returns when it is gone.
    package func remove() { connection.close() }
}
