// Frames of the wire: calls as the service gets them, answers as clients do. What one reader takes the other takes too.
@testable import AssetsWire

private let methods: [String: any WireMethod.Type] = [
    ManagerInterface.Schedule.name: ManagerInterface.Schedule.self,
    ManagerInterface.StartForeground.name: ManagerInterface.StartForeground.self,
    DeviceInterface.Journal.name: DeviceInterface.Journal.self,
    DeviceInterface.Describe.name: DeviceInterface.Describe.self,
]
private let reader = CallReader(methods)

/// One input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let frame = UnsafeRawBufferPointer(start: data, count: count)
    let header = try? WireCodec.decodeHeader(frame)
    if let sound = reader.read(frame) {
        precondition(header == sound.header, "two readers of one header")
        if sound.header.method == ManagerInterface.Schedule.name {
            let parameters = try? WireCodec.decodeParameters(ManagerInterface.Schedule.self, frame)
            precondition(parameters == sound.parameters as? ManagerInterface.Schedule.Parameters)
            if let parameters { roundTrip(parameters) }
        }
    }
    if let header { _ = header.interface }
    _ = try? WireCodec.decodeAnswer(frame)
    _ = WireCodec.decodeSoundReply(DeviceInterface.Describe.self, frame)
    _ = try? WireCodec.decodeReply(ManagerInterface.Schedule.self, frame)
    _ = try? WireCodec.decodeParameters(as: ManagerInterface.Event.self, frame)
    return 0
}

private func roundTrip(_ parameters: ManagerInterface.Schedule.Parameters) {
    guard let bytes = try? WireCodec.call(ManagerInterface.Schedule.self, parameters) else { return }
    let again = bytes.withUnsafeBytes { try? WireCodec.decodeParameters(ManagerInterface.Schedule.self, $0) }
    precondition(again == parameters, "what was written reads otherwise")
}
