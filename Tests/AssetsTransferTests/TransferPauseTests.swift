// Transfers that stop, pause and go on, against nginx over https.
import AssetsModel
import AssetsOS
import AssetsTransfer
import Testing

@Suite("Transfers that pause", .timeLimit(.minutes(10)))
struct TransferPauseTests {
    /// A transfer whose events are taken one by one.
    private func start(_ spec: TransferSpec, on bench: Bench) async -> AsyncStream<TransferEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: TransferEvent.self)
        bench.engine.start(spec) { event in
            continuation.yield(event)
            if case .ended = event { continuation.finish() }
        }
        return stream
    }

    private func isProgress(_ event: TransferEvent) -> Bool {
        if case .progress(let received, _) = event { received > 0 } else { false }
    }

    @Test("A transfer that is asked to stop has all it took on the disk, and goes on there")
    func stop() async throws {
        let bytes = noise(3 << 20)
        try await serve(bytes) { server, bench in
            var events: [TransferEvent] = []
            for await event in await start(bench.spec(server.url("/slow/file")), on: bench) {
                events.append(event)
                if isProgress(event) { bench.engine.stop("x") }
            }
            #expect(events.outcome == .stopped && events.contains(.canStop(true)))
            let length = try #require(try bench.files.status(Bench.partial)).size
            let note = try #require(events.checkpoint)
            #expect(length == events.progress.last && note.syncedOffset == length && length < note.total)
            let rest = await bench.run(bench.spec(server.url("/file"), resume: note))
            #expect(rest.resumedAt == [length])
            let content = try bench.content()
            #expect(content == Bytes(bytes))
            await bench.stop()
            let log = try server.finish()
            #expect(log.last?.range == "bytes=\(length)-" && log.last?.bodyBytes == Int64(bytes.count) - length)
        }
    }

    @Test("What a server would send again from the beginning does not stop", arguments: ["noranges", "unnamed"])
    func cannotStop(place: String) async throws {
        let bytes = noise(1 << 20)
        try await serve(bytes) { server, bench in
            var events: [TransferEvent] = []
            for await event in await start(bench.spec(server.url("/\(place)/file")), on: bench) {
                events.append(event)
                bench.engine.stop("x")
            }
            #expect(events.receivedLength == Int64(bytes.count) && !events.contains(.canStop(true)))
        }
    }

    @Test("A pause keeps the connection, and says how far it is before and after")
    func pause() async throws {
        let bytes = noise(600_000)
        try await serve(bytes) { server, bench in
            var spec = bench.spec(server.url("/slow/file"))
            spec.transferClass = .background
            let stream = await start(spec, on: bench)
            var events = stream.makeAsyncIterator()
            var received: [Int64] = []
            while received.isEmpty, let event = await events.next() {
                // The pause has nothing new to tell where no byte comes between this and it.
                if case .progress(let count, _) = event { received.append(count) }
            }
            await bench.engine.pause("x")
            let length = try #require(try bench.files.status(Bench.partial)).size
            // All that was taken is in the file, and told; nothing more comes.
            await bench.engine.pause("x")
            let again = try bench.files.status(Bench.partial)?.size
            #expect(again == length)
            bench.engine.resume("x", as: .foreground)
            while let event = await events.next() {
                if case .progress(let count, _) = event { received.append(count) }
                if case .ended(let outcome) = event {
                    guard case .received(600_000, _, _, _) = outcome else {
                        Issue.record("\(outcome)")
                        break
                    }
                }
            }
            #expect(received.contains(length) && received == received.sorted())
            let content = try bench.content()
            #expect(content == Bytes(bytes))
            await bench.stop()
            let log = try server.finish()
            #expect(log.map(\.bodyBytes) == [600_000])
        }
    }

    @Test("What a background transfer sends yields to everybody else's, until it is promoted and after it was demoted")
    func marks() async throws {
        try await serve(noise(3 << 20)) { server, bench in
            var spec = bench.spec(server.url("/slow/file"))
            spec.transferClass = .background
            var seen: [[SocketMarks]] = []
            for await event in await start(spec, on: bench) where isProgress(event) {
                seen.append(try SocketMarks.ofConnections(to: server.port))
                for next in [TransferClass.foreground, .background] {
                    await bench.engine.pause("x")
                    bench.engine.resume("x", as: next)
                    // What is asked of an engine is done in order.
                    await bench.engine.setBackgroundRate(nil)
                    seen.append(try SocketMarks.ofConnections(to: server.port))
                }
                break
            }
            #expect(seen == [[.discretionary], [.ordinary], [.discretionary]])
        }
    }

    @Test("A pause that lasts gives the connection back")
    func longPause() async throws {
        try await serve(noise(3 << 20)) { server, bench in
            let stream = await start(bench.spec(server.url("/slow/file")), on: bench)
            var events: [TransferEvent] = []
            var isPaused = false
            for await event in stream {
                events.append(event)
                guard isProgress(event), !isPaused else { continue }
                isPaused = true
                await bench.engine.pause("x")
            }
            #expect(events.outcome == .stopped)
        }
    }

    @Test("Background transfers share a limit of bytes a second, and nobody else has it")
    func rate() async throws {
        let bytes = noise(256 << 10)
        try await serve(bytes) { server, bench in
            await bench.engine.setBackgroundRate(128 << 10)
            let clock = bench.loop
            let url = server.url("/file")
            let start = clock.now
            let done = Guarded<[String]>([])
            await withTaskGroup(of: Void.self) { group in
                for id in ["b0", "b1", "b2", "f"] {
                    var spec = bench.spec(url, id: id)
                    spec.transferClass = id == "f" ? .foreground : .background
                    group.addTask { [spec] in
                        #expect(await bench.run(spec).receivedLength == Int64(bytes.count))
                        done.withLock { $0.append(id) }
                    }
                }
            }
            #expect(done.withLock { $0.first } == "f", "nobody holds it up")
            // 768 KiB at 128 KiB a second, less the slack.
            let took = clock.now - start
            #expect(took > .milliseconds(5800), "\(took)")
            for number in 0..<3 {
                let content = try bench.content("b\(number)")
                #expect(content == Bytes(bytes))
            }
        }
    }

    @Test("A limit that is lifted holds nobody back any more")
    func lifted() async throws {
        let bytes = noise(16 << 20)
        try await serve(bytes) { server, bench in
            await bench.engine.setBackgroundRate(PolicyNumbers.backgroundRateMin)
            var spec = bench.spec(server.url("/file"))
            spec.transferClass = .background
            let start = bench.loop.now
            var events: [TransferEvent] = []
            for await event in await self.start(spec, on: bench) {
                events.append(event)
                if isProgress(event) { await bench.engine.setBackgroundRate(nil) }
            }
            // Under the limit it would have taken four minutes.
            let half = Duration.seconds(Int64(bytes.count) / PolicyNumbers.backgroundRateMin / 2)
            #expect(events.receivedLength == Int64(bytes.count) && bench.loop.now - start < half)
        }
    }
}
