// What starts next, and what stops for what.
import Testing

@testable import AssetsModel

@Suite("The choice of the next transfer")
struct TransferQueueTests {
    private static let megabyte: Int64 = 1_000_000

    @Test(
        "Limits of class, of app and host, and of host",
        arguments: [
            (TransferClass.background, true, true, 3), (.foreground, true, true, 12), (.essential, true, true, 12),
            (.foreground, false, false, 6), (.foreground, true, false, 12),
        ])
    func limits(transferClass: TransferClass, manyApps: Bool, manyHosts: Bool, count: Int) {
        var machine = QueueMachine()
        for number in 0..<40 {
            machine.add(
                "\(number)", app: manyApps ? "app \(number)" : "a", host: manyHosts ? "host \(number)" : "h",
                transferClass, size: Self.megabyte)
        }
        _ = machine.pump()
        #expect(machine.started.count == count)
    }

    @Test(
        "An app has twice as many small transfers at a server as large ones, and of both as many as fit",
        arguments: [(large: 0, small: 12), (1, 10), (4, 4), (5, 2), (6, 0)])
    func small(large: Int, small: Int) {
        var machine = QueueMachine()
        for number in 0..<large { machine.add("large \(number)", .foreground, priority: 1, size: (64 << 10) + 1) }
        for number in 0..<20 { machine.add("small \(number)", .foreground, size: 64 << 10) }
        _ = machine.pump()
        #expect(machine.started.count { $0.hasPrefix("large") } == large)
        #expect(machine.started.count { $0.hasPrefix("small") } == small)
    }

    @Test("What nobody knows the size of is large, and what was large stays it to its end")
    func unknownSize() {
        var machine = QueueMachine()
        for number in 0..<20 { machine.add("\(number)", .foreground, size: 10, isKnown: false) }
        _ = machine.pump()
        #expect(machine.started.count == 6)
        machine.queue.progressed("0", remaining: 1)
        _ = machine.pump()
        #expect(machine.started.count == 6)
    }

    @Test("Essential and foreground transfers share their places; background ones keep nobody from them")
    func classes() {
        var machine = QueueMachine()
        for number in 0..<20 {
            machine.add("b\(number)", host: "\(number)", size: Self.megabyte)
            machine.add("f\(number)", host: "\(number)", .foreground, size: Self.megabyte)
        }
        for number in 0..<5 { machine.add("e\(number)", host: "\(number)", .essential, size: Self.megabyte) }
        _ = machine.pump()
        #expect(machine.started.filter { $0.hasPrefix("e") }.count == 5)
        #expect(machine.started.filter { $0.hasPrefix("f") }.count == 7)
        #expect(machine.started.filter { $0.hasPrefix("b") }.count == 3)
        #expect(machine.started.prefix(5).allSatisfy { $0.hasPrefix("e") })
        // Promoted, a transfer leaves its place to another.
        machine.queue.end("f0", at: machine.now)
        machine.queue.change("b0", to: .foreground, at: machine.now)
        _ = machine.pump()
        #expect(machine.started.last == "b3")
    }

    @Test("A transfer that has all its bytes leaves its place to another, as long as little waits for the disk")
    func unwritten() {
        var machine = QueueMachine()
        for number in 0..<400 { machine.add("\(number)", host: "\(number)", .foreground, size: 10_000) }
        _ = machine.pump()
        var gathered: [String] = []
        while machine.started.count > gathered.count {
            let next = machine.started[gathered.count]
            machine.gather(next, unwritten: 10 << 10)
            gathered.append(next)
            _ = machine.pump()
        }
        // 26 KiB each of 4 MiB; those after them keep their places, of which an app has twelve.
        #expect(machine.started.count == 157 + 12)
        // Neither the end of one that has kept its place nor of one that had none is counted twice.
        for id in [gathered[168], gathered[0], gathered[0]] { machine.queue.end(id, at: machine.now) }
        _ = machine.pump()
        #expect(machine.started.count == 157 + 13)
        machine.gather(machine.started[169], unwritten: 10 << 10)
        _ = machine.pump()
        #expect(machine.started.count == 157 + 14)
        machine.gather(machine.started[170], unwritten: 0)
        _ = machine.pump()
        #expect(machine.started.count == 157 + 14)
    }

    @Test("Within an app higher priority goes first, whatever the order of scheduling", arguments: [true, false])
    func priority(isListed: Bool) {
        var machine = QueueMachine()
        for (name, priority) in [("low", -5), ("first", 0), ("high", 5), ("second", 0)] {
            machine.add(name, priority: priority, size: Self.megabyte, isListed: isListed)
        }
        machine.run()
        #expect(machine.started == ["high", "first", "second", "low"])
    }

    @Test("A long queue of one app does not hide another's, however high its priority")
    func hidden() {
        var machine = QueueMachine()
        for number in 0..<2000 {
            machine.add("a\(number)", priority: 1000, size: Self.megabyte, isListed: false)
        }
        machine.add("b", app: "b", priority: -1000, size: Self.megabyte, isListed: false)
        _ = machine.pump()
        #expect(machine.started.contains("b") && machine.started.count == 3)
        machine.run()
        #expect(machine.ended.count == 2001)
    }

    @Test("Apps take turns, whatever the number of what they have queued")
    func turns() {
        var machine = QueueMachine()
        for number in 0..<60 { machine.add("a\(number)", size: Self.megabyte) }
        for number in 0..<20 { machine.add("b\(number)", app: "b", size: Self.megabyte) }
        machine.run()
        let first = machine.ended.prefix(30)
        #expect(abs(first.filter { $0.hasPrefix("a") }.count - 15) <= 2)
        #expect(machine.ended.count == 80 && machine.yields.isEmpty)
    }

    @Test("An app with larger files gets no more time than one with small ones")
    func time() {
        var machine = QueueMachine()
        for number in 0..<40 { machine.add("a\(number)", size: 9 * Self.megabyte) }
        for number in 0..<400 { machine.add("b\(number)", app: "b", size: Self.megabyte) }
        machine.run(until: .seconds(90))
        let large = machine.ended.filter { $0.hasPrefix("a") }.count * 9
        let small = machine.ended.filter { $0.hasPrefix("b") }.count
        // 270 seconds of transfers were given out.
        #expect(abs(large - 135) <= 15 && abs(small - 135) <= 15, "\(large) and \(small)")
    }

    @Test("All windows together stay within their maximum, and nothing is forgotten")
    func memory() {
        var machine = QueueMachine()
        for app in 0..<100 {
            for number in 0..<50 {
                machine.add(
                    "\(app) \(number)", app: "app \(app)", host: "\(number)", size: Self.megabyte,
                    isListed: number % 2 == 0)
            }
        }
        _ = machine.pump()
        func held() -> Int { machine.queue.windows.values.flatMap(\.values).reduce(0) { $0 + $1.entries.count } }
        #expect(held() <= PolicyNumbers.queueEntriesMax)
        machine.run()
        #expect(machine.ended.count == 100 * 50 && held() == 0)
        #expect(machine.queue.served.isEmpty && !machine.queue.hasWaiting)
    }

    @Test("Nothing of a held app starts, and nothing of it is lost")
    func heldApps() {
        var machine = QueueMachine()
        machine.held = ["a"]
        machine.add("a", size: Self.megabyte)
        machine.add("b", app: "b", size: Self.megabyte)
        machine.run()
        #expect(machine.ended == ["b"])
        machine.held = []
        machine.run()
        #expect(machine.ended == ["b", "a"])
    }
}

@Suite("Time slices")
struct TransferSliceTests {
    private static let megabyte: Int64 = 1_000_000
    private static let gigabyte: Int64 = 1_000_000_000

    @Test(
        "Large downloads do not hold up small ones, of another app or of their own, and lose nothing",
        arguments: ["a", "b"], [true, false])
    func large(app: String, isKnown: Bool) {
        var machine = QueueMachine()
        for number in 0..<3 { machine.add("large \(number)", size: 10 * Self.gigabyte, isKnown: isKnown) }
        machine.run(until: .seconds(5))
        for number in 0..<10 { machine.add("small \(number)", app: app, size: Self.megabyte) }
        machine.run()
        for number in 0..<10 { #expect(machine.end("small \(number)") <= .seconds(20)) }
        // The time of all bytes at the rate of three, and of the last one alone: nothing was transferred twice.
        #expect(machine.now <= .seconds(10_010 + 10))
        #expect(machine.yields.count <= 3)
    }

    @Test("What cannot resume keeps its place to the end")
    func unresumable() {
        var machine = QueueMachine()
        for number in 0..<3 { machine.add("large \(number)", size: 100 * Self.megabyte, canYield: false) }
        machine.run(until: .seconds(1))
        machine.add("small", app: "b", size: Self.megabyte)
        machine.run()
        #expect(machine.yields.isEmpty && machine.starts("small") == [.seconds(100)])
    }

    @Test("A transfer that was asked to stop and cannot any more holds nobody up: another one stops")
    func unresumableAfterAll() {
        var machine = QueueMachine()
        for number in 0..<3 { machine.add("large \(number)", size: 100 * Self.megabyte) }
        machine.run(until: .seconds(20))
        machine.queue.insert(
            QueueEntry(
                id: "small", app: "b", host: "h", transferClass: .background, place: 9, remaining: Self.megabyte),
            at: machine.now)
        func next() -> TransferQueue.Step { machine.queue.next(at: machine.now) { _, _ in false } }
        guard case .yield(let first, _) = next() else { return #expect(Bool(false), "nobody stops") }
        let meanwhile = next()
        #expect(meanwhile == .wait(until: nil))
        machine.queue.setCanYield(false, first)
        guard case .yield(let second, _) = next() else { return #expect(Bool(false), "nobody else stops") }
        #expect(second != first)
        // Who could not at that moment may be chosen again.
        machine.queue.setCanYield(true, second)
        guard case .yield(let third, _) = next() else { return #expect(Bool(false), "nobody is asked again") }
        #expect(third == second)
    }

    @Test("Equally large downloads of one app come one after the other: taking turns would help none of them")
    func equals() {
        var machine = QueueMachine()
        for number in 0..<30 { machine.add("\(number)", size: (100 - Int64(number % 3)) * Self.megabyte) }
        machine.run()
        #expect(machine.yields.isEmpty)
        #expect(machine.end("0") == .seconds(100))
    }

    @Test("Apps with large downloads share the time, each going on with the one it began")
    func shares() {
        var machine = QueueMachine()
        for app in ["a", "b", "c", "d"] {
            for number in 0..<3 { machine.add("\(app)\(number)", app: app, size: 100 * Self.megabyte) }
        }
        machine.run(until: .seconds(200))
        // 600 seconds were given out to four apps.
        for app in ["a", "b", "c", "d"] {
            let bytes = machine.items.values.filter { $0.entry.app == app }.reduce(0) { $0 + $1.received }
            #expect(abs(bytes - 150 * Self.megabyte) <= 15 * Self.megabyte, "\(app): \(bytes)")
        }
        machine.run()
        #expect(machine.ended.count == 12 && machine.now <= .seconds(500), "\(machine.now)")
        // One at most is unfinished of each app at a time.
        for (app, ends) in Dictionary(grouping: machine.ended, by: { $0.prefix(1) }) {
            #expect(ends == ["\(app)0", "\(app)1", "\(app)2"])
        }
    }

    @Test("A higher priority of the same app takes the place of a lower one, never the other way round")
    func priority() {
        var machine = QueueMachine()
        for number in 0..<3 { machine.add("low \(number)", size: 100 * Self.megabyte) }
        machine.run(until: .seconds(1))
        machine.add("high", priority: 5, size: 200 * Self.megabyte)
        machine.run(until: .seconds(50))
        #expect(machine.starts("high") == [PolicyNumbers.transferSlice])
        machine.add("lower", priority: -5, size: Self.megabyte)
        machine.run()
        #expect(machine.yields.count == 1 && machine.end("high") == .seconds(210))
        #expect(machine.starts("lower").first ?? .zero >= .seconds(100))
    }

    @Test("Essential downloads do not wait for a slice, and background ones leave a busy server to the others at once")
    func atOnce() {
        var machine = QueueMachine()
        for number in 0..<12 {
            machine.add("f\(number)", app: "\(number)", host: "\(number)", .foreground, size: Self.gigabyte)
        }
        machine.run(until: .seconds(2))
        machine.add("e", app: "new", host: "new", .essential, size: Self.megabyte)
        _ = machine.pump()
        #expect(machine.started.last == "e" && machine.yields.count == 1)

        var busy = QueueMachine()
        for number in 0..<3 { busy.add("b\(number)", app: "b", size: Self.gigabyte) }
        busy.run(until: .seconds(1))
        for number in 0..<12 { busy.add("f\(number)", app: "f\(number % 2)", .foreground, size: Self.gigabyte) }
        _ = busy.pump()
        #expect(busy.started.filter { $0.hasPrefix("f") }.count == 12 && busy.yields.count == 3)
    }

    @Test("Nothing of a lower class ever takes a place of a higher one")
    func never() {
        var machine = QueueMachine()
        for number in 0..<12 {
            machine.add("e\(number)", app: "\(number % 2)", host: "h", .essential, size: Self.gigabyte)
        }
        machine.run(until: .seconds(1))
        machine.add("f", app: "x", host: "x", .foreground, size: Self.megabyte)
        machine.add("b", app: "x", host: "h", .background, size: Self.megabyte)
        machine.run(until: .seconds(100))
        #expect(machine.starts("f").isEmpty && machine.starts("b").isEmpty && machine.yields.isEmpty)
    }

    @Test("Whatever is queued, everything ends, within all limits and without waste", arguments: 1...40)
    func random(seed: UInt64) {
        var dice = SplitMix(seed: seed)
        func pick(_ count: Int) -> Int { Int(dice.next() % UInt64(count)) }
        var machine = QueueMachine()
        var bytes: Int64 = 0
        for number in 0..<120 {
            let size = Int64([10_000, 1_000_000, 50_000_000][pick(3)] + pick(1000))
            bytes += size
            machine.add(
                "\(number)", app: "app \(pick(4))", host: "host \(pick(3))",
                TransferClass.allCases[pick(3)], priority: pick(3), size: size, isKnown: pick(4) > 0,
                canYield: pick(4) > 0, isListed: pick(2) == 0)
            if pick(4) == 0 { machine.run(until: machine.now + .milliseconds(pick(20_000))) }
        }
        machine.run()
        #expect(machine.ended.count == 120 && !machine.queue.hasWaiting, "seed \(seed)")
        // Each yield let somebody go first who had waited; nobody was sent away over and over.
        #expect(machine.yields.count < 200, "seed \(seed)")
        // Transfers of one background place at worst, with the steps of time that are rounded up.
        #expect(machine.now <= .seconds(bytes) / QueueMachine.rate + .seconds(60), "seed \(seed)")
    }
}
