import Foundation
import Testing

@testable import AssetsWire

/// The folder with the interface files.
private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../Interfaces").standardizedFileURL

private let interfaces = [DeviceInterface.interface, ManagerInterface.interface, ExtensionInterface.interface]

/// Every method type of ours.
private let methods: [any WireMethod.Type] = [
    DeviceInterface.Describe.self, DeviceInterface.Sandbox.self, DeviceInterface.Install.self,
    DeviceInterface.FollowInstall.self,
    DeviceInterface.CancelInstall.self, DeviceInterface.Uninstall.self, DeviceInterface.Launch.self,
    DeviceInterface.Apps.self, DeviceInterface.Downloads.self, DeviceInterface.Journal.self,
    DeviceInterface.Extension.self, DeviceInterface.Why.self, DeviceInterface.Simulate.self,
    DeviceInterface.SetDeveloperMode.self,
    DeviceInterface.SetSetting.self,
    ManagerInterface.Declare.self, ManagerInterface.Identity.self, ManagerInterface.Schedule.self,
    ManagerInterface.StartForeground.self, ManagerInterface.Cancel.self, ManagerInterface.CurrentDownloads.self,
    ManagerInterface.Events.self, ManagerInterface.SetDelegate.self, ManagerInterface.Answer.self,
    ManagerInterface.AnswerChallenge.self, ManagerInterface.AcquireControl.self, ManagerInterface.ReleaseControl.self,
    ExtensionInterface.ContentRequest.self, ExtensionInterface.ApplicationEvent.self,
    ExtensionInterface.DownloadFailed.self, ExtensionInterface.DownloadFinished.self,
    ExtensionInterface.Challenged.self, ExtensionInterface.WillTerminate.self,
    VarlinkService.GetInfo.self, VarlinkService.GetInterfaceDescription.self,
]

/// Values made from a description alone, so that code and text cannot agree by accident.
private struct Sample {
    let description: InterfaceDescription

    func object(_ fields: [InterfaceDescription.Field]) throws -> [String: Any] {
        var object: [String: Any] = [:]
        for field in fields { object[field.name] = try value(field.type) }
        return object
    }

    private func value(_ type: InterfaceDescription.FieldType) throws -> Any {
        switch type {
        case .bool: true
        case .int: 42
        case .float: 2.5
        case .string: "text"
        case .object: ["any": "thing"]
        case .array(let element): [try value(element)]
        case .dictionary(let element): ["key": try value(element)]
        case .optional(let inner): try value(inner)
        case .structure(let fields): try object(fields)
        case .enumeration(let names): try #require(names.first)
        case .named(let name): try value(#require(description.types.first { $0.name == name }).type)
        }
    }
}

/// What comes out when `sample` goes through a type of ours.
private func throughCode<T: Codable>(_ type: T.Type, _ sample: [String: Any]) throws -> NSDictionary {
    let data = try JSONSerialization.data(withJSONObject: sample)
    let encoded = try JSONEncoder().encode(try JSONDecoder().decode(type, from: data))
    return try #require(try JSONSerialization.jsonObject(with: encoded) as? NSDictionary)
}

private func check<M: WireMethod>(_ method: M.Type, _ description: InterfaceDescription) throws {
    let name = String(M.name.dropFirst(description.name.count + 1))
    let defined = try #require(description.methods.first { $0.name == name }, "\(M.name) is in no interface file")
    let parameters = try Sample(description: description).object(defined.parameters)
    #expect(try throughCode(M.Parameters.self, parameters) == parameters as NSDictionary, "parameters of \(M.name)")
    let reply = try Sample(description: description).object(defined.reply)
    #expect(try throughCode(M.Reply.self, reply) == reply as NSDictionary, "reply of \(M.name)")
}

@Suite struct InterfaceTests {
    @Test("The texts in the binary are the interface files, byte for byte", arguments: interfaces)
    func texts(name: String) throws {
        let file = try Data(contentsOf: folder.appendingPathComponent(name + ".varlink"))
        #expect(InterfaceTexts.text(of: name).map { Data($0.utf8) } == file)
    }

    @Test("Every interface file is in the binary")
    func noOtherFiles() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(files.sorted() == interfaces.map { $0 + ".varlink" }.sorted())
        #expect(InterfaceTexts.text(of: "org.example") == nil)
    }

    @Test("Every method of a text has one type, and every type has a method")
    func complete() throws {
        var defined: [String] = []
        for name in interfaces + [VarlinkService.interface] {
            let description = try InterfaceDescription(parsing: #require(InterfaceTexts.text(of: name)))
            #expect(description.name == name)
            defined += description.methods.map { name + "." + $0.name }
        }
        #expect(methods.map { $0.name }.sorted() == defined.sorted())
    }

    @Test("Parameters and replies have the names and types of the text", arguments: methods.indices)
    func fields(index: Int) throws {
        let name = CallHeader(method: methods[index].name).interface
        try check(methods[index], InterfaceDescription(parsing: #require(InterfaceTexts.text(of: name))))
    }

    @Test("The errors have the names and types of the text")
    func errors() throws {
        for (name, refused) in [
            (DeviceInterface.interface, DeviceInterface.refused),
            (ManagerInterface.interface, ManagerInterface.refused),
        ] {
            let description = try InterfaceDescription(parsing: #require(InterfaceTexts.text(of: name)))
            #expect(description.errors.map { name + "." + $0.name } == [refused])
            guard case .structure(let fields)? = description.errors.first?.type else {
                Issue.record("\(refused) has no fields")
                continue
            }
            let sample = try Sample(description: description).object(fields)
            #expect(try throughCode(Refusal.self, sample) == sample as NSDictionary)
        }
        let service = try InterfaceDescription(parsing: #require(InterfaceTexts.text(of: VarlinkService.interface)))
        let problems: [VarlinkService.Problem] = [
            .interfaceNotFound("x"), .methodNotFound("x"), .methodNotImplemented("x"), .invalidParameter("x"),
            .expectedMore,
        ]
        #expect(service.errors.map { VarlinkService.interface + "." + $0.name } == problems.map(\.name))
        for (problem, definition) in zip(problems, service.errors) {
            let sent = try object(WireCodec.error(problem))["parameters"] as? [String: String]
            guard case .structure(let fields) = definition.type else {
                Issue.record("\(problem.name) has no fields")
                continue
            }
            #expect(sent == Dictionary(uniqueKeysWithValues: fields.map { ($0.name, "x") }))
        }
    }
}

@Suite struct InterfaceDescriptionTests {
    @Test("Everything of the grammar is read")
    func everything() throws {
        let text = """
            # A comment
            interface a.b-c.d1
            type T (a: bool, b: ?int, c: []float, d: [string]?string, e: object, f: (one, two), g: (x: U), h: ?[]U)
            type U(kind:(red),n:int)#end
            type E ()
            method M(p: T) -> (q: [](z: string))
            method N()->()
            error Bad (why: string)
            """
        let description = try InterfaceDescription(parsing: text)
        #expect(description.name == "a.b-c.d1")
        #expect(
            description.types.first?.type
                == .structure([
                    .init(name: "a", type: .bool), .init(name: "b", type: .optional(.int)),
                    .init(name: "c", type: .array(.float)), .init(name: "d", type: .dictionary(.optional(.string))),
                    .init(name: "e", type: .object), .init(name: "f", type: .enumeration(["one", "two"])),
                    .init(name: "g", type: .structure([.init(name: "x", type: .named("U"))])),
                    .init(name: "h", type: .optional(.array(.named("U")))),
                ]))
        #expect(description.types.map(\.name) == ["T", "U", "E"])
        #expect(description.types.last?.type == .structure([]))
        #expect(
            description.methods == [
                .init(
                    name: "M", parameters: [.init(name: "p", type: .named("T"))],
                    reply: [.init(name: "q", type: .array(.structure([.init(name: "z", type: .string)])))]),
                .init(name: "N", parameters: [], reply: []),
            ])
        #expect(description.errors == [.init(name: "Bad", type: .structure([.init(name: "why", type: .string)]))])
    }

    @Test(
        "What is no interface is refused with its line",
        arguments: [
            ("", 1), ("interface", 1), ("interface a", 1), ("interface a..b", 1), ("interface -a.b", 1),
            ("interface a.b-", 1), ("interface 1a.b", 1), ("interface a.b\nmethod m() -> ()", 2),
            ("interface a.b\n\nmethod M()", 3), ("interface a.b\nmethod M() -> (a)", 2),
            ("interface a.b\ntype T (a: int, b)", 2), ("interface a.b\ntype T (a: ??int)", 2),
            ("interface a.b\ntype T (a: integer)", 2), ("interface a.b\ntype T (a: int,)", 2),
            ("interface a.b\ntype T (a: int", 2), ("interface a.b\ntype T (a: [int]string)", 2),
            ("interface a.b\ntype T (_a: int)", 2), ("interface a.b\ntype T (a__b: int)", 2),
            ("interface a.b\ntype T (a: int, a: int)", 2), ("interface a.b\ntype T ()\nmethod T() -> ()", 3),
            ("interface a.b\nthing T ()", 2), ("interface a.b\ntype T_x ()", 2), ("interface a.b !", 1),
        ])
    func refused(text: String, line: Int) {
        let error = #expect(throws: InterfaceDescription.SyntaxError.self) {
            try InterfaceDescription(parsing: text)
        }
        #expect(error?.line == line)
    }

    @Test("Endless nesting is refused", arguments: ["(a:", "[]", "?[]", "[string]"])
    func nesting(opening: String) {
        let text = "interface a.b\ntype T (a: " + String(repeating: opening, count: 100_000)
        #expect(throws: InterfaceDescription.SyntaxError.self) { try InterfaceDescription(parsing: text) }
    }

    @Test("Changed texts never do worse than an error", arguments: 1...20 as ClosedRange<UInt64>)
    func fuzz(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let original = Array(try #require(InterfaceTexts.text(of: ManagerInterface.interface)).utf8)
        for _ in 0..<100 {
            var bytes = original
            for _ in 0..<Int.random(in: 1...5, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                if Bool.random(using: &random) {
                    bytes[place] = UInt8.random(in: .min ... .max, using: &random)
                } else {
                    bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 1...20, using: &random)))
                }
            }
            _ = try? InterfaceDescription(parsing: String(decoding: bytes, as: UTF8.self))
        }
    }
}
