// Stands in for the client until the wire branch is merged.
package import AssetsOS
package import AssetsWire

package struct ClientError: Error {
    package enum Kind: Sendable {
        case refused(code: Int, reason: String, remedy: String)
        case unreachable(String)
        case violation(String)
    }
    package var kind: Kind
    package init(_ kind: Kind) { self.kind = kind }
}

package final class ServiceConnection: Sendable {
    package init(descriptor: consuming Descriptor) {}
    package func call<M: WireMethod>(_ method: M.Type, _ parameters: M.Parameters) throws(ClientError) -> M.Reply {
        throw ClientError(.unreachable("stub"))
    }
    package func stream<M: WireMethod>(
        _ method: M.Type, _ parameters: M.Parameters, _ each: (M.Reply) throws -> Bool
    ) throws {
        throw ClientError(.unreachable("stub"))
    }
    package func close() {}
}
package enum ServiceStarter {
    package static func connect(to location: DeviceLocation, startIfNeeded: Bool) throws(ClientError)
        -> ServiceConnection
    {
        throw ClientError(.unreachable("stub"))
    }
}
