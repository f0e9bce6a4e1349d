// The connection on which a manager calls the service.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire

/// Calls the service from the caller's thread, and connects when there is no connection yet or any more.
///
/// The connection stays open as long as it works: the foreground downloads of this process depend on it.
final class RequestLine: Sendable {
    private let connector: any ServiceConnector
    /// Held during a call: one after the other.
    private let connection = Guarded<ServiceConnection?>(nil)
    /// The same connection, for `close`, which does not wait for calls.
    private let current = Guarded<ServiceConnection?>(nil)

    init(connector: any ServiceConnector) { self.connector = connector }

    /// Calls a method and waits for its reply.
    ///
    /// A call on a connection that turns out to be dead is sent again on a new one. The service may have acted on the first
    /// one before it died: `wasRepeated` tells.
    func call<M: WireMethod>(
        _ method: M.Type, _ parameters: M.Parameters, wasRepeated: inout Bool
    ) throws -> M.Reply {
        try perform(wasRepeated: &wasRepeated) { connection throws(ClientError) in
            try connection.call(method, parameters)
        }
    }

    /// Calls a method that may be called twice without harm.
    ///
    /// - Parameter isWaitedFor: Whether the caller has nothing else to do than to wait for the reply.
    func call<M: WireMethod>(
        _ method: M.Type, _ parameters: M.Parameters, isWaitedFor: Bool = true
    ) throws -> M.Reply {
        var wasRepeated = false
        return try perform(wasRepeated: &wasRepeated) { connection throws(ClientError) in
            try connection.call(method, parameters, isWaitedFor: isWaitedFor)
        }
    }

    /// Calls a method if it can be called now: nil when another call is under way or there is no connection.
    ///
    /// After an error the other functions find the connection as it was left: broken, if it broke.
    func callIfFree<M: WireMethod>(_ method: M.Type, _ parameters: M.Parameters) throws -> M.Reply? {
        let reply: M.Reply?? = try connection.withLockIfAvailable { connection in
            try connection?.call(method, parameters)
        }
        return reply ?? nil
    }

    /// Calls a method that answers pages, and collects its replies.
    func collect<M: WireMethod>(_ method: M.Type, _ parameters: M.Parameters) throws -> [M.Reply] {
        var wasRepeated = false
        return try perform(wasRepeated: &wasRepeated) { connection in
            var replies: [M.Reply] = []
            try connection.stream(method, parameters) { reply in
                replies.append(reply)
                return true
            }
            return replies
        }
    }

    /// Closes the connection; the next call makes a new one.
    func close() {
        current.withLock { $0 }?.close()
    }

    private func perform<Reply: Sendable>(
        wasRepeated: inout Bool, _ exchange: (ServiceConnection) throws -> Reply
    ) throws -> Reply {
        try connection.withLock { connection in
            if let open = connection {
                do {
                    return try exchange(open)
                } catch let error as ClientError {
                    guard case .unreachable = error.kind else { throw error }
                    connection = nil
                    guard connector.canReconnect else { throw error }
                    wasRepeated = true
                }
            }
            let fresh = try connector.openRequests()
            connection = fresh
            current.withLock { $0 = fresh }
            return try exchange(fresh)
        }
    }
}
