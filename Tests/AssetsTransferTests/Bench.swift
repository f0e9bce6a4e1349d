// An engine with all that it needs, for one test.
import AssetsModel
import AssetsOS
import AssetsTransfer
import Testing

/// Loops, a device directory and an engine on them.
final class Bench: Sendable {
    let directory: TestDirectory
    let files: any FileTree
    let loop: EventLoop
    let disk: EventLoop
    let hashing: EventLoop
    let engine: TransferEngine
    private let isStopped = Guarded(false)

    init(
        in directory: TestDirectory, authority: String? = nil, wrap: (DeviceTree) -> any FileTree = { $0 },
        transport: TransportFactory? = nil
    ) throws {
        self.directory = directory
        try DeviceTree(root: directory.path).makeDirectory("device/Transfers")
        files = try wrap(DeviceTree(root: directory.path + "/device"))
        loop = try EventLoop.start(name: "transfer")
        disk = try EventLoop.start(name: "disk")
        hashing = try EventLoop.start(name: "hash")
        let options = CurlTransport.Options(extraAuthorities: authority)
        engine = TransferEngine(
            on: loop, disks: [disk], backgroundDisk: disk, hashing: hashing, files: files,
            transport: transport ?? CurlTransport.factory(options))
    }

    /// A second call has no effect: nothing runs on a loop that has stopped.
    func stop() async {
        let isFirst = isStopped.withLock { isStopped in
            defer { isStopped = true }
            return !isStopped
        }
        guard isFirst else { return }
        await engine.stop()
        loop.stop()
        disk.stop()
        hashing.stop()
    }

    static let partial = "Transfers/x.partial"

    func spec(_ url: String, resume: ResumePoint? = nil, id: String = "x") -> TransferSpec {
        TransferSpec(
            id: id, url: url, partialPath: "Transfers/\(id).partial", resume: resume, allowsLoopbackHTTP: true,
            transferClass: .foreground)
    }

    /// Runs an attempt to its end, or cancels it at the first event for which `isEnough`.
    func run(_ spec: TransferSpec, until isEnough: (TransferEvent) -> Bool = { _ in false }) async -> [TransferEvent] {
        let (stream, continuation) = AsyncStream.makeStream(of: TransferEvent.self)
        engine.start(spec) { event in
            continuation.yield(event)
            if case .ended = event { continuation.finish() }
        }
        var events: [TransferEvent] = []
        for await event in stream {
            events.append(event)
            if isEnough(event) {
                await engine.cancel(spec.id)
                continuation.finish()
            }
        }
        return events
    }

    /// What stands beside the partial file.
    func note(_ id: String = "x") throws -> ResumePoint? {
        try files.attribute("Transfers/\(id).partial", name: PartialNote.attribute).flatMap { PartialNote($0)?.point }
    }

    func content(_ id: String = "x") throws -> Bytes {
        Bytes(try files.read("Transfers/\(id).partial", limit: 1 << 30))
    }
}

/// A limit that a test is not about: also a busy machine is done before.
let slowMachine = Duration.seconds(600)

/// Many bytes that a failed expectation does not print.
struct Bytes: Equatable, CustomStringConvertible {
    let all: [UInt8]
    init(_ all: some Sequence<UInt8>) { self.all = Array(all) }
    var description: String { "\(all.count) bytes with hash \(all.hashValue)" }
}

/// Bytes that look random and are the same for the same seed.
func noise(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        withUnsafeBytes(of: state) { bytes.append(contentsOf: $0) }
    }
    return Array(bytes[..<count])
}

extension [TransferEvent] {
    var outcome: TransferOutcome? {
        if case .ended(let outcome)? = last { return outcome }
        return nil
    }
    var checkpoint: ResumePoint? {
        reversed().lazy.compactMap { event -> ResumePoint? in
            if case .checkpoint(let point) = event { return point }
            return nil
        }.first
    }
    var progress: [Int64] {
        compactMap { event in
            if case .progress(let received, _) = event { return received }
            return nil
        }
    }
    var interruption: Interruption? {
        if case .interrupted(let interruption)? = outcome { return interruption }
        return nil
    }
    var refusal: (failure: DownloadFailure, reason: Reason)? {
        if case .refused(let failure, let reason)? = outcome { return (failure, reason) }
        return nil
    }
    var resumedAt: [Int64] {
        compactMap { event in
            if case .began(let offset, _) = event { return offset }
            return nil
        }
    }
    /// The length of the file that was received whole.
    var receivedLength: Int64? {
        if case .received(let length, _, _, _)? = outcome { return length }
        return nil
    }
}

/// nginx with `file` of these bytes, and an engine that trusts it.
func serve(_ bytes: [UInt8], _ body: (Nginx, Bench) async throws -> Void) async throws {
    let directory = try TestDirectory()
    let server = try Nginx(in: directory)
    try server.publish("file", bytes)
    try await use(Bench(in: directory, authority: server.authority)) { try await body(server, $0) }
}

/// A server that sends these answers in turn, whatever it is asked, and an engine.
func serve(
    _ answers: [RawServer.Answer], wrap: (DeviceTree) -> any FileTree = { $0 },
    _ body: (RawServer, Bench) async throws -> Void
) async throws {
    let server = try RawServer(answers)
    defer { server.stop() }
    try await use(Bench(in: TestDirectory(), wrap: wrap)) { try await body(server, $0) }
}

private func use(_ bench: Bench, _ body: (Bench) async throws -> Void) async throws {
    do {
        try await body(bench)
    } catch {
        await bench.stop()
        throw error
    }
    await bench.stop()
}
