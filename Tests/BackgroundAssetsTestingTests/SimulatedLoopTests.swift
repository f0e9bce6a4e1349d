// One seed, one history.
import AssetsOS
import BackgroundAssetsTesting
import Glibc
import Testing

/// An actor with its work cut by suspensions.
private actor Peer {
    private let loop: SimulatedLoop
    private let name: String
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ name: String, _ loop: SimulatedLoop) {
        self.name = name
        self.loop = loop
    }

    func work() async {
        for step in 0..<3 {
            loop.note("\(name)\(step)")
            await Task.yield()
        }
        await loop.pause(for: .milliseconds(10))
        await withTaskGroup(of: Void.self) { group in
            for leaf in 0..<3 { group.addTask { await self.leaf(leaf) } }
        }
    }

    private func leaf(_ number: Int) { loop.note("\(name) leaf \(number)") }
}

@Suite("Simulated loop")
struct SimulatedLoopTests {
    fileprivate func history(seed: UInt64) throws -> (trace: [String], hash: UInt64) {
        let loop = SimulatedLoop(seed: seed)
        let random = SeededRandom(seed: seed)
        loop.note(random.uuid())
        let left = Peer("l", loop)
        let right = Peer("r", loop)
        try loop.complete {
            async let first: Void = left.work()
            async let second: Void = right.work()
            _ = await (first, second)
        }
        return (loop.trace, loop.hash)
    }

    @Test("The same seed gives the same history, another seed another one")
    func seeds() throws {
        var hashes: Set<UInt64> = []
        for seed in UInt64(1)...200 {
            let first = try history(seed: seed)
            let second = try history(seed: seed)
            #expect(first.trace == second.trace, "seed \(seed)")
            #expect(first.hash == second.hash, "seed \(seed)")
            hashes.insert(first.hash)
        }
        #expect(hashes.count == 200)
    }

    @Test("A seed gives the same history in every process")
    func acrossProcesses() async throws {
        let here = try history(seed: 42)
        #expect(here.trace.count == 13)
        for _ in 0..<2 {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                let there = try SimulatedLoopTests().history(seed: 42)
                let line = Array("history \(there.hash)\n".utf8)
                #expect(write(1, line, line.count) == line.count)
            }
            let output = String(decoding: try #require(result).standardOutputContent, as: UTF8.self)
            #expect(output.contains("history \(here.hash)\n"))
        }
    }

    @Test("Time stands while anything is ready, then jumps from timer to timer")
    func time() throws {
        let loop = SimulatedLoop(seed: 1, start: .zero)
        let calendar = SimulatedCalendar(on: loop, date: .seconds(500))
        let fired = Guarded<[String]>([])
        func plan(_ name: String, _ delay: Duration) -> TimerToken {
            loop.schedule(after: delay) { fired.withLock { $0.append("\(name) \(loop.now) \(calendar.now)") } }
        }
        _ = plan("day", .seconds(86400))
        _ = plan("second", .seconds(1))
        loop.cancel(plan("never", .seconds(2)))
        try loop.run(until: { !fired.withLock { $0.isEmpty } })
        #expect(fired.withLock { $0 } == ["second 1.0 seconds 501.0 seconds"])
        #expect(loop.now == .seconds(1))
        calendar.set(to: .zero)
        try loop.advance(by: .seconds(86398))
        #expect(fired.withLock { $0.count } == 1)
        try loop.advance(by: .seconds(1))
        #expect(fired.withLock { $0.last } == "day 86400.0 seconds 86399.0 seconds")
    }

    @Test("A history that cannot end is an error that names its seed")
    func errors() {
        let loop = SimulatedLoop(seed: 7, start: .zero)
        let stalled = #expect(throws: SimulationError.self) { try loop.run(until: { false }) }
        #expect(stalled?.code == .stalled)
        #expect(stalled?.description.contains("seed 7") == true)
        _ = loop.schedule(after: .seconds(10)) {}
        let late = #expect(throws: SimulationError.self) { try loop.run(until: { false }, limit: .seconds(9)) }
        #expect(late?.code == .timeIsUp)
        #expect(late?.time == .seconds(9))
    }

    @Test("Actors of the simulation know that they are on its loop, and others that they are not")
    func isolation() throws {
        let loop = SimulatedLoop(seed: 3)
        #expect(!loop.isOnLoop)
        #expect(try loop.complete { loop.isOnLoop })
        #expect(!loop.isOnLoop)
    }
}
