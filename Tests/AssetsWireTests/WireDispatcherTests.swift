import Testing

@testable import AssetsWire

/// An actor that serves two methods and notes what it was called with.
private actor Owner {
    private(set) var calls: [String] = []
    static let dispatcher: WireDispatcher<Owner, Int> = {
        var dispatcher = WireDispatcher<Owner, Int>(
            vendor: "v", product: "p", version: "1", url: "u", interfaces: [DeviceInterface.interface])
        dispatcher.on(DeviceInterface.CancelInstall.self) { owner, caller, header, parameters in
            owner.calls.append("\(caller) \(header.oneway) \(parameters.install)")
        }
        dispatcher.onStream(DeviceInterface.FollowInstall.self) { owner, caller, header, parameters in
            owner.calls.append("\(caller) \(header.more) \(parameters.install)")
        }
        return dispatcher
    }()

    func receive(_ text: String) -> WireDispatcher<Owner, Int>.Outcome {
        withFrame(text) { Self.dispatcher.receive($0, from: 7, in: self) }
    }
}

@Suite struct WireDispatcherTests {
    private let owner = Owner()

    private func receive(_ method: String, _ parameters: String = "{}", _ flags: String = "") async
        -> WireDispatcher<Owner, Int>.Outcome
    {
        await owner.receive(#"{"method":"\#(method)","parameters":\#(parameters)\#(flags)}"#)
    }

    @Test("A call reaches its handler with caller, flags and parameters")
    func handlers() async {
        #expect(await receive(DeviceInterface.CancelInstall.name, #"{"install":"a"}"#) == .taken)
        #expect(await receive(DeviceInterface.CancelInstall.name, #"{"install":"b"}"#, #","oneway":true"#) == .taken)
        #expect(await receive(DeviceInterface.FollowInstall.name, #"{"install":"c"}"#, #","more":true"#) == .taken)
        #expect(await owner.calls == ["7 false a", "7 true b", "7 true c"])
    }

    @Test("What cannot be called is answered with the error of the protocol")
    func problems() async {
        #expect(await receive("org.example.Do") == .send(WireCodec.error(.interfaceNotFound("org.example"))))
        #expect(await receive("") == .send(WireCodec.error(.interfaceNotFound(""))))
        let unknown = DeviceInterface.interface + ".Nothing"
        #expect(await receive(unknown) == .send(WireCodec.error(.methodNotFound(unknown))))
        let manager = ManagerInterface.Identity.name
        #expect(await receive(manager) == .send(WireCodec.error(.interfaceNotFound(ManagerInterface.interface))))
        #expect(
            await receive(DeviceInterface.CancelInstall.name) == .send(WireCodec.error(.invalidParameter("install"))))
        #expect(
            await receive(DeviceInterface.FollowInstall.name, #"{"install":"c"}"#)
                == .send(WireCodec.error(.expectedMore)))
        #expect(await owner.calls == [])
    }

    @Test("A one way call is never answered")
    func oneway() async {
        let flag = #","oneway":true"#
        #expect(await receive("org.example.Do", "{}", flag) == .nothing)
        #expect(await receive(DeviceInterface.CancelInstall.name, "{}", flag) == .nothing)
        #expect(await receive(VarlinkService.GetInfo.name, "{}", flag) == .nothing)
    }

    @Test("What is no message is a violation")
    func violation() async {
        #expect(await owner.receive("hello") == .violation(.malformed))
    }

    @Test("The service describes itself")
    func introspection() async throws {
        let interfaces = [VarlinkService.interface, DeviceInterface.interface]
        guard case .send(let info) = await receive(VarlinkService.GetInfo.name) else {
            Issue.record("GetInfo has no answer")
            return
        }
        let reply = try withFrame(info) { try WireCodec.decodeReply(VarlinkService.GetInfo.self, $0) }
        #expect(reply == .init(vendor: "v", product: "p", version: "1", url: "u", interfaces: interfaces))
        for name in interfaces {
            let method = VarlinkService.GetInterfaceDescription.name
            guard case .send(let answer) = await receive(method, #"{"interface":"\#(name)"}"#) else {
                Issue.record("\(name) has no description")
                continue
            }
            let text = try withFrame(answer) {
                try WireCodec.decodeReply(VarlinkService.GetInterfaceDescription.self, $0).description
            }
            #expect(try InterfaceDescription(parsing: text).name == name)
        }
        // Ours, but not served here.
        let hidden = ExtensionInterface.interface
        #expect(
            await receive(VarlinkService.GetInterfaceDescription.name, #"{"interface":"\#(hidden)"}"#)
                == .send(WireCodec.error(.interfaceNotFound(hidden))))
        #expect(
            await receive(VarlinkService.GetInterfaceDescription.name)
                == .send(WireCodec.error(.invalidParameter("interface"))))
    }
}
