// A queue with a store and transfers that are numbers: whole histories in virtual time.
import Testing

@testable import AssetsModel

/// Downloads of any sizes, each transferred at the same rate.
struct QueueMachine {
    struct Item {
        var entry: QueueEntry
        var size: Int64
        var received: Int64 = 0
        var canYield: Bool
        var isKnown = true
        var starts: [Duration] = []
        var end: Duration?
    }

    /// Bytes a second of one transfer.
    static let rate: Int64 = 1_000_000

    var queue = TransferQueue()
    var now = Duration.zero
    private(set) var items: [String: Item] = [:]
    private var nextPlace: Int64 = 1
    /// In the order in which they started.
    private(set) var started: [String] = []
    private(set) var yields: [String] = []
    /// Those of them that stopped because too many ran.
    private(set) var surplus: [String] = []
    private(set) var ended: [String] = []
    var held: Set<String> = []
    /// Steps that only read: they must not go on for ever.
    private var reads = 0

    /// - Parameter isListed: told of one by one; else the store has it and the queue is invalidated.
    mutating func add(
        _ name: String, app: String = "a", host: String = "h", _ transferClass: TransferClass = .background,
        priority: Int = 0, size: Int64, isKnown: Bool = true, canYield: Bool = true, isListed: Bool = true
    ) {
        let entry = QueueEntry(
            id: name, app: app, host: host, transferClass: transferClass, priority: priority, place: nextPlace,
            remaining: isKnown ? size : nil)
        nextPlace += 1
        items[name] = Item(entry: entry, size: size, canYield: canYield, isKnown: isKnown)
        if isListed { queue.insert(entry, at: now) } else { queue.invalidate() }
    }

    /// Does what the queue says until it waits; returns until when.
    mutating func pump() -> Duration? {
        while true {
            switch queue.next(at: now, isHeld: { [held] app, _ in held.contains(app) }) {
            case .find(let transferClass):
                let waiting = items.values.filter { $0.end == nil && $0.entry.transferClass == transferClass }
                queue.found(Set(waiting.map(\.entry.app)).sorted(), transferClass, at: now)
            case .load(let app, let transferClass, let limit):
                let running = queue.running
                let waiting = items.values.filter {
                    $0.end == nil && $0.entry.app == app && $0.entry.transferClass == transferClass
                        && running[$0.entry.id] == nil
                }.map(\.entry).sorted { $0.precedes($1) }
                queue.load(Array(waiting.prefix(limit)), app: app, transferClass, isAll: waiting.count <= limit)
            case .start(let entry):
                started.append(entry.id)
                items[entry.id]?.starts.append(now)
                check(entry.transferClass)
                if items[entry.id]?.canYield == true { queue.setCanYield(true, entry.id) }
            case .yield(let id, let cause):
                yields.append(id)
                if case .surplus = cause { surplus.append(id) }
                stop(id, cause == .turn(stepsBack: true))
            case .wait(let until):
                return until
            }
        }
    }

    /// A download is promoted or demoted, and keeps its place if it runs.
    mutating func change(_ name: String, to transferClass: TransferClass) {
        guard var item = items[name], item.end == nil else { return }
        item.entry.transferClass = transferClass
        items[name] = item
        if queue.running[name] != nil { return queue.change(name, to: transferClass, at: now) }
        queue.remove(id: name, app: item.entry.app)
        queue.insert(item.entry, at: now)
    }

    /// How many run of a pool.
    func count(_ pool: TransferQueue.Pool) -> Int { queue.running.values.count { $0.account.pool == pool } }

    /// All bytes of a transfer are there, and so many of them in memory only.
    mutating func gather(_ id: String, unwritten: Int64) {
        items[id]?.end = now
        queue.gathered(id, unwritten: unwritten, at: now)
    }

    private mutating func stop(_ id: String, _ stepsBack: Bool) {
        queue.end(id, at: now)
        guard var item = items[id] else { return }
        if stepsBack {
            item.entry.place = nextPlace
            nextPlace += 1
        }
        item.entry.remaining = item.isKnown ? item.size - item.received : nil
        items[id] = item
        queue.insert(item.entry, at: now)
    }

    /// What one of a class has begun in.
    private func check(_ transferClass: TransferClass) {
        let running = queue.running.values.map(\.entry)
        if transferClass == .background { #expect(count(.background) <= 3) } else { #expect(count(.foreground) <= 12) }
        for (_, group) in Dictionary(grouping: running, by: \.host) { #expect(group.count <= 12) }
        let ofApps = Dictionary(grouping: queue.running.values) { $0.entry.app + " " + $0.entry.host }
        for (_, group) in ofApps { #expect(group.reduce(0) { $0 + $1.share } <= 12) }
        // Only what is small counts half; a large one that is nearly done counts as what it was.
        for transfer in queue.running.values where transfer.share != 2 {
            #expect(transfer.share == 1 && (transfer.entry.remaining ?? .max) <= 64 << 10)
        }
    }

    /// Runs until nothing is left, or until `limit`.
    mutating func run(until limit: Duration = .seconds(1_000_000)) {
        while now < limit {
            let wake = pump()
            let running = queue.running.keys.compactMap { items[$0] }
            let first = running.map { now + .seconds($0.size - $0.received) / Self.rate }.min()
            guard let next = [wake, first, limit].compactMap({ $0 }).min(), !running.isEmpty else { return }
            let bytes = Int64((next - now) / .microseconds(1)) * Self.rate / 1_000_000
            for item in running {
                let id = item.entry.id
                items[id]?.received = min(item.size, item.received + bytes)
                let remaining = item.size - (items[id]?.received ?? 0)
                queue.progressed(id, remaining: item.isKnown ? remaining : nil)
                if remaining == 0 {
                    items[id]?.end = next
                    ended.append(id)
                    queue.end(id, at: next)
                }
            }
            now = next
        }
    }

    func end(_ id: String) -> Duration { items[id]?.end ?? .seconds(Int64.max) }
    func starts(_ id: String) -> [Duration] { items[id]?.starts ?? [] }
}
