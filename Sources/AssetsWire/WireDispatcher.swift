// From a frame to the handler of its method; what goes wrong on the way becomes the right answer.

/// The methods that an actor serves.
///
/// Handlers run in the actor, without a suspension between the frame and them. They answer by themselves, at once or
/// later; `Caller` is whatever the actor needs to know for that.
package struct WireDispatcher<Owner: Actor, Caller: Sendable>: Sendable {
    /// What is left to do after a frame was looked at.
    package enum Outcome: Hashable, Sendable {
        /// A handler has the call and will answer, unless it is one way.
        case taken
        /// The answer is this.
        case send([UInt8])
        /// Nothing to say: the call was one way.
        case nothing
        /// Not a varlink message: close the connection.
        case violation(WireError)
    }

    private typealias Entry =
        @Sendable (isolated Owner, Caller, CallHeader, (any Sendable)?, UnsafeRawBufferPointer) -> WireError?

    private let information: VarlinkService.GetInfo.Reply
    private var entries: [String: Entry] = [:]
    private var methods: [String: any WireMethod.Type] = [:]
    private var reader = CallReader([:])

    /// Serves `interfaces`, beside `org.varlink.service` itself.
    package init(vendor: String, product: String, version: String, url: String, interfaces: [String]) {
        information = VarlinkService.GetInfo.Reply(
            vendor: vendor, product: product, version: version, url: url,
            interfaces: [VarlinkService.interface] + interfaces)
    }

    /// Serves a method.
    package mutating func on<M: WireMethod>(
        _ method: M.Type,
        _ handler: @escaping @Sendable (isolated Owner, Caller, CallHeader, M.Parameters) -> Void
    ) {
        methods[M.name] = method
        reader = CallReader(methods)
        entries[M.name] = { owner, caller, header, read, frame in
            if let parameters = read as? M.Parameters {
                handler(owner, caller, header, parameters)
                return nil
            }
            switch Result(catching: { () throws(WireError) in try WireCodec.decodeParameters(M.self, frame) }) {
            case .success(let parameters):
                handler(owner, caller, header, parameters)
                return nil
            case .failure(let error): return error
            }
        }
    }

    /// Serves a method that needs `more`: its replies are a stream.
    package mutating func onStream<M: WireMethod>(
        _ method: M.Type,
        _ handler: @escaping @Sendable (isolated Owner, Caller, CallHeader, M.Parameters) -> Void
    ) {
        streams.insert(M.name)
        on(method, handler)
    }

    private var streams: Set<String> = []

    /// Finds and calls the handler of a frame.
    package func receive(
        _ frame: UnsafeRawBufferPointer, from caller: Caller, in owner: isolated Owner
    ) -> Outcome {
        let sound = reader.read(frame)
        let header: CallHeader
        if let sound {
            header = sound.header
        } else {
            do throws(WireError) { header = try WireCodec.decodeHeader(frame) } catch { return .violation(error) }
        }
        do throws(VarlinkService.Problem) {
            if let entry = entries[header.method] {
                guard header.more || !streams.contains(header.method) else { throw .expectedMore }
                if let error = entry(owner, caller, header, sound?.parameters, frame) { throw Self.problem(error) }
                return .taken
            }
            let answer = try answerAboutItself(header, frame)
            return header.oneway ? .nothing : .send(answer)
        } catch {
            return header.oneway ? .nothing : .send(WireCodec.error(error))
        }
    }

    private func answerAboutItself(
        _ header: CallHeader, _ frame: UnsafeRawBufferPointer
    ) throws(VarlinkService.Problem) -> [UInt8] {
        do throws(WireError) {
            switch header.method {
            case VarlinkService.GetInfo.name:
                return try WireCodec.reply(VarlinkService.GetInfo.self, information)
            case VarlinkService.GetInterfaceDescription.name:
                let name = try WireCodec.decodeParameters(VarlinkService.GetInterfaceDescription.self, frame).interface
                guard information.interfaces.contains(name), let text = InterfaceTexts.text(of: name) else {
                    return WireCodec.error(.interfaceNotFound(name))
                }
                return try WireCodec.reply(VarlinkService.GetInterfaceDescription.self, .init(description: text))
            default: break
            }
        } catch {
            throw Self.problem(error)
        }
        guard information.interfaces.contains(header.interface) else { throw .interfaceNotFound(header.interface) }
        throw .methodNotFound(header.method)
    }

    private static func problem(_ error: WireError) -> VarlinkService.Problem {
        switch error {
        case .invalidParameter(let name): .invalidParameter(name)
        case .malformed, .unencodable, .tooLong: .invalidParameter("parameters")
        }
    }
}
