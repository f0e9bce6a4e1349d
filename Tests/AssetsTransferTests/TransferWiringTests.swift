// What an engine asks of whom: which loop writes a file, what a request allows, and that a file is hashed as it comes.
import AssetsModel
import AssetsOS
import Dispatch
import Testing

@testable import AssetsTransfer

@Suite("What a transfer asks of whom", .timeLimit(.minutes(10)))
struct TransferWiringTests {
    /// Returns when the loop has done what it was asked for before.
    private func pass(_ loop: EventLoop) async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.perform { done.resume() }
        }
    }

    /// A file of unknown length is synced by another call than one that is known to have come in one piece.
    @Test(
        "Background transfers are written and synced on a disk loop of their own, all others on the common ones",
        arguments: TransferClass.allCases, [true, false])
    func disks(transferClass: TransferClass, tellsLength: Bool) async throws {
        let bench = try WiringBench(tellsLength: tellsLength)
        let isBackground = transferClass == .background
        let right = isBackground ? bench.backgroundDisk : bench.disk
        let wrong = isBackground ? bench.disk : bench.backgroundDisk
        let gate = DispatchSemaphore(value: 0)
        wrong.perform { gate.wait() }
        var events: [TransferEvent] = []
        var done: [String] = []
        for await event in bench.start(bench.spec(transferClass)) {
            events.append(event)
            guard case .gathered = event else { continue }
            // Once for the write, once for the sync that follows from it.
            for _ in 0..<2 {
                await pass(bench.loop)
                await pass(right)
            }
            done = bench.calls.all
            gate.signal()
        }
        // Also where nothing was gathered, so that the loop can stop.
        gate.signal()
        await bench.stop()
        #expect(done == ["append", "sync"])
        #expect(events.receivedLength == Int64(QuickTransport.content.count))
    }

    private static let sizes: [(TransferClass, Int64, Bool)] = [
        (.foreground, 1, true), (.foreground, WriteBehind.bytesMax, true),
        (.essential, 1, true), (.essential, WriteBehind.bytesMax, true),
        (.foreground, 0, false), (.foreground, WriteBehind.bytesMax + 1, false),
        (.essential, 0, false), (.essential, WriteBehind.bytesMax + 1, false),
        (.background, 0, false), (.background, 1, false), (.background, WriteBehind.bytesMax, false),
        (.background, WriteBehind.bytesMax + 1, false),
    ]

    @Test("HTTP/2 is allowed only for what is announced as small and is not background", arguments: sizes)
    func http2(transferClass: TransferClass, expectedSize: Int64, isAllowed: Bool) async throws {
        let bench = try WiringBench()
        var events: [TransferEvent] = []
        for await event in bench.start(bench.spec(transferClass, expectedSize: expectedSize)) { events.append(event) }
        await bench.stop()
        let requests = bench.requests.withLock { $0 }
        #expect(requests.map(\.allowsHTTP2) == [isAllowed])
        #expect(events.receivedLength == Int64(QuickTransport.content.count))
    }

    @Test("A whole file is hashed while it comes, and never read again", arguments: [10_000, 3_000_000])
    func hashedOnTheWay(size: Int) async throws {
        let bytes = noise(size)
        let hasher = ContentHasher(.sha256)
        bytes.withUnsafeBytes { hasher.add($0) }
        let digest = hasher.digest()
        let reads = Reads()
        let answer = RawServer.Answer("HTTP/1.1 200 OK", ["Content-Length: \(size)", "ETag: \"v1\""], bytes)
        try await serve([answer], wrap: { FaultyTree($0, reads: reads) }) { server, bench in
            var spec = bench.spec(server.url("/f"))
            spec.digest = digest
            let outcome = try #require(await bench.run(spec).outcome)
            guard case .received(let length, _, _, let found) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(length == Int64(size) && found == digest)
            #expect(reads.bytes == 0)
            let content = try bench.content()
            #expect(content == Bytes(bytes))
        }
    }
}

/// An engine with two disk loops, and a network that has its file at once.
private final class WiringBench: Sendable {
    let loop: EventLoop
    let disk: EventLoop
    let backgroundDisk: EventLoop
    let calls = DiskCalls()
    let requests = Guarded<[TransportRequest]>([])
    private let directory: TestDirectory
    private let engine: TransferEngine

    init(tellsLength: Bool = true) throws {
        let directory = try TestDirectory()
        try DeviceTree(root: directory.path).makeDirectory("device/Transfers")
        self.directory = directory
        loop = try EventLoop.start(name: "transfer")
        disk = try EventLoop.start(name: "disk")
        backgroundDisk = try EventLoop.start(name: "background")
        let files = FaultyTree(try DeviceTree(root: directory.path + "/device"), calls: calls)
        let requests = requests
        engine = TransferEngine(
            on: loop, disks: [disk], backgroundDisk: backgroundDisk, hashing: loop, files: files,
            transport: { QuickTransport(on: $0, tellsLength: tellsLength, requests: requests) })
    }

    func stop() async {
        await engine.stop()
        loop.stop()
        disk.stop()
        backgroundDisk.stop()
    }

    func spec(_ transferClass: TransferClass, expectedSize: Int64 = 0) -> TransferSpec {
        TransferSpec(
            id: "x", url: "https://example.com/f", partialPath: Bench.partial, expectedSize: expectedSize,
            transferClass: transferClass)
    }

    func start(_ spec: TransferSpec) -> AsyncStream<TransferEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: TransferEvent.self)
        engine.start(spec) { event in
            continuation.yield(event)
            if case .ended = event { continuation.finish() }
        }
        return stream
    }
}

/// Answers every request with the same small file, and notes what was asked.
///
/// Unchecked: made for one loop, on which every call and every answer is.
private final class QuickTransport: Transport, @unchecked Sendable {
    static let content = noise(10_000)

    private let loop: any LoopExecutor
    private let head: TransportHead
    private let requests: Guarded<[TransportRequest]>
    private var running: [UInt64: any TransportHandler] = [:]
    private var lastNumber: UInt64 = 0

    init(on loop: any LoopExecutor, tellsLength: Bool, requests: Guarded<[TransportRequest]>) {
        self.loop = loop
        self.requests = requests
        let length = HeaderField(name: "Content-Length", value: "\(Self.content.count)")
        head = TransportHead(status: 200, headers: tellsLength ? [length] : [])
    }

    func start(_ request: TransportRequest, handler: any TransportHandler) -> TransportTask {
        requests.withLock { $0.append(request) }
        lastNumber += 1
        let number = lastNumber
        running[number] = handler
        loop.perform { self.answer(number) }
        return TransportTask(number: number)
    }

    private func answer(_ number: UInt64) {
        if let handler = running[number] { handler.received(head) }
        if let handler = running[number] { Self.content.withUnsafeBytes { handler.received($0) } }
        if let handler = running.removeValue(forKey: number) { handler.ended(nil) }
    }

    func cancel(_ task: TransportTask) { running[task.number] = nil }
    /// A file that fits in memory is never paused.
    func pause(_ task: TransportTask) {}
    func resume(_ task: TransportTask) {}
    func setDiscretionary(_ task: TransportTask, _ isDiscretionary: Bool) {}
    func dropConnections(keeping addresses: [String]) {}
    func stop() { running = [:] }
}
