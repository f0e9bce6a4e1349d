import Foundation
import Testing

@testable import AssetsWire

/// The bytes of a frame for the length of a call.
func withFrame<R>(_ text: String, _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try withFrame(Array(text.utf8), body)
}

func withFrame<R>(_ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try bytes.withUnsafeBytes { try body($0) }
}

/// A message as nested dictionaries, to compare its meaning.
func object(_ bytes: [UInt8]) throws -> NSDictionary {
    try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? NSDictionary)
}

private typealias Install = DeviceInterface.Install
private typealias Describe = DeviceInterface.Describe

@Suite struct WireCodecTests {
    @Test("A call has method, flags and parameters")
    func call() throws {
        let plain = try WireCodec.call(Install.self, .init(source: "/a\"\u{1F600}", sourceKind: "store"))
        let parameters = ["source": "/a\"\u{1F600}", "source_kind": "store"]
        #expect(try object(plain) == ["method": Install.name, "parameters": parameters])
        let flagged = try WireCodec.call(Describe.self, Nothing(), more: true, oneway: true)
        #expect(
            try object(flagged)
                == ["method": Describe.name, "more": true, "oneway": true, "parameters": [String: String]()])
        #expect(!plain.contains(0))
    }

    @Test("A call is read as it was written")
    func callRoundTrip() throws {
        let parameters = Install.Parameters(source: "/ä\u{0}\n\\", sourceKind: "")
        let frame = try WireCodec.call(Install.self, parameters, more: true)
        try withFrame(frame) { (frame) throws in
            #expect(try WireCodec.decodeHeader(frame) == CallHeader(method: Install.name, more: true))
            #expect(try WireCodec.decodeParameters(Install.self, frame) == parameters)
        }
    }

    @Test("A reply is read as it was written", arguments: [false, true])
    func replyRoundTrip(continues: Bool) throws {
        let reply = Describe.Reply(device: "d", root: "/", version: "1", process: .max, developerMode: true)
        let frame = try WireCodec.reply(Describe.self, reply, continues: continues)
        #expect(try object(frame)["continues"] as? Bool == (continues ? true : nil))
        try withFrame(frame) { (frame) throws in
            #expect(try WireCodec.decodeAnswer(frame) == .reply(continues: continues))
            #expect(try WireCodec.decodeReply(Describe.self, frame) == reply)
        }
    }

    @Test("A refusal is an error of the interface that was called")
    func refusal() throws {
        let refusal = Refusal(code: 1006, reason: "shut", remedy: "wait")
        let frame = WireCodec.refusal(of: ManagerInterface.Cancel.name, refusal)
        try withFrame(frame) { (frame) throws in
            #expect(try WireCodec.decodeAnswer(frame) == .error(name: ManagerInterface.refused))
            #expect(try WireCodec.decodeParameters(as: Refusal.self, frame) == refusal)
        }
    }

    @Test("A refusal with endless texts keeps its code")
    func hugeRefusal() throws {
        let huge = String(repeating: "x", count: WireLimit.messageMax)
        let frame = WireCodec.refusal(of: Install.name, Refusal(code: 7, reason: huge, remedy: ""))
        let code = try withFrame(frame) { try WireCodec.decodeParameters(as: Refusal.self, $0).code }
        #expect(code == 7)
        let problem = WireCodec.error(.methodNotFound(huge))
        #expect(try object(problem) == ["error": "org.varlink.service.MethodNotFound"])
    }

    @Test(
        "Each error of the protocol is read as it was written",
        arguments: [
            .interfaceNotFound("a.b"), .methodNotFound("a.b.C"), .methodNotImplemented("a.b.D"), .invalidParameter("x"),
            .expectedMore,
        ] as [VarlinkService.Problem])
    func problems(problem: VarlinkService.Problem) throws {
        let back = withFrame(WireCodec.error(problem)) { VarlinkService.Problem(name: problem.name, frame: $0) }
        #expect(back == problem)
        #expect(withFrame("{}") { VarlinkService.Problem(name: DeviceInterface.refused, frame: $0) } == nil)
    }

    @Test("Unknown members are passed over, and parameters may be missing where none are needed")
    func lenient() throws {
        let text =
            #"{"new": [{"x": null}], "method": "a.b.C", "parameters": {"install": "i", "later": 1}, "oneway": true}"#
        try withFrame(text) { (frame) throws in
            #expect(try WireCodec.decodeHeader(frame) == CallHeader(method: "a.b.C", oneway: true))
            #expect(try WireCodec.decodeParameters(DeviceInterface.CancelInstall.self, frame).install == "i")
            #expect(throws: Never.self) { try WireCodec.decodeParameters(Describe.self, frame) }
        }
        try withFrame(#"{"method": "a.b.C", "parameters": null}"#) { (frame) throws in
            #expect(throws: Never.self) { try WireCodec.decodeParameters(Describe.self, frame) }
        }
        #expect(CallHeader(method: "a.b.C").interface == "a.b")
        #expect(CallHeader(method: "C").interface == "")
    }

    @Test(
        "What is no varlink message is malformed",
        arguments: [
            "", " ", "x", "[]", "1", "\"method\"", "{", "{}", #"{"method": 1}"#, #"{"method": null}"#,
            #"{"method": "a.b", "more": "yes"}"#, #"{"method": "a.b"} {"#, #"{"method": "a.b","#,
            #"{"method": "\ud800"}"#, "{\"method\": \"\u{1}\"}",
        ])
    func malformed(text: String) {
        #expect(throws: WireError.malformed) { try withFrame(text) { try WireCodec.decodeHeader($0) } }
    }

    @Test("Bytes that are no UTF-8 are malformed")
    func noText() {
        let bytes = Array(#"{"method": ""#.utf8) + [0xFF, 0xFE] + Array(#""}"#.utf8)
        #expect(throws: WireError.malformed) { try withFrame(bytes) { try WireCodec.decodeHeader($0) } }
    }

    @Test(
        "A wrong parameter is named",
        arguments: [
            (#"{"method": "m", "parameters": {}}"#, "session"),
            (#"{"method": "m"}"#, "session"),
            (#"{"method": "m", "parameters": {"session": 1, "ticket": 1}}"#, "session"),
            (#"{"method": "m", "parameters": {"session": "s", "ticket": 1.5}}"#, "parameters"),
            (#"{"method": "m", "parameters": {"session": "s", "ticket": 1e300}}"#, "parameters"),
            (#"{"method": "m", "parameters": {"session": "s", "ticket": null}}"#, "ticket"),
            (#"{"method": "m", "parameters": []}"#, "parameters"),
        ])
    func invalidParameter(text: String, name: String) {
        #expect(throws: WireError.invalidParameter(name)) {
            try withFrame(text) { try WireCodec.decodeParameters(ManagerInterface.ReleaseControl.self, $0) }
        }
    }

    @Test("A wrong value deep inside is named by its path")
    func deepParameter() {
        let text = #"{"method": "m", "parameters": {"download": {"identifier": 1}}}"#
        #expect(throws: WireError.invalidParameter("download.identifier")) {
            try withFrame(text) { try WireCodec.decodeParameters(ManagerInterface.Schedule.self, $0) }
        }
    }

    @Test("Endless nesting is malformed and does no harm", arguments: ["[", "{\"a\":"])
    func nesting(opening: String) {
        let text = #"{"method": "a.b", "x": "# + String(repeating: opening, count: 200_000)
        #expect(throws: WireError.malformed) { try withFrame(text) { try WireCodec.decodeHeader($0) } }
    }

    @Test("What cannot be sent is an error: too long, or not a number")
    func unsendable() {
        let long = String(repeating: "x", count: WireLimit.messageMax)
        #expect(throws: WireError.tooLong) {
            try WireCodec.call(Install.self, .init(source: long, sourceKind: "store"))
        }
        let update = DeviceInterface.InstallUpdate(
            install: "", app: "", phase: "", fraction: .nan, received: 0, expected: 0, detail: "", code: 0, remedy: "")
        #expect(throws: WireError.unencodable) { try WireCodec.reply(Install.self, .init(update: update)) }
    }

    @Test("What is read in one go is what a general decoder reads", arguments: 1...20 as ClosedRange<UInt64>)
    func decoders(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let download = WireDownload(
            identifier: "ä", uniqueIdentifier: "u", url: "https://a.example.com/x?y=1", method: "GET",
            headers: [.init(name: "Accept", value: "*/*")], body: "", group: "g", essential: true, size: 1 << 40,
            priority: -1000, kind: "url", state: 2)
        let event = ManagerInterface.Event(kind: "finished", number: 12, download: download, path: "/tmp/a b")
        let original = try WireEncoder.append(ManagerInterface.Events.Reply(events: [event, event]), to: [])
        var read = 0
        for round in 0..<500 {
            var bytes = [UInt8](original)
            for _ in 0..<(round == 0 ? 0 : Int.random(in: 1...3, using: &random)) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
                case 1: bytes.remove(at: place)
                default: bytes.insert(UInt8(ascii: "0"), at: place)
                }
            }
            let ours = withFrame(bytes) { try? WireDecoder.decode(ManagerInterface.Events.Reply.self, $0) }
            guard let ours else { continue }
            read += 1
            let theirs = try? JSONDecoder().decode(ManagerInterface.Events.Reply.self, from: Data(bytes))
            #expect(ours == theirs, "seed \(seed): \(String(decoding: bytes, as: UTF8.self))")
        }
        #expect(read > 20)
    }

    @Test("What is written in one go is what a general decoder reads")
    func encoder() throws {
        let text = "\u{0}\u{1F}\"\\/\n\r\té\u{10FFFF}"
        let entry = DeviceInterface.JournalEntry(
            number: .min, time: 1_700_000_000.123456, event: text, reason: "", app: "", download: "", detail: text)
        let reply = DeviceInterface.Journal.Reply(entries: [entry, entry])
        let bytes = try WireEncoder.append(reply, to: [])
        #expect(try JSONDecoder().decode(DeviceInterface.Journal.Reply.self, from: Data(bytes)) == reply)
        #expect(try WireEncoder.append(Nothing(), to: []) == Array("{}".utf8))
        #expect(
            try WireEncoder.append(DeviceInterface.Journal.Reply(entries: []), to: []) == Array(#"{"entries":[]}"#.utf8)
        )
        let launch = DeviceInterface.Launch.Reply(executable: "/x", environment: ["A": "1", "B": ""])
        let launched = try WireEncoder.append(launch, to: [])
        #expect(try JSONDecoder().decode(DeviceInterface.Launch.Reply.self, from: Data(launched)) == launch)
    }

    @Test("Changed messages never do worse than an error", arguments: 1...20 as ClosedRange<UInt64>)
    func fuzz(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let event = ManagerInterface.Event(
            kind: "progress", number: 3, session: "ä\"\\", written: 5, failure: .init(domain: "d", code: -1, reason: "")
        )
        let original = try WireCodec.reply(ManagerInterface.Events.self, .init(events: [event]), continues: true)
        for _ in 0..<500 {
            var bytes = original
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
                case 1: bytes.remove(at: place)
                default: bytes.insert(contentsOf: bytes[place...].prefix(9), at: place)
                }
            }
            withFrame(bytes) { frame in
                // Typed throws: nothing but a WireError can come out, and nothing may trap.
                _ = try? WireCodec.decodeHeader(frame)
                _ = try? WireCodec.decodeAnswer(frame)
                _ = try? WireCodec.decodeReply(ManagerInterface.Events.self, frame)
            }
        }
    }
}

/// A generator with a seed, so that a failure can be had again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
