// The store on a disk in memory: what was applied survives a power cut, and nothing half does.
import AssetsModel
import AssetsOS
import AssetsStore
import BackgroundAssetsTesting
import Testing

/// A store's world: one loop, one disk, one date.
private struct World {
    let loop: SimulatedLoop
    let vfs: MemoryVFS

    init(seed: UInt64) {
        loop = SimulatedLoop(seed: seed)
        vfs = MemoryVFS(seed: seed, calendar: SimulatedCalendar(on: loop))
    }

    func open() throws -> Store {
        try loop.complete { [vfs, loop] in try await Store(path: "/device.sqlite", vfs: vfs.name, on: loop) }
    }

    func apply(_ changes: [StoreChange], journal: [JournalEntry] = [], to store: Store) throws {
        try loop.complete { _ = try await store.apply(changes, journal: journal) }
    }

    func identifiers(in store: Store) throws -> [String] {
        try loop.complete { try await store.downloads(limit: 1000).map(\.request.identifier) }
    }

    func journal(in store: Store) throws -> [String] {
        try loop.complete { try await store.journal(limit: 1000).map(\.entry.detail) }
    }
}

private func insertion(_ number: Int, bodyBytes: Int = 0) -> StoreChange {
    let request = DownloadRequest(
        identifier: "\(number)", uniqueIdentifier: "unique \(number)", url: "https://example.com/\(number)",
        body: Array(repeating: UInt8(truncatingIfNeeded: number), count: bodyBytes), group: "group.example")
    return .insertDownload(DownloadRecord(app: "org.example.app", request: request, transferClass: .background))
}

private func entry(_ number: Int) -> JournalEntry {
    JournalEntry(time: .seconds(number), event: .downloadQueued, detail: "\(number)")
}

@Suite("Memory VFS")
struct MemoryVFSTests {
    @Test("The store works on it as on a real disk")
    func basics() throws {
        let world = World(seed: 1)
        let store = try world.open()
        try world.apply([insertion(1), insertion(2), .setSetting(name: "n", value: "v")], to: store)
        let error = #expect(throws: StoreError.self) { try world.apply([insertion(3), insertion(2)], to: store) }
        #expect(error?.code == .duplicate)
        #expect(try world.identifiers(in: store) == ["1", "2"])
        let queue = try world.loop.complete {
            try await store.queue(.background, app: "org.example.app", at: .zero, limit: 9)
        }
        #expect(queue.count == 2)
        let second = #expect(throws: StoreError.self) { try world.open() }
        #expect(second?.code == .busy)
        try world.loop.complete { try await store.close() }
        #expect(world.vfs.contents("/device.sqlite-wal") == [])
        #expect(try world.identifiers(in: try world.open()) == ["1", "2"])
    }

    @Test("Two disks in one process know nothing of each other")
    func separation() throws {
        let left = World(seed: 1)
        let right = World(seed: 1)
        #expect(left.vfs.name != right.vfs.name)
        let store = try left.open()
        try left.apply([insertion(1)], to: store)
        #expect(try right.identifiers(in: try right.open()).isEmpty)
    }

    @Test("After a power cut everything applied is there, and the old store is dead", arguments: UInt64(0)..<20)
    func powerCut(seed: UInt64) throws {
        let world = World(seed: seed)
        let cut = seed == 0 ? PowerCut.forgetsAll : .forgetsSome(seed: seed)
        var applied = 0
        for _ in 0..<4 {
            let store = try world.open()
            #expect(try world.identifiers(in: store) == (0..<applied).map { "\($0 + 1)" })
            for _ in 0..<5 {
                try world.apply([insertion(applied + 1, bodyBytes: 3000)], journal: [entry(applied + 1)], to: store)
                applied += 1
            }
            world.vfs.powerCut(cut)
            let error = #expect(throws: StoreError.self) { try world.apply([insertion(0)], to: store) }
            #expect(error?.code == .io)
        }
        let store = try world.open()
        #expect(try world.identifiers(in: store).count == 20)
        #expect(try world.journal(in: store) == (1...20).map { "\($0)" })
    }

    @Test("A death at any call of the disk loses nothing that was applied and leaves nothing half")
    func deathAnywhere() throws {
        // How many calls the whole history makes.
        let rehearsal = World(seed: 5)
        _ = try live(in: rehearsal)
        let calls = rehearsal.vfs.calls
        #expect(calls > 50)
        for call in 1...calls {
            for cut in [PowerCut.forgetsAll, .forgetsSome(seed: UInt64(call)), .forgetsSome(seed: ~UInt64(call))] {
                let world = World(seed: 5)
                world.vfs.setFault(.dies(call: call))
                let applied = try live(in: world)
                world.vfs.powerCut(cut)
                let store = try world.open()
                let found = try world.identifiers(in: store)
                // The transaction in which it died may have come through whole.
                #expect(found.count == applied || found.count == applied + 1, "call \(call), \(cut)")
                #expect(found == (0..<found.count).map { "\($0 + 1)" }, "call \(call), \(cut)")
                #expect(try world.journal(in: store) == found, "call \(call), \(cut)")
                try world.apply([insertion(99)], to: store)
            }
        }
    }

    @Test("A single failing call fails one transaction, or none, and later ones go on")
    func singleFault() throws {
        let rehearsal = World(seed: 6)
        _ = try live(in: rehearsal)
        for call in 1...rehearsal.vfs.calls {
            let world = World(seed: 6)
            world.vfs.setFault(.fails(call: call))
            let store: Store
            do {
                store = try world.open()
            } catch {
                // The fault hit the opening; the next one succeeds.
                _ = try world.open()
                continue
            }
            var applied: [String] = []
            for number in 1...6 {
                if (try? world.apply([insertion(number, bodyBytes: 5000)], journal: [entry(number)], to: store)) != nil
                {
                    applied.append("\(number)")
                }
            }
            #expect(applied.count >= 5, "call \(call)")
            #expect(try world.identifiers(in: store) == applied, "call \(call)")
            world.vfs.powerCut()
            let second = try world.open()
            let found = try world.identifiers(in: second)
            #expect(found == applied, "call \(call)")
            #expect(try world.journal(in: second) == applied, "call \(call)")
        }
    }

    @Test("A store's history is the same for the same seed, also where tasks compete for it")
    func determinism() throws {
        func history(seed: UInt64) throws -> (hash: UInt64, calls: Int, order: [String]) {
            let world = World(seed: seed)
            let store = try world.open()
            try world.loop.complete { [loop = world.loop] in
                await withTaskGroup(of: Void.self) { group in
                    for number in 1...8 {
                        group.addTask {
                            await loop.pause(for: .milliseconds(number % 3))
                            _ = try? await store.apply([insertion(number)])
                            loop.note("applied \(number)")
                        }
                    }
                }
            }
            return (world.loop.hash, world.vfs.calls, try world.identifiers(in: store))
        }
        var orders: Set<[String]> = []
        for seed in UInt64(1)...30 {
            let first = try history(seed: seed)
            let second = try history(seed: seed)
            #expect(first == second, "seed \(seed)")
            orders.insert(first.order)
        }
        #expect(orders.count > 10)
    }

    /// Opens, applies six transactions with a checkpoint in between, and stops at the first error; returns how many
    /// were applied.
    private func live(in world: World) throws -> Int {
        guard let store = try? world.open() else { return 0 }
        var applied = 0
        for number in 1...6 {
            let isDone =
                (try? world.apply([insertion(number, bodyBytes: 5000)], journal: [entry(number)], to: store)) != nil
            guard isDone else { return applied }
            applied += 1
            if number == 3 {
                guard (try? world.loop.complete { try await store.checkpoint(.truncate) }) != nil else {
                    return applied
                }
            }
        }
        return applied
    }
}
