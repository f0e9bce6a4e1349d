import Testing

@testable import AssetsOS

@Suite struct TimerHeapTests {
    /// The obvious implementation: a list that is searched.
    private struct Model {
        var timers: [(deadline: Duration, number: UInt64)] = []

        mutating func insert(_ deadline: Duration, _ number: UInt64) -> Bool {
            timers.append((deadline, number))
            return timers.min { ($0.deadline, $0.number) < ($1.deadline, $1.number) }?.number == number
        }
        mutating func takeDue(at now: Duration) -> [UInt64] {
            let due = timers.filter { $0.deadline <= now }.sorted {
                ($0.deadline, $0.number) < ($1.deadline, $1.number)
            }
            timers.removeAll { $0.deadline <= now }
            return due.map(\.number)
        }
        var nextDeadline: Duration? { timers.map(\.deadline).min() }
    }

    @Test("Random timers fire as in a sorted list", arguments: 1...50 as ClosedRange<UInt64>)
    func agreesWithModel(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var heap = TimerHeap()
        var model = Model()
        var now = Duration.zero
        var number: UInt64 = 0
        for step in 0..<400 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                number += 1
                let deadline = now + .milliseconds(Int.random(in: 0...20, using: &random))
                let isEarliest = heap.insert(.init(deadline: deadline, token: .init(number: number), body: {}))
                let expected = model.insert(deadline, number)
                #expect(isEarliest == expected, "seed \(seed) step \(step)")
            case 5..<7:
                // Some of these have fired or were cancelled before.
                let victim = UInt64.random(in: 0...number + 1, using: &random)
                heap.cancel(.init(number: victim))
                model.timers.removeAll { $0.number == victim }
            default:
                now += .milliseconds(Int.random(in: 0...5, using: &random))
                let due = heap.takeDue(at: now).map(\.token.number)
                let expected = model.takeDue(at: now)
                #expect(due == expected, "seed \(seed) step \(step)")
            }
            #expect(heap.nextDeadline == model.nextDeadline, "seed \(seed) step \(step)")
            #expect(heap.isEmpty == model.timers.isEmpty, "seed \(seed) step \(step)")
        }
    }
}
