// Calls as a service gets them: header and parameters in one pass over the frame.
internal import FoundationEssentials

/// Reads calls of the methods it knows.
struct CallReader: Sendable {
    private let decoder = JSONDecoder()

    init(_ methods: [String: any WireMethod.Type]) { decoder.userInfo[.methods] = methods }

    /// Header and parameters of a sound call of a known method; nil for all others, for which WireCodec tells what is
    /// wrong.
    func read(_ frame: UnsafeRawBufferPointer) -> (header: CallHeader, parameters: any Sendable)? {
        guard let call = try? WireCodec.decode(CallFrame.self, frame, with: decoder), let parameters = call.parameters
        else { return nil }
        return (call.header, parameters)
    }
}

private struct CallFrame: Decodable {
    private enum Key: String, CodingKey { case method, more, oneway, parameters }

    let header: CallHeader
    let parameters: (any Sendable)?

    init(from decoder: any Decoder) throws {
        let frame = try decoder.container(keyedBy: Key.self)
        header = CallHeader(
            method: try frame.decode(String.self, forKey: .method),
            more: try frame.decodeIfPresent(Bool.self, forKey: .more) ?? false,
            oneway: try frame.decodeIfPresent(Bool.self, forKey: .oneway) ?? false)
        let methods = decoder.userInfo[.methods] as? [String: any WireMethod.Type]
        parameters = try methods?[header.method].flatMap { try Self.parameters(of: $0, in: frame) }
    }

    private static func parameters<M: WireMethod>(
        of method: M.Type, in frame: KeyedDecodingContainer<Key>
    ) throws -> (any Sendable)? {
        // There is nothing to look for in no parameters.
        if let nothing = Nothing() as? M.Parameters { return nothing }
        return try frame.decodeIfPresent(M.Parameters.self, forKey: .parameters)
    }
}

extension CodingUserInfoKey {
    fileprivate static var methods: CodingUserInfoKey {
        guard let key = CodingUserInfoKey(rawValue: "methods") else { preconditionFailure("every name is a key") }
        return key
    }
}
