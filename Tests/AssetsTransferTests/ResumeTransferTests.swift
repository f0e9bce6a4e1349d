// What becomes of the bytes on the disk when a server answers a request for the rest in ways of its own.
import AssetsModel
import AssetsOS
import AssetsTransfer
import Testing

@Suite("Transfers that go on", .timeLimit(.minutes(10)))
struct ResumeTransferTests {
    private typealias Answer = RawServer.Answer

    private static let content = noise(300_000)
    private static let fields = ["Content-Length: 300000", "ETag: \"v1\""]

    /// Lets a first attempt bring 100 000 bytes and a second one get these answers.
    private func goOn(
        _ answers: [RawServer.Answer], _ body: (RawServer, Bench, [TransferEvent]) async throws -> Void
    ) async throws {
        let first = Answer("HTTP/1.1 200 OK", Self.fields, Self.content[..<100_000])
        let server = try RawServer([first] + answers)
        let bench = try Bench(in: TestDirectory())
        do {
            let note = await bench.run(bench.spec(server.url("/f.pak"))).checkpoint
            try await body(server, bench, await bench.run(bench.spec(server.url("/f.pak"), resume: note)))
        } catch {
            await bench.stop()
            throw error
        }
        await bench.stop()
        server.stop()
    }

    private static let useless: [(String, RawServer.Answer)] = [
        ("no answer", Answer("")),
        ("busy", Answer("HTTP/1.1 503 Busy", ["Content-Length: 0"], [])),
        (
            "a sign-in page",
            Answer("HTTP/1.1 200 OK", ["Content-Type: text/html"], Array("<html>Please sign in</html>".utf8))
        ),
        (
            "a redirect to sign in",
            Answer("HTTP/1.1 302 Found", ["Location: http://wifi.example/login", "Content-Length: 0"], [])
        ),
        ("lengths that contradict each other", Answer("HTTP/1.1 200 OK", ["Content-Length: 3x"], [1, 2, 3])),
    ]

    @Test("An answer that brings nothing takes nothing away", arguments: 0..<useless.count)
    func kept(index: Int) async throws {
        // libcurl tries a second time where a connection ended without a byte.
        try await goOn([Self.useless[index].1, Self.useless[index].1]) { _, bench, events in
            #expect(events.interruption != nil, "\(Self.useless[index].0)")
            #expect(events.resumedAt == [])
            let content = try bench.content()
            #expect(content == Bytes(Self.content[..<100_000]))
        }
    }

    @Test("Bytes stay until an answer takes their place, also when the whole is asked for")
    func keptUntilTaken() async throws {
        let wrong = Answer("HTTP/1.1 206 Partial Content", ["Content-Length: 3", "ETag: \"v1\""], [1, 2, 3])
        try await goOn([wrong, Answer(""), Answer("")]) { server, bench, events in
            #expect(events.interruption != nil && events.resumedAt == [])
            let content = try bench.content()
            #expect(content == Bytes(Self.content[..<100_000]))
            #expect(server.stop().map { $0.contains("\r\nRange:") }.prefix(3) == [false, true, false])
        }
    }

    @Test("A sign-in page is told as such")
    func portal() async throws {
        try await goOn([Self.useless[2].1]) { _, _, events in
            let interruption = try #require(events.interruption)
            #expect(interruption.kind == .unreachable && interruption.reason == .portal)
        }
    }

    @Test("A server that drops Range beside If-Range is asked for the rest without it")
    func bareRange() async throws {
        let whole = Answer("HTTP/1.1 200 OK", Self.fields + ["Accept-Ranges: bytes"], Self.content)
        let rest = Answer(
            "HTTP/1.1 206 Partial Content",
            ["Content-Length: 200000", "Content-Range: bytes 100000-299999/300000", "ETag: \"v1\""],
            Self.content[100_000...])
        try await goOn([whole, rest]) { server, bench, events in
            #expect(events.receivedLength == 300_000 && events.resumedAt == [100_000])
            let content = try bench.content()
            #expect(content == Bytes(Self.content))
            let requests = server.stop()
            #expect(requests.map { $0.contains("\r\nRange: bytes=100000-\r\n") } == [false, true, true])
            #expect(requests.map { $0.contains("\r\nIf-Range:") } == [false, true, false])
        }
    }

    @Test("Why bytes are fetched again is told before they are")
    func told() async throws {
        let other = Answer("HTTP/1.1 200 OK", ["Content-Length: 3", "ETag: \"v2\""], [1, 2, 3])
        try await goOn([other]) { _, bench, events in
            #expect(events.first == .startedOver(lost: 100_000, "the server has another version of the file"))
            #expect(events.receivedLength == 3 && events.resumedAt == [0])
            let content = try bench.content()
            #expect(content.all == [1, 2, 3])
        }
    }
}
