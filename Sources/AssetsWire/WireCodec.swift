// Varlink messages as bytes. Frames are given and taken without their closing NUL.
internal import FoundationEssentials

/// The part of a call that says who is to answer, and how.
package struct CallHeader: Hashable, Sendable {
    /// Interface and method.
    package var method: String
    /// The caller takes any number of replies.
    package var more: Bool
    /// The caller takes no reply at all.
    package var oneway: Bool

    package init(method: String, more: Bool = false, oneway: Bool = false) {
        self.method = method
        self.more = more
        self.oneway = oneway
    }

    /// The part before the last dot.
    package var interface: String {
        method.lastIndex(of: ".").map { String(method[..<$0]) } ?? ""
    }
}

/// What an answer is, before its parameters are looked at.
package enum AnswerHeader: Hashable, Sendable {
    case reply(continues: Bool)
    case error(name: String)
}

/// Encodes and decodes varlink messages.
package enum WireCodec {
    // MARK: Calls

    package static func call<M: WireMethod>(
        _ method: M.Type, _ parameters: M.Parameters, more: Bool = false, oneway: Bool = false
    ) throws(WireError) -> [UInt8] {
        var message = Array("{\"method\":\"".utf8)
        message += M.name.utf8
        message += "\"".utf8
        if more { message += ",\"more\":true".utf8 }
        if oneway { message += ",\"oneway\":true".utf8 }
        return try finish(message, parameters)
    }

    package static func decodeHeader(_ frame: UnsafeRawBufferPointer) throws(WireError) -> CallHeader {
        let envelope = try decode(CallEnvelope.self, frame)
        return CallHeader(method: envelope.method, more: envelope.more ?? false, oneway: envelope.oneway ?? false)
    }

    package static func decodeParameters<M: WireMethod>(
        _ method: M.Type, _ frame: UnsafeRawBufferPointer
    ) throws(WireError) -> M.Parameters {
        try decodeParameters(as: M.Parameters.self, frame)
    }

    // MARK: Answers

    package static func reply<M: WireMethod>(
        _ method: M.Type, _ value: M.Reply, continues: Bool = false
    ) throws(WireError) -> [UInt8] {
        try finish(Array((continues ? "{\"continues\":true" : "{").utf8), value)
    }

    package static func error(_ name: String, _ parameters: some Encodable) throws(WireError) -> [UInt8] {
        var message = Array("{\"error\":\"".utf8)
        message += name.utf8
        message += "\"".utf8
        return try finish(message, parameters)
    }

    /// A reply of `method` with whether more follow; nil when the answer is an error, or not sound: then the other
    /// functions here tell what it is.
    package static func decodeSoundReply<M: WireMethod>(
        _ method: M.Type, _ frame: UnsafeRawBufferPointer
    ) -> (reply: M.Reply, continues: Bool)? {
        guard let answer = try? decode(ReplyFrame<M.Reply>.self, frame), let reply = answer.parameters
        else { return nil }
        return (reply, answer.continues)
    }

    package static func decodeAnswer(_ frame: UnsafeRawBufferPointer) throws(WireError) -> AnswerHeader {
        let envelope = try decode(AnswerEnvelope.self, frame)
        if let name = envelope.error { return .error(name: name) }
        return .reply(continues: envelope.continues ?? false)
    }

    package static func decodeReply<M: WireMethod>(
        _ method: M.Type, _ frame: UnsafeRawBufferPointer
    ) throws(WireError) -> M.Reply {
        try decodeParameters(as: M.Reply.self, frame)
    }

    /// The parameters of a call, a reply or an error.
    package static func decodeParameters<P: Decodable>(
        as type: P.Type, _ frame: UnsafeRawBufferPointer
    ) throws(WireError) -> P {
        // The header was read, so the message is sound, and there is nothing to look for in it.
        if let nothing = Nothing() as? P { return nothing }
        do throws(WireError) {
            if let parameters = try decode(ParametersEnvelope<P>.self, frame).parameters { return parameters }
        } catch {
            // A number that fits no type of ours is told without its place: the message itself may be sound.
            guard error == .malformed, (try? decode(ParametersEnvelope<Nothing>.self, frame)) != nil else {
                throw error
            }
            throw .invalidParameter("parameters")
        }
        // Varlink lets the parameters out where there are none.
        let empty = try decode(ParametersEnvelope<P>.self, Data("{\"parameters\":{}}".utf8))
        guard let parameters = empty.parameters else { throw .invalidParameter("parameters") }
        return parameters
    }

    // MARK: JSON

    private static func finish(_ start: [UInt8], _ parameters: some Encodable) throws(WireError) -> [UInt8] {
        var message = start
        if message.count > 1 { message.append(UInt8(ascii: ",")) }
        message += "\"parameters\":".utf8
        do { message = try WireEncoder.append(parameters, to: message) } catch { throw .unencodable }
        message.append(UInt8(ascii: "}"))
        guard message.count <= WireLimit.messageMax else { throw .tooLong }
        return message
    }

    static func decode<T: Decodable>(
        _ type: T.Type, _ frame: UnsafeRawBufferPointer, with decoder: JSONDecoder = JSONDecoder()
    ) throws(WireError) -> T {
        guard let base = frame.baseAddress, frame.count <= WireLimit.messageMax else { throw .malformed }
        if let value = try? WireDecoder.decode(type, frame, userInfo: decoder.userInfo) { return value }
        // No copy: the data is only read, and not kept.
        let data = Data(
            bytesNoCopy: UnsafeMutableRawPointer(mutating: base), count: frame.count, deallocator: .none)
        return try decode(type, data, with: decoder)
    }

    private static func decode<T: Decodable>(
        _ type: T.Type, _ data: Data, with decoder: JSONDecoder = JSONDecoder()
    ) throws(WireError) -> T {
        do {
            return try decoder.decode(type, from: data)
        } catch let error as DecodingError {
            throw problem(error)
        } catch {
            throw .malformed
        }
    }

    /// Names the parameter where the fault is in one.
    private static func problem(_ error: DecodingError) -> WireError {
        let path: [any CodingKey]
        switch error {
        case .keyNotFound(let key, let context): path = context.codingPath + [key]
        case .typeMismatch(_, let context), .valueNotFound(_, let context): path = context.codingPath
        case .dataCorrupted(let context): path = context.codingPath
        @unknown default: path = []
        }
        let names = path.map { $0.intValue.map(String.init) ?? $0.stringValue }
        guard let first = names.first else { return .malformed }
        guard first == "parameters" else { return .malformed }
        return .invalidParameter(names.count > 1 ? names.dropFirst().joined(separator: ".") : first)
    }
}

// MARK: The envelopes

private struct CallEnvelope: Decodable {
    var method: String
    var more: Bool?
    var oneway: Bool?
}

private struct AnswerEnvelope: Decodable {
    var error: String?
    var continues: Bool?
}

/// A reply, header and parameters in one pass; parameters are nil where it is an error.
private struct ReplyFrame<Parameters: Decodable>: Decodable {
    private enum Key: String, CodingKey { case error, continues, parameters }

    let continues: Bool
    let parameters: Parameters?

    init(from decoder: any Decoder) throws {
        let frame = try decoder.container(keyedBy: Key.self)
        continues = try frame.decodeIfPresent(Bool.self, forKey: .continues) ?? false
        let isError = try frame.decodeIfPresent(String.self, forKey: .error) != nil
        parameters = isError ? nil : try frame.decodeIfPresent(Parameters.self, forKey: .parameters)
    }
}

private struct ParametersEnvelope<Parameters: Decodable>: Decodable {
    var parameters: Parameters?
}
