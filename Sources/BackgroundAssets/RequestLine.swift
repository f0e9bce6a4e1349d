// The connection on which a manager calls the service.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire

/// Calls the service from the caller's thread, and connects when there is no connection yet or any more.
final class RequestLine: Sendable {
    private let connector: any ServiceConnector
    private let connection = Guarded<ServiceConnection?>(nil)

    init(connector: any ServiceConnector) { self.connector = connector }

    /// Calls a method and waits for its reply.
    ///
    /// A call on a connection that turns out to be dead is sent again on a new one. The service may have acted on the first
    /// one before it died: `wasRepeated` tells.
    func call<M: WireMethod>(
        _ method: M.Type, _ parameters: M.Parameters, wasRepeated: inout Bool
    ) throws -> M.Reply {
        let (connection, isFresh) = try open()
        do {
            return try connection.call(method, parameters)
        } catch {
            drop(connection, after: error)
            guard case .unreachable = error.kind, !isFresh, connector.canReconnect else { throw error }
        }
        wasRepeated = true
        let second = try open().connection
        do {
            return try second.call(method, parameters)
        } catch {
            drop(second, after: error)
            throw error
        }
    }

    /// Calls a method that may be called twice without harm.
    func call<M: WireMethod>(_ method: M.Type, _ parameters: M.Parameters) throws -> M.Reply {
        var wasRepeated = false
        return try call(method, parameters, wasRepeated: &wasRepeated)
    }

    /// Calls a method that answers pages, and collects its replies.
    func collect<M: WireMethod>(_ method: M.Type, _ parameters: M.Parameters) throws -> [M.Reply] {
        let (connection, isFresh) = try open()
        do {
            return try pages(of: method, parameters, on: connection)
        } catch let error as ClientError {
            drop(connection, after: error)
            guard case .unreachable = error.kind, !isFresh, connector.canReconnect else { throw error }
        }
        let second = try open().connection
        do {
            return try pages(of: method, parameters, on: second)
        } catch let error as ClientError {
            drop(second, after: error)
            throw error
        }
    }

    /// Closes the connection; the next call makes a new one.
    func close() {
        let old = connection.withLock { connection in
            defer { connection = nil }
            return connection
        }
        old?.close()
    }

    private func pages<M: WireMethod>(
        of method: M.Type, _ parameters: M.Parameters, on connection: ServiceConnection
    ) throws -> [M.Reply] {
        var replies: [M.Reply] = []
        try connection.stream(method, parameters) { reply in
            replies.append(reply)
            return true
        }
        return replies
    }

    private func open() throws -> (connection: ServiceConnection, isFresh: Bool) {
        try connection.withLock { connection in
            if let open = connection { return (open, false) }
            let fresh = try connector.openRequests()
            connection = fresh
            return (fresh, true)
        }
    }

    /// A refusal leaves the connection usable; anything else does not.
    private func drop(_ dead: ServiceConnection, after error: ClientError) {
        if case .refused = error.kind { return }
        connection.withLock { connection in
            if connection === dead { connection = nil }
        }
        dead.close()
    }
}
