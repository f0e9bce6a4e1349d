// More transfers than places, because their classes change while they run.
import Testing

@testable import AssetsModel

@Suite("Transfers that bring themselves along into a full class")
struct TransferSurplusTests {
    private static let megabyte: Int64 = 1_000_000
    private static let gigabyte: Int64 = 1_000_000_000

    /// Foreground transfers of an app, six from each of two hosts.
    private func busy(_ count: Int = 12, canYield: (Int) -> Bool = { _ in true }) -> QueueMachine {
        var machine = QueueMachine()
        for number in 0..<count {
            machine.add(
                "a\(number)", host: "h\(number % 2)", .foreground, size: 10 * Self.gigabyte,
                canYield: canYield(number))
        }
        return machine
    }

    private func demoteAll(_ machine: inout QueueMachine) {
        for number in 0..<12 { machine.change("a\(number)", to: .background) }
    }

    @Test("Demoted, as many go on as have places, and others have their turn within slices")
    func demotion() {
        var machine = busy()
        machine.run(until: .seconds(5))
        demoteAll(&machine)
        for number in 0..<10 { machine.add("b\(number)", app: "b", size: Self.megabyte) }
        _ = machine.pump()
        #expect(machine.count(.background) == 3 && machine.surplus.count == 9)
        machine.run(until: .seconds(60))
        for number in 0..<10 { #expect(machine.end("b\(number)") <= .seconds(30)) }
        machine.run()
        #expect(machine.ended.count == 22 && machine.surplus.count == 9 && machine.yields.count <= 9 + 3)
        // Nothing is transferred twice, and no place stays empty.
        #expect(machine.now <= .seconds(40_000 + 30))
    }

    @Test("What cannot resume goes on although it was demoted; who waits is told how many that are")
    func unresumable() {
        var machine = QueueMachine()
        for number in 0..<12 {
            machine.add(
                "a\(number)", host: "h\(number % 2)", .foreground, size: Int64(10 + number) * Self.megabyte,
                canYield: false)
        }
        machine.run(until: .seconds(5))
        demoteAll(&machine)
        machine.add("b", app: "b", size: Self.megabyte)
        _ = machine.pump()
        #expect(machine.count(.background) == 12)
        if let waiting = machine.items["b"]?.entry {
            #expect(machine.queue.obstacle(to: waiting) == .surplus(12, of: 3))
        }
        machine.run()
        // Once two are left.
        #expect(machine.yields.isEmpty && machine.starts("b") == [machine.end("a9")])
    }

    @Test("Of those that can resume none goes on where the others take more than all places")
    func mixed() {
        var machine = busy { $0 < 8 }
        machine.run(until: .seconds(5))
        demoteAll(&machine)
        _ = machine.pump()
        #expect(machine.queue.running.keys.sorted() == ["a10", "a11", "a8", "a9"])
        #expect(machine.surplus.count == 8)
    }

    @Test("Others go on in the foreground at once when an app's transfers were demoted")
    func otherPool() {
        var machine = busy { _ in false }
        machine.run(until: .seconds(5))
        demoteAll(&machine)
        for number in 0..<12 {
            machine.add("b\(number)", app: "b", host: "x\(number % 2)", .foreground, size: Self.megabyte)
        }
        _ = machine.pump()
        #expect(machine.count(.background) == 12 && machine.count(.foreground) == 12)
    }

    /// Three background transfers of low priority beside the twelve.
    private func addBackground(to machine: inout QueueMachine) {
        for number in 0..<3 { machine.add("p\(number)", app: "p", priority: -5, size: 10 * Self.gigabyte) }
    }

    @Test("A promoted transfer takes the place of one that was there before, once and for good")
    func promotion() {
        var machine = busy()
        addBackground(to: &machine)
        machine.run(until: .seconds(20))
        for number in 0..<3 { machine.change("p\(number)", to: .foreground) }
        _ = machine.pump()
        #expect(machine.count(.foreground) == 12 && machine.surplus.count == 3)
        machine.run()
        #expect(machine.yields.count == 3 && machine.yields.allSatisfy { $0.hasPrefix("a") })
        #expect((0..<3).allSatisfy { machine.starts("p\($0)").count == 1 } && machine.ended.count == 15)
    }

    @Test("Where all have just begun, they have their slice before one of them makes room for a promoted one")
    func youngPromotion() {
        var machine = busy()
        addBackground(to: &machine)
        machine.run(until: .seconds(2))
        for number in 0..<3 { machine.change("p\(number)", to: .foreground) }
        let wake = machine.pump()
        #expect(machine.yields.isEmpty && wake == PolicyNumbers.transferSlice)
        machine.run(until: PolicyNumbers.transferSlice + .milliseconds(1))
        #expect(machine.count(.foreground) == 12 && machine.surplus.allSatisfy { $0.hasPrefix("a") })
    }

    @Test("Beside those that cannot stop, a promoted transfer has its slice, and goes on when there is room")
    func onlyPromoted() {
        var machine = busy { _ in false }
        machine.add("p", app: "p", size: 20 * Self.megabyte)
        machine.run(until: .seconds(5))
        machine.change("p", to: .foreground)
        machine.run()
        #expect(machine.yields == ["p"] && machine.starts("p") == [.zero, machine.end("a0")])
    }

    @Test("What is essential waits for no slice where promoted ones fill more than all places, and never makes room")
    func essential() {
        var machine = busy()
        addBackground(to: &machine)
        machine.run(until: .seconds(2))
        for number in 0..<3 { machine.change("p\(number)", to: .foreground) }
        machine.add("e", app: "e", .essential, size: Self.gigabyte)
        _ = machine.pump()
        #expect(machine.starts("e") == [.seconds(2)] && machine.count(.foreground) == 12)

        var full = busy(11) { _ in false }
        full.add("e", host: "e", .essential, size: Self.gigabyte)
        full.add("p", app: "p", size: Self.gigabyte, canYield: false)
        full.run(until: .seconds(5))
        full.change("p", to: .foreground)
        full.run(until: .seconds(100))
        #expect(full.yields.isEmpty && full.starts("e") == [.zero])
    }

    @Test(
        "However classes change, everything ends, no more run than may, and none is sent away over and over",
        arguments: 1...40)
    func random(seed: UInt64) {
        var dice = SplitMix(seed: seed)
        func pick(_ count: Int) -> Int { Int(dice.next() % UInt64(count)) }
        var machine = QueueMachine()
        var changes = 0
        for number in 0..<80 {
            machine.add(
                "\(number)", app: "app \(pick(4))", host: "host \(pick(4))", [.background, .foreground][pick(2)],
                priority: pick(3), size: Int64([10_000, 1_000_000, 50_000_000][pick(3)]), canYield: pick(4) > 0)
            for _ in 0..<pick(6) {
                machine.change("\(pick(number + 1))", to: [.background, .foreground][pick(2)])
                changes += 1
            }
            machine.run(until: machine.now + .milliseconds(pick(3000)))
            _ = machine.pump()
            let staying = machine.queue.running.values.filter { !$0.canYield && $0.account.pool == .background }
            #expect(machine.count(.background) <= max(3, staying.count), "seed \(seed)")
        }
        machine.run()
        #expect(machine.ended.count == 80 && !machine.queue.hasWaiting, "seed \(seed)")
        #expect(machine.surplus.count <= changes && machine.yields.count < changes + 200, "seed \(seed)")
    }
}
