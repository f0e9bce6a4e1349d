// libcurl below the seam, against a server that does as told.
import AssetsModel
import AssetsOS
import Testing

@testable import AssetsTransfer

/// Owns a transport on a loop, as an engine does, and hands the handler's calls on as events.
actor Caller {
    enum Event: Equatable, Sendable {
        case head(Int)
        case bytes(Int)
        case ended(TransportFailure?)
    }

    private final class Handler: TransportHandler {
        let tell: (Event) -> Void
        init(_ tell: @escaping (Event) -> Void) { self.tell = tell }
        func received(_ head: TransportHead) { tell(.head(head.status)) }
        func received(_ bytes: UnsafeRawBufferPointer) { tell(.bytes(bytes.count)) }
        func ended(_ failure: TransportFailure?) { tell(.ended(failure)) }
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let transport: CurlTransport
    private var isStarting = false

    init(_ options: CurlTransport.Options = CurlTransport.Options()) throws {
        loop = try EventLoop.start(name: "transport")
        transport = CurlTransport(on: loop, options)
    }

    /// `react` may act on the transport inside the handler's calls.
    func start(
        _ request: TransportRequest,
        react: @escaping @Sendable (Event, CurlTransport, TransportTask) -> Void = { _, _, _ in }
    ) -> (AsyncStream<Event>, TransportTask) {
        let (stream, continuation) = AsyncStream.makeStream(of: Event.self)
        var task: TransportTask?
        let transport = transport
        task = transport.start(
            request,
            handler: Handler { event in
                guard let task else { preconditionFailure("told before start returned") }
                continuation.yield(event)
                react(event, transport, task)
                if case .ended = event { continuation.finish() }
            })
        return (stream, task ?? TransportTask(number: 0))
    }

    func pause(_ task: TransportTask) { transport.pause(task) }
    func resume(_ task: TransportTask) { transport.resume(task) }
    func cancel(_ task: TransportTask) { transport.cancel(task) }
    func dropConnections(keeping addresses: [String]) { transport.dropConnections(keeping: addresses) }

    func stop() {
        transport.stop()
        loop.stop()
    }
}

/// All that a request came to.
func collect(_ stream: AsyncStream<Caller.Event>) async -> (status: Int?, count: Int, end: Caller.Event?) {
    var status: Int?
    var count = 0
    var end: Caller.Event?
    for await event in stream {
        switch event {
        case .head(let number): status = number
        case .bytes(let more): count += more
        case .ended: end = event
        }
    }
    return (status, count, end)
}

func failure(_ end: Caller.Event?) -> TransportFailure? {
    if case .ended(let failure?)? = end { return failure }
    return nil
}

@Suite("libcurl", .timeLimit(.minutes(10)))
struct CurlTransportTests {
    @Test(
        "A request that cannot be made ends with a failure, after start",
        arguments: ["", "https://", "gopher://x/", "http://127.0.0.1:1/"])
    func impossible(url: String) async throws {
        let caller = try Caller()
        // Plain http only where the request allows it.
        let (stream, _) = await caller.start(TransportRequest(url: url))
        let result = await collect(stream)
        #expect(failure(result.end) != nil && result.status == nil)
        await caller.stop()
    }

    @Test(
        "A server that says nothing for too long has stalled, before and after its head",
        arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"])
    func stall(text: String) async throws {
        let server = try RawServer([.init(text, .hold)])
        let caller = try Caller()
        let request = TransportRequest(url: server.url("/"), stallTimeout: .seconds(3), allowsHTTP: true)
        let (stream, _) = await caller.start(request)
        let result = await collect(stream)
        #expect(failure(result.end)?.kind == .stall && failure(result.end)?.code == URLErrorCode.timedOut)
        #expect(result.count == (text.isEmpty ? 0 : 3))
        await caller.stop()
    }

    @Test("Time in which we take nothing does not count as a stall")
    func pauseIsNoStall() async throws {
        let total = 2 << 20
        let server = try RawServer([.init("HTTP/1.1 200 OK", ["Content-Length: \(total)"], noise(total))])
        let caller = try Caller()
        let (paused, continuation) = AsyncStream.makeStream(of: Void.self)
        let request = TransportRequest(url: server.url("/"), stallTimeout: .seconds(3), allowsHTTP: true)
        let (stream, task) = await caller.start(request) { event, transport, task in
            if case .head = event {
                transport.pause(task)
                continuation.finish()
            }
        }
        for await _ in paused {}
        // Twice as long as a stall, measured by the clock that libcurl has as well.
        await caller.loop.pause(for: .seconds(6))
        await caller.resume(task)
        let result = await collect(stream)
        #expect(result.count == total && result.end == .ended(nil))
        await caller.stop()
    }

    @Test("A request that waits for a connection is no stall, and has all its time to connect afterwards")
    func waitingForAConnection() async throws {
        let slow = RawServer.Answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", .hold)
        let quick = RawServer.Answer("HTTP/1.1 200 OK", ["Content-Length: 5"], noise(5))
        let server = try RawServer([slow, quick])
        var options = CurlTransport.Options()
        options.connectionsMax = 1
        let caller = try Caller(options)
        let (first, task) = await caller.start(TransportRequest(url: server.url("/1"), allowsHTTP: true))
        for await event in first { if case .bytes = event { break } }
        let request = TransportRequest(
            url: server.url("/2"), connectTimeout: .seconds(3), stallTimeout: .seconds(3), allowsHTTP: true)
        let (second, _) = await caller.start(request)
        await caller.loop.pause(for: .seconds(6))
        await caller.cancel(task)
        let result = await collect(second)
        #expect(result.status == 200 && result.count == 5 && result.end == .ended(nil))
        await caller.stop()
    }

    @Test("A running connection breaks at once when its own address is gone, and not before")
    func dropRunning() async throws {
        let whole = RawServer.Answer("HTTP/1.1 200 OK", ["Content-Length: 5"], noise(5))
        let half = RawServer.Answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", .hold)
        let server = try RawServer([half, whole])
        let caller = try Caller()
        let request = TransportRequest(url: server.url("/"), stallTimeout: slowMachine, allowsHTTP: true)
        let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
        let hasEnded = Guarded(false)
        let (running, _) = await caller.start(request) { event, _, _ in
            if case .bytes = event { continuation.finish() }
            if case .ended = event { hasEnded.withLock { $0 = true } }
        }
        for await _ in begun {}
        await caller.dropConnections(keeping: ["::1", "127.0.0.1"])
        #expect(await collect(await caller.start(request).0).end == .ended(nil))
        #expect(!hasEnded.withLock { $0 })
        await caller.dropConnections(keeping: ["192.0.2.1"])
        #expect(failure(await collect(running).end)?.kind == .partial)
        await caller.stop()
    }

    @Test("An idle connection is used again, unless its own address was gone meanwhile")
    func dropIdle() async throws {
        let directory = try TestDirectory()
        let nginx = try Nginx(in: directory)
        try nginx.publish("file", noise(5))
        var options = CurlTransport.Options(extraAuthorities: nginx.authority)
        options.idleConnectionMax = slowMachine
        let caller = try Caller(options)
        func fetch() async { #expect(await collect(await caller.start(.init(url: nginx.url("/file"))).0).count == 5) }
        await fetch()
        await caller.dropConnections(keeping: ["127.0.0.1"])
        await fetch()
        await caller.dropConnections(keeping: [])
        await fetch()
        await caller.stop()
        let connections = try nginx.finish().map(\.connection)
        #expect(connections.count == 3 && connections[0] == connections[1] && connections[1] != connections[2])
    }

    /// What the options say; nil for the rule of the libcurl that runs here.
    @Test(
        "HTTP/2 is spoken where rule and request allow it, also with a server that prefers it",
        arguments: [true, false, nil] as [Bool?], [true, false])
    func http2(isAllowed: Bool?, isAsked: Bool) async throws {
        let directory = try TestDirectory()
        let nginx = try Nginx(in: directory, http2: true)
        try nginx.publish("file", noise(5))
        var options = CurlTransport.Options(extraAuthorities: nginx.authority)
        options.allowsHTTP2 = isAllowed
        let caller = try Caller(options)
        let request = TransportRequest(url: nginx.url("/file"), allowsHTTP2: isAsked)
        #expect(await collect(await caller.start(request).0).count == 5)
        await caller.stop()
        let isShared = isAsked && (isAllowed ?? CurlTransport.http2.isAllowed)
        let versions = try nginx.finish().map(\.httpVersion)
        #expect(versions == [isShared ? "HTTP/2.0" : "HTTP/1.1"])
    }

    @Test("A paused request takes nothing until it is resumed")
    func pause() async throws {
        let total = 8 << 20
        let server = try RawServer([.init("HTTP/1.1 200 OK", ["Content-Length: \(total)"], noise(total))])
        let other = try RawServer([.init("HTTP/1.1 200 OK", ["Content-Length: 100000"], noise(100_000))])
        let caller = try Caller()
        let count = Guarded(0)
        let (paused, continuation) = AsyncStream.makeStream(of: Void.self)
        let (stream, task) = await caller.start(TransportRequest(url: server.url("/"), allowsHTTP: true)) {
            event, transport, task in
            if case .bytes(let more) = event { count.withLock { $0 += more } }
            if case .head = event {
                transport.pause(task)
                transport.pause(task)
                continuation.finish()
            }
        }
        for await _ in paused {}
        await caller.pause(task)
        // Another request runs on the same loop, while the first one's bytes wait at the door.
        let (beside, _) = await caller.start(TransportRequest(url: other.url("/"), allowsHTTP: true))
        #expect(await collect(beside).count == 100_000)
        #expect(count.withLock { $0 } == 0)
        await caller.resume(task)
        let result = await collect(stream)
        #expect(result.count == total && result.end == .ended(nil))
        await caller.stop()
    }

    @Test("A request may be cancelled and another begun inside every call of its handler")
    func cancelInside() async throws {
        let answer = RawServer.Answer("HTTP/1.1 200 OK", ["Content-Length: 100000"], noise(100_000))
        let server = try RawServer([answer, answer, answer])
        let caller = try Caller()
        let url = server.url("/")
        for step in 0..<2 {
            let told = Guarded<[Caller.Event]>([])
            let (next, continuation) = AsyncStream.makeStream(of: Void.self)
            let (_, _) = await caller.start(TransportRequest(url: url, allowsHTTP: true)) { event, transport, task in
                told.withLock { $0.append(event) }
                let isTime = if case .head = event { step == 0 } else { step == 1 }
                guard isTime else { return }
                transport.cancel(task)
                transport.cancel(task)
                continuation.finish()
            }
            for await _ in next {}
            let before = told.withLock { $0 }
            let (stream, _) = await caller.start(TransportRequest(url: url, allowsHTTP: true))
            if step == 0 { #expect(await collect(stream).count == 100_000) }
            #expect(told.withLock { $0 } == before)
            #expect(before.count == step + 1)
            if step == 1 { break }
        }
        await caller.stop()
    }

    @Test("Stop ends everything without a word, also inside a call of a handler")
    func stopInside() async throws {
        let server = try RawServer([.init("HTTP/1.1 200 OK", ["Content-Length: 100000"], noise(100_000))])
        let caller = try Caller()
        let told = Guarded<[Caller.Event]>([])
        let (next, continuation) = AsyncStream.makeStream(of: Void.self)
        _ = await caller.start(TransportRequest(url: server.url("/"), allowsHTTP: true)) { event, transport, task in
            told.withLock { $0.append(event) }
            transport.stop()
            transport.cancel(task)
            transport.resume(task)
            continuation.finish()
        }
        for await _ in next {}
        await caller.stop()
        #expect(told.withLock { $0 } == [.head(200)])
    }

    @Test(
        "Heads are read line by line, informational ones left out",
        arguments: [
            (["HTTP/1.1 200 OK\r\n", "A: b \r\n", "\r\n"], 200), (["HTTP/1.0 404\n", "\n"], 404),
            (["HTTP/1.1 100 Continue\r\n", "\r\n", "HTTP/1.1 204 No\r\n", "\r\n"], 204),
            (["HTTP/1.1 503 x\r\n", "HTTP/1.1 200 OK\r\n", "\r\n"], 200), (["A: b\r\n"], nil),
            (["HTTP/1.1 abc\r\n"], nil), (["HTTP/1.1\r\n"], nil), (["HTTP/1.1 9999 x\r\n"], nil), (["\r\n"], nil),
        ])
    func heads(lines: [String], status: Int?) {
        var reader = ResponseHeadReader()
        var last = ResponseHeadReader.Result.more
        for line in lines { last = Array(line.utf8).withUnsafeBytes { reader.line($0) } }
        if case .head(let head) = last {
            #expect(head.status == status)
        } else {
            #expect(last == .malformed && status == nil)
        }
    }
}
