// The first bytes of a body that may be a web page, in however many pieces they come.
import AssetsModel
import AssetsOS
import AssetsTransfer
import Testing

@Suite("Beginnings in pieces", .timeLimit(.minutes(10)))
struct PageBeginningTests {
    private static let content = noise(300_000)
    private static let there = 100_000
    private static let fields = ["Content-Length: 300000", "ETag: \"v1\""]

    /// A body in chunks, each of which libcurl hands on by itself.
    private static func chunked(_ type: String, _ pieces: [[UInt8]]) -> RawServer.Answer {
        let chunks = pieces.flatMap { Array("\(String($0.count, radix: 16))\r\n".utf8) + $0 + Array("\r\n".utf8) }
        return RawServer.Answer(
            "HTTP/1.1 200 OK", ["Content-Type: \(type)", "Transfer-Encoding: chunked"],
            chunks + Array("0\r\n\r\n".utf8))
    }

    /// Has a file of which a part is there asked for once more.
    private func goOn(
        _ answer: RawServer.Answer, _ body: (Bench, [TransferEvent]) throws -> Void
    ) async throws {
        let first = RawServer.Answer("HTTP/1.1 200 OK", Self.fields, Self.content[..<Self.there])
        try await serve([first, answer]) { server, bench in
            let note = await bench.run(bench.spec(server.url("/f.zip"))).checkpoint
            try body(bench, await bench.run(bench.spec(server.url("/f.zip"), resume: note)))
        }
    }

    private static let form = "<p>Please sign in to use this network.</p>" + String(repeating: " ", count: 200)
    private static let pages = [
        ["\n", "<", "!doctype html>" + form], ["<", "html>", form], ["\r\n", " ", "<", "p", ">", "Sign in"],
        "<html>Sign in</html>".map(String.init), ("\u{FEFF}<!DOCTYPE html>" + form).map(String.init),
    ]

    @Test("A sign-in page is one however short its first pieces are, and takes nothing away", arguments: pages)
    func page(pieces: [String]) async throws {
        try await goOn(Self.chunked("text/html", pieces.map { Array($0.utf8) })) { bench, events in
            #expect(events.interruption?.reason == .portal && events.resumedAt == [])
            let content = try bench.content()
            #expect(content == Bytes(Self.content[..<Self.there]))
        }
    }

    @Test("A file that comes in short pieces is taken whole, however short it is", arguments: [0, 1, 63, 64, 65, 5000])
    func file(length: Int) async throws {
        let bytes = noise(length, seed: 2)
        let pieces = bytes.prefix(70).map { [$0] } + [Array(bytes.dropFirst(70))].filter { !$0.isEmpty }
        try await goOn(Self.chunked("text/html", pieces)) { bench, events in
            #expect(events.receivedLength == Int64(length) && events.resumedAt == [0])
            let content = try bench.content()
            #expect(content == Bytes(bytes))
        }
    }

    // MARK: In the middle of it

    /// Runs an attempt whose answer is one byte of a doubtful body, and then what `body` makes of it.
    private func begin(
        in directory: TestDirectory, resume: ResumePoint? = nil, _ body: (Bench, HandTransport) async -> Void
    ) async throws -> [TransferEvent] {
        let transport = HandTransport()
        let bench = try Bench(in: directory, transport: { _ in transport })
        let told = Guarded<[TransferEvent]>([])
        bench.engine.start(bench.spec("https://example.com/f.zip", resume: resume)) { event in
            told.withLock { $0.append(event) }
        }
        let head = TransportHead(
            status: 200,
            headers: [
                HeaderField(name: "Content-Type", value: "text/plain"), HeaderField(name: "ETag", value: "\"v2\""),
                HeaderField(name: "Accept-Ranges", value: "bytes"),
            ])
        await transport.tell(on: bench.loop) { handler in
            handler.received(head)
            Self.content[..<1].withUnsafeBytes { handler.received($0) }
        }
        await body(bench, transport)
        await bench.stop()
        return told.withLock { $0 }
    }

    @Test("A transfer that is paused or asked to stop before its beginning is there loses nothing")
    func paused() async throws {
        let directory = try TestDirectory()
        let events = try await begin(in: directory) { bench, transport in
            await bench.engine.pause("x")
            bench.engine.stop("x")
            bench.engine.resume("x", as: .background)
            await transport.tell(on: bench.loop) { handler in
                Self.content[1..<10].withUnsafeBytes { handler.received($0) }
                Self.content[10...].withUnsafeBytes { handler.received($0) }
            }
            // What was taken is in the file before the end.
            await bench.engine.pause("x")
            #expect(Bytes((try? bench.files.read(Bench.partial, limit: 1 << 20)) ?? []) == Bytes(Self.content))
        }
        #expect(events.resumedAt == [0] && events.contains(.canStop(true)))
    }

    @Test(
        "One that breaks, or is cancelled, before its beginning is there leaves what was there",
        arguments: [true, false])
    func broken(isCancelled: Bool) async throws {
        let directory = try TestDirectory()
        let first = RawServer.Answer("HTTP/1.1 200 OK", Self.fields, Self.content[..<Self.there])
        let server = try RawServer([first])
        let bench = try Bench(in: directory)
        let note = await bench.run(bench.spec(server.url("/f.zip"))).checkpoint
        await bench.stop()
        server.stop()
        let events = try await begin(in: directory, resume: note) { bench, transport in
            if isCancelled { return await bench.engine.cancel("x") }
            await transport.tell(on: bench.loop) {
                $0.ended(TransportFailure(kind: .stall, code: URLErrorCode.timedOut, text: "nothing came"))
            }
        }
        #expect(note != nil && events.resumedAt == [])
        let files = try DeviceTree(root: directory.path + "/device")
        #expect(Bytes(try files.read(Bench.partial, limit: 1 << 20)) == Bytes(Self.content[..<Self.there]))
    }
}

/// One request, whose answer the test gives by hand.
///
/// Unchecked: used on the loop of one engine only.
private final class HandTransport: Transport, @unchecked Sendable {
    private var handler: (any TransportHandler)?

    /// Waits until the handler has done what follows, and all that was asked of the engine before.
    func tell(on loop: EventLoop, _ body: @escaping @Sendable (any TransportHandler) -> Void) async {
        await withCheckedContinuation { continuation in
            loop.perform {
                if let handler = self.handler { body(handler) }
                continuation.resume()
            }
        }
    }

    func start(_ request: TransportRequest, handler: any TransportHandler) -> TransportTask {
        self.handler = handler
        return TransportTask(number: 1)
    }
    func cancel(_ task: TransportTask) { handler = nil }
    func pause(_ task: TransportTask) {}
    func resume(_ task: TransportTask) {}
    func setDiscretionary(_ task: TransportTask, _ isDiscretionary: Bool) {}
    func dropConnections(keeping addresses: [String]) {}
    func stop() { handler = nil }
}
