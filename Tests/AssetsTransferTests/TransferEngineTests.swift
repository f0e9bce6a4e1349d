// Attempts against nginx over https.
import AssetsModel
import AssetsOS
import AssetsTransfer
import Testing

@Suite("Transfers from a web server", .timeLimit(.minutes(10)))
struct TransferEngineTests {
    /// Cancels once a few bytes of a slow transfer are there; returns what stands beside them, and how long the file is.
    private func begin(_ server: Nginx, _ bench: Bench) async throws -> (note: ResumePoint, length: Int64) {
        let events = await bench.run(bench.spec(server.url("/slow/file"))) { event in
            if case .progress(let received, _) = event { received > 0 } else { false }
        }
        #expect(events.outcome == nil)
        let length = try #require(try bench.files.status(Bench.partial)).size
        let note = try #require(try bench.note())
        try #require(length > 0 && length < note.total)
        return (note, length)
    }

    @Test("A whole file arrives, with its size, its progress and its note")
    func whole() async throws {
        let bytes = noise(40 << 20)
        try await serve(bytes) { server, bench in
            let events = await bench.run(bench.spec(server.url("/file")))
            let total = Int64(bytes.count)
            guard case .received(let length, let inode, let note?, _)? = events.outcome else {
                Issue.record("\(events)")
                return
            }
            #expect(length == total && note.total == total && note.syncedOffset == total && note.etag != nil)
            let status = try bench.files.status(Bench.partial)
            #expect(status?.kind == .file && status?.inode == inode && status?.size == total)
            let content = try bench.content()
            #expect(content == Bytes(bytes))
            #expect(events.first == .began(resumedAt: 0, expected: total))
            #expect(events.progress.last == total && events.progress == events.progress.sorted())
            // A sync at least every 16 MiB; beside the bytes stands the same, but for what was synced.
            let notes = events.filter { if case .checkpoint = $0 { true } else { false } }
            #expect(notes.count >= 2)
            var beside = note
            beside.syncedOffset = 0
            #expect(try bench.note() == beside)
            await bench.stop()
            let log = try server.finish()
            #expect(log.map(\.status) == [200])
        }
    }

    @Test("With its last byte a transfer tells how many are in memory only", arguments: [10_000, 3 << 20])
    func unwritten(size: Int) async throws {
        try await serve(noise(size)) { server, bench in
            let events = await bench.run(bench.spec(server.url("/file")))
            let told = events.compactMap { if case .gathered(let unwritten) = $0 { unwritten } else { nil } }
            // Little is not written before it is all there.
            #expect(told.count == 1 && (size == 10_000 ? told == [10_000] : told[0] <= 1 << 20), "\(told)")
            #expect(events.receivedLength == Int64(size))
        }
    }

    @Test(
        "A cancelled transfer goes on from the byte it stopped at, whether or not a row tells of it",
        arguments: [true, false])
    func resume(hasRow: Bool) async throws {
        let bytes = noise(3 << 20)
        try await serve(bytes) { server, bench in
            let (note, length) = try await begin(server, bench)
            let events = await bench.run(bench.spec(server.url("/file"), resume: hasRow ? note : nil))
            #expect(events.receivedLength == Int64(bytes.count) && events.resumedAt == [length])
            let content = try bench.content()
            #expect(content == Bytes(bytes))
            await bench.stop()
            let last = try #require(try server.finish().last)
            #expect(last.status == 206 && last.range == "bytes=\(length)-" && last.ifRange == note.etag)
            #expect(length + last.bodyBytes == Int64(bytes.count))
        }
    }

    @Test("A file that changed meanwhile is fetched anew, never spliced", arguments: [3 << 20, 2 << 20])
    func changed(newSize: Int) async throws {
        try await serve(noise(3 << 20)) { server, bench in
            let (note, _) = try await begin(server, bench)
            let other = noise(newSize, seed: 2)
            // The server names versions by second and size.
            try server.publish("file", Array(other.dropLast()))
            let events = await bench.run(bench.spec(server.url("/file"), resume: note))
            #expect(events.receivedLength == Int64(newSize - 1) && events.resumedAt == [0])
            let content = try bench.content()
            #expect(content == Bytes(Array(other.dropLast())))
            #expect(try #require(try bench.note()).etag != note.etag)
        }
    }

    @Test("After a power cut only what was synced is kept")
    func otherEpoch() async throws {
        let bytes = noise(3 << 20)
        try await serve(bytes) { server, bench in
            var (note, length) = try await begin(server, bench)
            // The machine wrote nothing of the end.
            let synced = length / 2
            note.syncedOffset = synced
            note.storageEpoch = "another:1"
            let text = try #require(PartialNote(note).text)
            try bench.files.setAttribute(Bench.partial, name: PartialNote.attribute, value: text)
            let file = try bench.files.openAppendable(Bench.partial)
            try file.truncate(to: synced)
            let zeros = [UInt8](repeating: 0, count: Int(length - synced))
            try zeros.withUnsafeBytes { try file.append($0) }
            let events = await bench.run(bench.spec(server.url("/file"), resume: note))
            #expect(events.resumedAt == [synced])
            let content = try bench.content()
            #expect(content == Bytes(bytes))
            #expect(try bench.note()?.storageEpoch == bench.files.storageEpoch())
        }
    }

    @Test("What is there of an earlier attempt is synced before anything that comes")
    func syncOfEarlier() async throws {
        try await serve(noise(3 << 20)) { server, bench in
            let (note, length) = try await begin(server, bench)
            #expect(note.syncedOffset == 0)
            let events = await bench.run(bench.spec(server.url("/slow/file"), resume: note)) { event in
                if case .checkpoint = event { true } else { false }
            }
            #expect(events.resumedAt == [length] && events.checkpoint?.syncedOffset == length)
        }
    }

    @Test("A file that is all there is not asked for")
    func complete() async throws {
        let bytes = noise(700_000)
        try await serve(bytes) { server, bench in
            let first = await bench.run(bench.spec(server.url("/file")))
            #expect(first.receivedLength == 700_000 && first.checkpoint == nil)
            let again = await bench.run(bench.spec(server.url("/file")))
            #expect(again.receivedLength == 700_000 && again.resumedAt == [])
            let content = try bench.content()
            #expect(content == Bytes(bytes))
            await bench.stop()
            let log = try server.finish()
            #expect(log.map(\.bodyBytes) == [700_000])
        }
    }

    @Test("A server that sends no ranges sends all again", arguments: ["/noranges/file", "/unnamed/file"])
    func noRanges(path: String) async throws {
        let bytes = noise(3 << 20)
        try await serve(bytes) { server, bench in
            let (note, _) = try await begin(server, bench)
            let events = await bench.run(bench.spec(server.url(path), resume: note))
            #expect(events.receivedLength == Int64(bytes.count) && events.resumedAt.last == 0)
            let content = try bench.content()
            #expect(content == Bytes(bytes))
        }
    }

    @Test("An empty file arrives")
    func empty() async throws {
        try await serve([]) { server, bench in
            let events = await bench.run(bench.spec(server.url("/file")))
            #expect(events.receivedLength == 0)
            let content = try bench.content()
            #expect(content.all.isEmpty)
        }
    }

    @Test(
        "What will not change is refused",
        arguments: [
            ("/none", -1100, Reason.http), ("/loop", -1007, .http), ("/away", 202, .domain), ("/plain", -1022, .http),
        ])
    func refused(path: String, code: Int, reason: Reason) async throws {
        try await serve(noise(10)) { server, bench in
            var spec = bench.spec(server.url(path))
            spec.admits = { $0 == "127.0.0.1" }
            let refusal = try #require(await bench.run(spec).refusal)
            #expect(refusal.failure.code == code && refusal.reason == reason)
            await bench.stop()
            let log = try server.finish()
            #expect(log.count == (path == "/loop" ? 11 : 1))
        }
    }

    @Test("Redirects lead to the file")
    func redirect() async throws {
        let bytes = noise(1000)
        try await serve(bytes) { server, bench in
            let events = await bench.run(bench.spec(server.url("/moved")))
            #expect(events.receivedLength == 1000)
            let content = try bench.content()
            #expect(content == Bytes(bytes))
            await bench.stop()
            let log = try server.finish()
            try #require(log.map(\.status) == [301, 307, 200])
            // The first connection is used again; the other host gets its own.
            #expect(log[0].connection == log[1].connection && log[1].connection != log[2].connection)
        }
    }

    @Test("A busy server says when to come back")
    func busy() async throws {
        try await serve(noise(10)) { server, bench in
            let interruption = try #require(await bench.run(bench.spec(server.url("/busy"))).interruption)
            #expect(interruption.kind == .server && interruption.retryAfter == .seconds(7))
            #expect(!interruption.hasAdvanced)
        }
    }

    @Test("A size that must match, and an allowance, are checked before the bytes come")
    func sizes() async throws {
        try await serve(noise(1000)) { server, bench in
            var wrong = bench.spec(server.url("/file"))
            wrong.expectedSize = 999
            #expect(await bench.run(wrong).receivedLength == 1000)
            wrong.sizeMustMatch = true
            #expect(await bench.run(wrong).refusal?.reason == .size)
            var small = bench.spec(server.url("/file"))
            small.sizeLimit = 999
            #expect(await bench.run(small).refusal?.failure.code == 203)
            small.sizeLimit = 1000
            #expect(await bench.run(small).receivedLength == 1000)
        }
    }

    @Test("A certificate that nobody vouches for is not believed")
    func untrusted() async throws {
        try await serve(noise(10)) { server, bench in
            let stranger = try Bench(in: bench.directory, authority: server.authority + ".missing")
            let interruption = await stranger.run(stranger.spec(server.url("/file"))).interruption
            await stranger.stop()
            #expect(interruption?.kind == .unreachable)
            #expect(interruption?.failure.code == URLErrorCode.serverCertificateUntrusted)
            await bench.stop()
            let log = try server.finish()
            #expect(log.isEmpty)
        }
    }

    @Test("Many files share few connections, one for each that runs at a time")
    func many() async throws {
        let bytes = noise(50_000)
        try await serve(bytes) { server, bench in
            let url = server.url("/file")
            await withTaskGroup(of: [Int64?].self) { group in
                for worker in 0..<4 {
                    group.addTask {
                        var lengths: [Int64?] = []
                        for number in 0..<25 {
                            let events = await bench.run(bench.spec(url, id: "f\(worker * 25 + number)"))
                            lengths.append(events.receivedLength)
                        }
                        return lengths
                    }
                }
                for await lengths in group { #expect(lengths == Array(repeating: 50_000, count: 25)) }
            }
            for number in 0..<100 { #expect(try bench.content("f\(number)") == Bytes(bytes)) }
            await bench.stop()
            let log = try server.finish()
            #expect(log.count == 100 && Set(log.map(\.connection)).count <= 4)
        }
    }

    @Test("Each transfer that is started has a connection at once, also where demoted ones run on beside all others")
    func connections() async throws {
        let count = 2 * PolicyNumbers.foregroundTransfersMax + 1
        try await serve(noise(3 << 20)) { server, bench in
            let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
            for number in 0..<count {
                bench.engine.start(bench.spec(server.url("/slow/file"), id: "f\(number)")) { event in
                    if case .began = event { continuation.yield(number) }
                    // From now on there would be a connection also for one that had waited.
                    if case .gathered = event { continuation.finish() }
                }
            }
            var begun: Set<Int> = []
            for await number in stream where begun.insert(number).inserted {
                if begun.count == count { break }
            }
            #expect(begun.count == count)
            await bench.stop()
        }
    }

    @Test("After stop nothing is told any more")
    func stop() async throws {
        try await serve(noise(3 << 20)) { server, bench in
            let (stream, continuation) = AsyncStream.makeStream(of: TransferEvent.self)
            bench.engine.start(bench.spec(server.url("/slow/file"))) { continuation.yield($0) }
            for await event in stream { if case .progress = event { break } }
            await bench.engine.stop()
            await bench.engine.stop()
            await bench.engine.cancel("x")
            continuation.finish()
            let content = try bench.content()
            #expect(!content.all.isEmpty)
        }
    }
}
