// A blocking connection to the service: calls one after the other, or one stream of replies.
package import AssetsOS
package import AssetsWire
internal import Synchronization

/// A connection on which any thread may call.
///
/// Calls wait for each other. A stream occupies the connection until its last reply; other calls are refused meanwhile,
/// so whoever follows a stream opens a second connection for calls.
package final class ServiceConnection: Sendable {
    /// How long a call looks for its answer before it sleeps. Most answers are there by then, those included for which
    /// the service waits for an SSD.
    private static let watching = Duration.microseconds(500)

    private let socket: SharedDescriptor
    private let frames: Guarded<FrameStream>
    private let isStreaming = Atomic(false)
    private let isClosed = Atomic(false)

    /// Takes over a connected, blocking stream socket.
    package init(descriptor: consuming Descriptor) {
        let socket = SharedDescriptor(descriptor)
        self.socket = socket
        frames = Guarded(FrameStream(socket, frameMax: WireLimit.messageMax))
    }

    /// Calls a method and waits for its reply.
    ///
    /// - Parameter isWaitedFor: Whether somebody waits: then the reply is looked for before the thread sleeps.
    package func call<M: WireMethod>(
        _ method: M.Type, _ parameters: M.Parameters, isWaitedFor: Bool = true
    ) throws(ClientError) -> M.Reply {
        let message = try Self.message(method, parameters, more: false)
        try checkFree(M.name)
        return try frames.withLock { (frames: inout FrameStream) throws(ClientError) -> M.Reply in
            try send(message, M.name, frames)
            let answer = try next(method, frames, watchingFor: isWaitedFor ? Self.watching : .zero)
            guard !answer.continues else { throw broken("\(M.name) was answered with a stream") }
            return answer.reply
        }
    }

    /// Calls a method and passes each reply to `each`, until the last one.
    ///
    /// When `each` returns false or throws, the connection is closed: that is how a stream is left.
    package func stream<M: WireMethod>(
        _ method: M.Type, _ parameters: M.Parameters, _ each: (M.Reply) throws -> Bool
    ) throws {
        let message = try Self.message(method, parameters, more: true)
        guard isStreaming.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
        else { throw Self.occupied(M.name) }
        defer { isStreaming.store(false, ordering: .releasing) }
        try frames.withLock { frames in
            try send(message, M.name, frames)
            while true {
                let answer = try next(method, frames)
                var goesOn = false
                defer { if !goesOn && answer.continues { close() } }
                guard try each(answer.reply), answer.continues else { return }
                goesOn = true
            }
        }
    }

    /// Ends the connection from any thread: a call that waits returns with an error, and all later ones do.
    package func close() {
        isClosed.store(true, ordering: .releasing)
        UnixSocket.shutDown(socket)
    }

    // MARK: One message

    private static func message<M: WireMethod>(
        _ method: M.Type, _ parameters: M.Parameters, more: Bool
    ) throws(ClientError) -> [UInt8] {
        do throws(WireError) {
            return try WireCodec.call(method, parameters, more: more)
        } catch {
            throw .violation("\(M.name) cannot be called: \(error); give it smaller and finite values")
        }
    }

    private func send(_ message: [UInt8], _ name: String, _ frames: FrameStream) throws(ClientError) {
        do throws(FrameStream.Failure) { try frames.send(message) } catch { throw lost(name, error) }
    }

    private func next<M: WireMethod>(
        _ method: M.Type, _ frames: FrameStream, watchingFor watching: Duration = .zero
    ) throws(ClientError) -> (reply: M.Reply, continues: Bool) {
        let received: UnsafeRawBufferPointer?
        do throws(FrameStream.Failure) {
            received = try frames.receive(watchingFor: watching)
        } catch { throw lost(M.name, error) }
        guard let frame = received else { throw lost(M.name, nil) }
        return try decode(method, frame).get()
    }

    private func decode<M: WireMethod>(
        _ method: M.Type, _ frame: UnsafeRawBufferPointer
    ) -> Result<(reply: M.Reply, continues: Bool), ClientError> {
        if let sound = WireCodec.decodeSoundReply(method, frame) { return .success(sound) }
        do throws(WireError) {
            switch try WireCodec.decodeAnswer(frame) {
            case .reply(let continues): return .success((try WireCodec.decodeReply(method, frame), continues))
            case .error(let name): return .failure(Self.problem(M.name, name, frame))
            }
        } catch {
            return .failure(broken("the answer to \(M.name) cannot be read: \(error)"))
        }
    }

    // MARK: What went wrong

    private func checkFree(_ name: String) throws(ClientError) {
        guard !isStreaming.load(ordering: .acquiring) else { throw Self.occupied(name) }
    }

    private static func occupied(_ name: String) -> ClientError {
        .violation("\(name) cannot be called on a connection that follows a stream; open a second connection")
    }

    /// After half an exchange nobody knows whose reply comes next.
    private func broken(_ what: String) -> ClientError {
        close()
        return .violation("\(what); library and service may be of different versions: update both")
    }

    private func lost(_ name: String, _ failure: FrameStream.Failure?) -> ClientError {
        let wasClosed = isClosed.load(ordering: .acquiring)
        close()
        if wasClosed { return .unreachable("\(name) has no answer: this connection was closed; open a new one") }
        switch failure {
        case nil, .truncated, .failed:
            let cause = if case .failed(let error) = failure { " (\(error))" } else { "" }
            return .unreachable(
                "\(name) has no answer: the asset service closed the connection\(cause); connect again")
        case .frameTooLong:
            return broken("the answer to \(name) is longer than \(WireLimit.messageMax) bytes")
        }
    }

    /// An error that the service answered.
    private static func problem(_ method: String, _ name: String, _ frame: UnsafeRawBufferPointer) -> ClientError {
        if name == DeviceInterface.refused || name == ManagerInterface.refused,
            let refusal = try? WireCodec.decodeParameters(as: Refusal.self, frame)
        {
            return ClientError(.refused(code: refusal.code, reason: refusal.reason, remedy: refusal.remedy))
        }
        let what =
            switch VarlinkService.Problem(name: name, frame: frame) {
            case .interfaceNotFound(let interface): "the service has no interface \(interface)"
            case .methodNotFound(let method), .methodNotImplemented(let method): "the service has no method \(method)"
            case .invalidParameter(let parameter): "the service does not take the parameter \(parameter) of \(method)"
            case .expectedMore: "\(method) is a stream"
            case nil: "\(method) was answered with \(name)"
            }
        return .violation("\(what); library and service may be of different versions: update both")
    }
}
