// The part of an app's queue that is in memory.
import Testing

@testable import AssetsModel

@Suite("The window on an app's queue")
struct QueueWindowTests {
    private func entry(_ place: Int64, priority: Int = 0) -> QueueEntry {
        QueueEntry(
            id: "id \(place)", app: "a", host: "h", transferClass: .background, priority: priority, place: place)
    }

    /// A window that holds what a store with these answered.
    private func loaded(_ entries: [QueueEntry], isAll: Bool = true, limit: Int = 64) -> QueueWindow {
        var window = QueueWindow(isComplete: false)
        window.beginLoading()
        window.load(entries, isAll: isAll, limit: limit)
        return window
    }

    @Test("Higher priority goes first, then the lower place, whatever the order of insertion")
    func order() {
        var window = QueueWindow(isComplete: true)
        for entry in [entry(3), entry(1), entry(4, priority: 5), entry(2, priority: -1)] {
            window.insert(entry, limit: 64)
        }
        #expect(window.entries.map(\.place) == [4, 1, 3, 2])
    }

    @Test("What does not fit is left to the store, and the window says so")
    func overflow() {
        var window = loaded((1...4).map { entry($0) }, limit: 4)
        #expect(window.isComplete)
        window.insert(entry(10), limit: 4)
        #expect(window.entries.map(\.place) == [1, 2, 3, 4] && !window.isComplete)
        window.insert(entry(11, priority: 9), limit: 4)
        #expect(window.entries.map(\.place) == [11, 1, 2, 3])
        for place in [11, 1, 2, 3] {
            #expect(!window.mustLoad)
            window.remove(id: "id \(place)")
        }
        #expect(window.mustLoad && !window.isDone)
    }

    @Test("All that the store answered is taken, also when it has more", arguments: [true, false])
    func answer(isAll: Bool) {
        let window = loaded((1...10).map { entry($0) }, isAll: isAll, limit: 64)
        #expect(window.entries.map(\.place) == Array(1...10) && window.isComplete == isAll && !window.mustLoad)
    }

    @Test("An incomplete window takes nothing behind its last entry: the store may hold better ones")
    func incomplete() {
        var window = loaded([entry(1)], isAll: false)
        window.insert(entry(9), limit: 64)
        #expect(window.entries.map(\.place) == [1])
        window.insert(entry(10, priority: 1), limit: 64)
        #expect(window.entries.map(\.place) == [10, 1])
    }

    @Test("An entry is there once, and a complete window without entries is done")
    func once() {
        var window = loaded([entry(1)])
        window.insert(entry(1), limit: 64)
        #expect(window.entries.count == 1 && !window.isDone)
        window.remove(id: "id 1")
        #expect(window.isDone && !window.mustLoad)
    }

    @Test("What comes while the store is asked is kept, and an answer that is out of date counts for nothing")
    func outdated() {
        var window = QueueWindow(isComplete: false)
        window.insert(entry(5), limit: 64)
        // The store may have a better one.
        #expect(window.mustLoad)
        window.beginLoading()
        window.insert(entry(7), limit: 64)
        window.load([entry(5), entry(6)], isAll: true, limit: 64)
        #expect(window.entries.map(\.place) == [5, 6, 7] && !window.mustLoad)
        window.beginLoading()
        window.invalidate()
        window.load([], isAll: true, limit: 64)
        #expect(window.mustLoad && !window.isDone)
    }

    @Test("A favoured entry goes before all of its priority, and behind higher ones")
    func favour() {
        var window = loaded([entry(1), entry(2), entry(3), entry(4, priority: 5)])
        window.favour(id: "id 3")
        #expect(window.entries.map(\.id) == ["id 4", "id 3", "id 1", "id 2"])
        window.insert(entry(9), limit: 64)
        #expect(window.entries.map(\.id) == ["id 4", "id 3", "id 1", "id 2", "id 9"])
    }
}

@Suite("A limit of bytes a second")
struct RateLimitTests {
    @Test("Whoever takes waits until it is paid for; what was not used is saved up for a moment only")
    func waits() {
        var rate = RateLimit(bytesPerSecond: 1000)
        #expect(PolicyNumbers.rateSlack == .milliseconds(100))
        #expect(rate.take(50, at: .seconds(100)) == nil)
        #expect(rate.take(1050, at: .seconds(100)) == .seconds(101))
        #expect(rate.take(1000, at: .seconds(100)) == .seconds(102))
        #expect(rate.take(2000, at: .seconds(200)) == .milliseconds(201_900))
        var free = RateLimit()
        #expect(free.take(.max, at: .zero) == nil)
    }

    @Test("Over any time no more is taken than the limit allows, however it is cut", arguments: [1, 2, 3])
    func bound(seed: UInt64) {
        var dice = SplitMix(seed: seed)
        var rate = RateLimit(bytesPerSecond: 100_000)
        var now = Duration.zero
        var sum: Int64 = 0
        for _ in 0..<1000 {
            let count = Int64(dice.next() % 16_384)
            sum += count
            if let until = rate.take(count, at: now) { now = until }
            let bound = 100_000 * ((now + PolicyNumbers.rateSlack) / .seconds(1)) + 16_384
            #expect(Double(sum) <= bound + 1)
        }
        #expect(Double(sum) >= 100_000 * (now / .seconds(1)) * 0.99)
    }
}
