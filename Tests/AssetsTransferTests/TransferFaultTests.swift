// Servers and disks that do wrong.
import AssetsModel
import AssetsOS
import AssetsTransfer
import Dispatch
import Glibc
import Testing

@Suite("Transfers that go wrong", .timeLimit(.minutes(10)))
struct TransferFaultTests {
    private typealias Answer = RawServer.Answer

    private func serve(
        _ answers: [RawServer.Answer], wrap: (DeviceTree) -> any FileTree = { $0 },
        _ body: (RawServer, Bench) async throws -> Void
    ) async throws {
        let server = try RawServer(answers)
        let bench = try Bench(in: TestDirectory(), wrap: wrap)
        do {
            try await body(server, bench)
        } catch {
            await bench.stop()
            server.stop()
            throw error
        }
        await bench.stop()
        server.stop()
    }

    private static let content = noise(300_000)
    private static let fields = ["Content-Length: 300000", "ETag: \"v1\""]

    @Test("A response that ends early is an interruption, and the next attempt brings the rest", arguments: [0, 1])
    func earlyClose(reset: Int) async throws {
        let part = Self.content[..<100_000]
        let first = Answer("HTTP/1.1 200 OK", Self.fields, part, reset == 1 ? .reset : .close)
        try await serve([first]) { server, bench in
            let events = await bench.run(bench.spec(server.url("/f")))
            let interruption = try #require(events.interruption)
            #expect(interruption.kind == .broken)
            #expect(interruption.failure.code == URLErrorCode.networkConnectionLost)
            // A reset may take away what was on its way.
            let length = Int(try #require(try bench.files.status(Bench.partial)).size)
            #expect(reset == 1 ? length <= 100_000 : length == 100_000)
            #expect(interruption.hasAdvanced == (length > 0))
            guard length > 0 else { return }
            #expect(events.checkpoint?.syncedOffset == Int64(length))

            let rest = Answer(
                "HTTP/1.1 206 Partial Content",
                [
                    "Content-Length: \(300_000 - length)", "Content-Range: bytes \(length)-299999/300000",
                    "ETag: \"v1\"",
                ], Self.content[length...])
            let other = try RawServer([rest])
            let resumed = await bench.run(bench.spec(other.url("/f"), resume: events.checkpoint))
            #expect(resumed.receivedLength == 300_000)
            let content = try bench.content()
            #expect(content == Bytes(Self.content))
            let request = try #require(other.stop().first)
            #expect(request.contains("\r\nRange: bytes=\(length)-\r\n") && request.contains("\r\nIf-Range: \"v1\"\r\n"))
        }
    }

    @Test(
        "A part of the wrong place or version is thrown away and all is asked for again",
        arguments: [
            "Content-Range: bytes 5-299999/300000", "Content-Range: bytes 100000-299999/300001", "X: y",
        ])
    func wrongPart(field: String) async throws {
        let answers = [
            Answer("HTTP/1.1 200 OK", Self.fields, Self.content[..<100_000]),
            Answer("HTTP/1.1 206 Partial Content", ["Content-Length: 200000", "ETag: \"v1\"", field], noise(200_000)),
            Answer("HTTP/1.1 200 OK", Self.fields, Self.content),
        ]
        try await serve(answers) { server, bench in
            let first = await bench.run(bench.spec(server.url("/f")))
            let events = await bench.run(bench.spec(server.url("/f"), resume: first.checkpoint))
            #expect(events.receivedLength == 300_000 && events.resumedAt == [0])
            let content = try bench.content()
            #expect(content == Bytes(Self.content))
            #expect(server.stop().map { $0.contains("\r\nRange:") } == [false, true, false])
        }
    }

    @Test("A row never goes with bytes of another version, even when the server has that version again")
    func flippingServer() async throws {
        let other = ["Content-Length: 300000", "ETag: \"v2\""]
        let answers = [
            Answer("HTTP/1.1 200 OK", Self.fields, Self.content[..<100_000]),
            Answer("HTTP/1.1 200 OK", other, noise(200_000, seed: 2)),
            Answer("HTTP/1.1 200 OK", Self.fields, Self.content),
        ]
        try await serve(answers) { server, bench in
            let first = await bench.run(bench.spec(server.url("/f")))
            // The service is killed before it could write down anything of the second version.
            let lost = await bench.run(bench.spec(server.url("/f"), resume: first.checkpoint))
            #expect(lost.resumedAt == [0] && lost.checkpoint?.etag == "\"v2\"")
            let events = await bench.run(bench.spec(server.url("/f"), resume: first.checkpoint))
            #expect(events.receivedLength == 300_000 && events.resumedAt == [0])
            let content = try bench.content()
            #expect(content == Bytes(Self.content))
            let requests = server.stop()
            #expect(requests.map { $0.contains("\r\nIf-Range: \"v1\"") } == [false, true, false])
            #expect(requests.map { $0.contains("\r\nIf-Range: \"v2\"") } == [false, false, true])
        }
    }

    @Test("Informational heads and trailers are not the response's head")
    func otherHeads() async throws {
        let text = """
            HTTP/1.1 103 Early Hints\r\nETag: "hint"\r\nContent-Length: 1\r\n\r\nHTTP/1.1 200 OK\r\nETag: "real"\r
            Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nETag: "trailer"\r\nHTTP/1.1 404: x\r\n\r\n
            """
        try await serve([Answer(text)]) { server, bench in
            let events = await bench.run(bench.spec(server.url("/f")))
            #expect(events.receivedLength == 5)
            guard case .received(_, _, let point, _)? = events.outcome else { return }
            #expect(point?.etag == "\"real\"")
            let content = try bench.content()
            #expect(content == Bytes(Array("hello".utf8)))
        }
    }

    struct Improper: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var text: String
    }

    private static let improperAnswers = [
        Improper(
            testDescription: "a chunk cut short", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
        Improper(
            testDescription: "a chunk without size", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        ),
        Improper(testDescription: "no HTTP", text: "hello there\r\n\r\n"),
        Improper(testDescription: "half a head", text: "HTTP/1.1 200 OK\r\nContent-Le"),
        Improper(testDescription: "nothing", text: ""),
        Improper(
            testDescription: "too many fields",
            text: "HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 300) + "\r\n"),
        Improper(
            testDescription: "too large a head",
            text: "HTTP/1.1 200 OK\r\n"
                + String(repeating: "X: " + String(repeating: "y", count: 1000) + "\r\n", count: 200) + "\r\n"),
        Improper(
            testDescription: "a part that nobody asked for",
            text: "HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\n\r\nx"),
    ]

    @Test("What is no proper answer is an interruption", arguments: improperAnswers)
    func improper(_ answer: Improper) async throws {
        // libcurl tries a second time where a connection ended without a byte.
        try await serve([Answer(answer.text), Answer(answer.text)]) { server, bench in
            let interruption = try #require(await bench.run(bench.spec(server.url("/f"))).interruption)
            #expect(interruption.kind == .broken)
        }
    }

    @Test("An allowance ends a transfer of unknown size")
    func unknownSize() async throws {
        let answer = Answer("HTTP/1.1 200 OK", ["Connection: close"], Self.content)
        try await serve([answer]) { server, bench in
            var spec = bench.spec(server.url("/f"))
            spec.sizeLimit = 200_000
            #expect(await bench.run(spec).refusal?.reason == .allowance)
            let content = try bench.content()
            #expect(content.all.count <= 200_000)
        }
    }

    @Test("A server that is not there cannot be reached")
    func nobody() async throws {
        try await serve([]) { server, bench in
            server.stop()
            let interruption = try #require(await bench.run(bench.spec(server.url("/f"))).interruption)
            #expect(interruption.kind == .unreachable && !interruption.hasAdvanced)
            #expect(interruption.failure.code == URLErrorCode.cannotConnectToHost)
        }
    }

    @Test("Method, fields and body go out as asked, and nothing of libcurl's own")
    func request() async throws {
        let answer = Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        try await serve([answer]) { server, bench in
            var spec = bench.spec(server.url("/f?a=b"))
            spec.method = "PUT"
            spec.body = Array(repeating: UInt8(ascii: "b"), count: 5000)
            spec.headers = [HeaderField(name: "X-Key", value: "k"), HeaderField(name: "X-Empty", value: "")]
            #expect(await bench.run(spec).receivedLength == 2)
            let request = try #require(server.stop().first)
            let lines = request.split(separator: "\r\n", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
            #expect(lines.first == "PUT /f?a=b HTTP/1.1")
            #expect(
                Set(lines.dropFirst()) == [
                    "Host: 127.0.0.1:\(server.port)", "User-Agent: BackgroundAssets/1", "Accept: */*", "X-Key: k",
                    "X-Empty:", "Accept-Encoding: identity", "Content-Length: 5000",
                ])
            #expect(request.hasSuffix(String(repeating: "b", count: 5000)))
        }
    }

    @Test("A full disk is told as such, and what was written stays", arguments: [ENOSPC, EDQUOT, EIO])
    func fullDisk(number: Int32) async throws {
        let answer = Answer("HTTP/1.1 200 OK", Self.fields, Self.content)
        try await serve([answer], wrap: { FaultyTree($0, failAppendAt: 262_144, with: number) }) { server, bench in
            let interruption = try #require(await bench.run(bench.spec(server.url("/f"))).interruption)
            #expect(interruption.kind == .storage && interruption.reason == (number == EIO ? .volume : .space))
            #expect(interruption.failure.code == URLErrorCode.cannotWriteToFile)
            let content = try bench.content()
            #expect(content == Bytes(Array(Self.content[..<262_144])))
        }
    }

    @Test("A file that cannot be synced is not received, and its bytes are not trusted")
    func failedSync() async throws {
        let answer = Answer("HTTP/1.1 200 OK", Self.fields, Self.content)
        try await serve([answer], wrap: { FaultyTree($0, failSyncWith: EIO) }) { server, bench in
            let events = await bench.run(bench.spec(server.url("/f")))
            #expect(events.interruption?.kind == .storage && events.interruption?.reason == .volume)
            let content = try bench.content()
            #expect(content.all.isEmpty)
            #expect(events.checkpoint?.syncedOffset ?? 0 == 0)
        }
    }

    @Test("A sync that fails when the transfer is gone already leaves nothing to go on with")
    func failedSyncLater() async throws {
        let answer = Answer("HTTP/1.1 200 OK", Self.fields, Self.content[..<100_000])
        let gate = DispatchSemaphore(value: 0)
        let (syncs, begun) = AsyncStream.makeStream(of: Void.self)
        let wait: @Sendable () -> Void = {
            begun.yield()
            gate.wait()
        }
        try await serve([answer], wrap: { FaultyTree($0, failSyncWith: EIO, whileSyncing: wait) }) { server, bench in
            bench.engine.start(bench.spec(server.url("/f"))) { _ in }
            for await _ in syncs { break }
            let before = try bench.note()
            #expect(before != nil)
            await bench.engine.stop()
            gate.signal()
            await withCheckedContinuation { done in bench.disk.perform { done.resume() } }
            let after = try bench.note()
            #expect(after == nil)
        }
    }

    @Test("Where attributes cannot be kept nothing is resumed and nothing is spliced")
    func noAttributes() async throws {
        let answers = [
            Answer("HTTP/1.1 200 OK", Self.fields, Self.content[..<100_000]),
            Answer("HTTP/1.1 200 OK", Self.fields, Self.content),
        ]
        try await serve(answers, wrap: { FaultyTree($0, failAttributesWith: ENOTSUP) }) { server, bench in
            let first = await bench.run(bench.spec(server.url("/f")))
            let events = await bench.run(bench.spec(server.url("/f"), resume: first.checkpoint))
            #expect(events.receivedLength == 300_000)
            #expect(server.stop().contains { $0.contains("Range:") } == false)
            let content = try bench.content()
            #expect(content == Bytes(Self.content))
        }
    }

    @Test("A partial file that cannot be opened is an interruption")
    func noFile() async throws {
        try await serve([Answer("HTTP/1.1 200 OK", Self.fields, Self.content)]) { server, bench in
            var spec = bench.spec(server.url("/f"))
            spec.partialPath = "missing/x.partial"
            #expect(await bench.run(spec).interruption?.kind == .storage)
        }
    }
}

extension TransferFaultTests {
    @Test("Small files that wait for one disk are all written before the first of them is synced")
    func syncsTogether() async throws {
        let ids = ["a", "b", "c"]
        let small = noise(10_000)
        let answers = ids.map { _ in Answer("HTTP/1.1 200 OK", ["Content-Length: 10000"], small[...]) }
        let calls = DiskCalls()
        try await serve(answers, wrap: { FaultyTree($0, calls: calls) }) { server, bench in
            let gate = DispatchSemaphore(value: 0)
            bench.disk.perform { gate.wait() }
            let (stream, continuation) = AsyncStream.makeStream(of: TransferEvent.self)
            for id in ids { bench.engine.start(bench.spec(server.url("/f"), id: id)) { continuation.yield($0) } }
            var (gathered, received) = (0, 0)
            for await event in stream {
                switch event {
                case .gathered(let unwritten):
                    #expect(unwritten == 10_000)
                    gathered += 1
                    if gathered == ids.count { gate.signal() }
                case .ended(.received): received += 1
                case .ended(let outcome): Issue.record("\(outcome)")
                default: continue
                }
                if received == ids.count { break }
            }
            #expect(calls.all == ["append", "append", "append", "sync", "sync", "sync"])
            for id in ids {
                let content = try bench.content(id)
                #expect(content == Bytes(small))
            }
        }
    }
}

/// What was asked of the files of a tree, in this order.
final class DiskCalls: Sendable {
    private let names = Guarded<[String]>([])
    var all: [String] { names.withLock { $0 } }
    func add(_ name: String) { names.withLock { $0.append(name) } }
}

/// How much of a tree's files was read again.
final class Reads: Sendable {
    private let count = Guarded(0)
    var bytes: Int { count.withLock { $0 } }
    func add(_ more: Int) { count.withLock { $0 += more } }
}

/// A real tree whose disk fails where a test wants it.
struct FaultyTree: FileTree {
    private let tree: DeviceTree
    private let appendLimit: Int64
    private let appendError: Int32
    private let syncError: Int32?
    private let attributeError: Int32?
    private let readError: Int32?
    private let reads: Reads?
    private let calls: DiskCalls?
    /// Called in the middle of a sync.
    private let whileSyncing: @Sendable () -> Void

    init(
        _ tree: DeviceTree, failAppendAt limit: Int64 = .max, with appendError: Int32 = 0, failSyncWith: Int32? = nil,
        failAttributesWith: Int32? = nil, failReadWith: Int32? = nil, reads: Reads? = nil, calls: DiskCalls? = nil,
        whileSyncing: @escaping @Sendable () -> Void = {}
    ) {
        self.tree = tree
        appendLimit = limit
        self.appendError = appendError
        syncError = failSyncWith
        attributeError = failAttributesWith
        readError = failReadWith
        self.reads = reads
        self.calls = calls
        self.whileSyncing = whileSyncing
    }

    private final class File: AppendableFile {
        let file: any AppendableFile
        let tree: FaultyTree
        init(_ file: any AppendableFile, _ tree: FaultyTree) {
            self.file = file
            self.tree = tree
        }
        var length: Int64 { file.length }
        var inode: UInt64 { file.inode }
        func append(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError) {
            tree.calls?.add("append")
            let room = Int(clamping: tree.appendLimit - file.length)
            try file.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(room)))
            if room < bytes.count { throw SystemCallError(call: "pwrite", number: tree.appendError) }
        }
        func truncate(to length: Int64) throws(SystemCallError) { try file.truncate(to: length) }
        func reserve(total: Int64) throws(SystemCallError) -> Bool { try file.reserve(total: total) }
        var allocated: Int64 { get throws(SystemCallError) { try file.allocated } }
        func beginSync() { file.beginSync() }
        func sync() throws(SystemCallError) {
            tree.calls?.add("sync")
            if tree.syncError == nil { try file.sync() }
            tree.whileSyncing()
            if let number = tree.syncError { throw SystemCallError(call: "fdatasync", number: number) }
        }
        func setAttribute(name: String, value: String) throws(SystemCallError) {
            if let number = tree.attributeError { throw SystemCallError(call: "fsetxattr", number: number) }
            try file.setAttribute(name: name, value: value)
        }
        func read(
            from offset: Int64, count: Int64, _ body: (UnsafeRawBufferPointer) -> Void
        ) throws(SystemCallError) {
            if let number = tree.readError { throw SystemCallError(call: "pread", number: number) }
            try file.read(from: offset, count: count) { bytes in
                tree.reads?.add(bytes.count)
                body(bytes)
            }
        }
    }

    var root: String { tree.root }
    func openAppendable(_ path: String) throws(SystemCallError) -> any AppendableFile {
        File(try tree.openAppendable(path), self)
    }
    func setAttribute(_ path: String, name: String, value: String) throws(SystemCallError) {
        if let attributeError { throw SystemCallError(call: "fsetxattr", number: attributeError) }
        try tree.setAttribute(path, name: name, value: value)
    }
    func makeReadOnly(_ path: String) throws(SystemCallError) { try tree.makeReadOnly(path) }
    func attribute(_ path: String, name: String) throws(SystemCallError) -> String? {
        if let attributeError { throw SystemCallError(call: "fgetxattr", number: attributeError) }
        return try tree.attribute(path, name: name)
    }
    func makeDirectory(_ path: String) throws(SystemCallError) { try tree.makeDirectory(path) }
    func status(_ path: String) throws(SystemCallError) -> FileStatus? { try tree.status(path) }
    func usage(of path: String, filesMax: Int64) throws(SystemCallError) -> FolderUsage {
        try tree.usage(of: path, filesMax: filesMax)
    }
    func list(_ path: String) throws(SystemCallError) -> [String] { try tree.list(path) }
    func read(_ path: String, limit: Int) throws(SystemCallError) -> [UInt8] { try tree.read(path, limit: limit) }
    func replace(_ path: String, with bytes: [UInt8], mode: UInt32) throws(SystemCallError) {
        try tree.replace(path, with: bytes, mode: mode)
    }
    func rename(_ from: String, to: String, exclusively: Bool) throws(SystemCallError) {
        try tree.rename(from, to: to, exclusively: exclusively)
    }
    func moveFiles(_ names: [Renaming], from: String, to: String) throws(SystemCallError) -> [SystemCallError?] {
        try tree.moveFiles(names, from: from, to: to)
    }
    func inodes(of names: [String], in folder: String) throws(SystemCallError) -> [UInt64?] {
        try tree.inodes(of: names, in: folder)
    }
    func removeEmptyDirectory(_ path: String) throws(SystemCallError) -> Bool { try tree.removeEmptyDirectory(path) }
    func syncDirectory(_ path: String) throws(SystemCallError) { try tree.syncDirectory(path) }
    func remove(_ path: String) throws(SystemCallError) { try tree.remove(path) }
    func replaceLink(_ path: String, target: String) throws(SystemCallError) {
        try tree.replaceLink(path, target: target)
    }
    func readLink(_ path: String) throws(SystemCallError) -> String { try tree.readLink(path) }
    func space() throws(SystemCallError) -> (free: Int64, total: Int64) { try tree.space() }
    func storageEpoch() throws(SystemCallError) -> String { try tree.storageEpoch() }
}
