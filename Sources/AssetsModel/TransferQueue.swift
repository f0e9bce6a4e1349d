// The queue of transfers: what runs, what waits, and which app has had how much.

/// Decides what starts next, and what steps back for others.
///
/// The store holds the queue; here is the best of each app, so that no app can hide another's behind a long queue of its
/// own. The owner asks `next` until it says `wait`, does what it says, and tells what came of it.
///
/// Essential transfers go before foreground ones, both share the foreground's places; background ones have their own.
/// Between apps the one with the fewest transfers goes next, then the one whose transfers had the least time; within an
/// app the order is that of `QueueEntry.precedes`.
package struct TransferQueue: Sendable {
    /// What the owner has to do next.
    package enum Step: Hashable, Sendable {
        /// Ask the store which apps have something of this class in their queue, then tell `found`.
        case find(TransferClass)
        /// Ask the store for an app's best entries, at most so many, then tell `load`.
        case load(app: String, TransferClass, limit: Int)
        /// Begin this transfer; it has its place from now on, until `end`.
        case start(QueueEntry)
        /// Have this transfer stop where it is: another one waits, or too many run. It keeps its place until `end`.
        case yield(id: String, Cause)
        /// Nothing, until something changes or it is this late.
        case wait(until: Duration?)
    }

    /// Why a transfer stops.
    package enum Cause: Hashable, Sendable {
        /// Others go first for a while; `stepsBack` when they are of its own app, and it goes behind them.
        case turn(stepsBack: Bool)
        /// So many of its pool ran in so many places.
        case surplus(Int, of: Int)
    }

    struct Running: Hashable, Sendable {
        var entry: QueueEntry
        /// What it takes of a server's places for its app.
        let share: Int
        var begunAt: Duration
        /// It can go on later at the byte where it stops.
        var canYield = false
        var isYielding = false
    }

    /// Whose places a transfer takes.
    enum Pool: Hashable, Sendable, CaseIterable { case foreground, background }

    struct Account: Hashable, Sendable {
        var pool: Pool
        var app: String
    }

    private(set) var running: [String: Running] = [:]
    /// Memory of transfers that have all their bytes and no place any more, until the disk has them.
    private var unwritten: [String: Int64] = [:]
    private var unwrittenSum: Int64 = 0
    private(set) var windows: [TransferClass: [String: QueueWindow]] = [:]
    /// Whether all apps are known that have something of a class in their queue.
    private var knowledge: [TransferClass: QueueKnowledge] = [:]
    /// Time that ended transfers of each app have had; of apps only that have something to do.
    private(set) var served: [Account: Duration] = [:]

    package init() {}

    /// True while anything startable may wait.
    package var hasWaiting: Bool {
        TransferClass.allCases.contains { mustFind($0) }
            || windows.values.contains { apps in apps.values.contains { !$0.isDone } }
    }

    // MARK: What waits

    /// A download became startable.
    package mutating func insert(_ entry: QueueEntry, at now: Duration) {
        guard running[entry.id] == nil else { return }
        let transferClass = entry.transferClass
        // An app without a window has nothing else, once all apps were found.
        var window = windows[transferClass]?[entry.app] ?? QueueWindow(isComplete: !mustFind(transferClass))
        enter(entry.app, transferClass.pool, at: now)
        window.insert(entry, limit: windowLimit)
        windows[transferClass, default: [:]][entry.app] = window
    }

    /// A download is not to be started any more.
    package mutating func remove(id: String, app: String) {
        for transferClass in TransferClass.allCases {
            windows[transferClass]?[app]?.remove(id: id)
            forget(app, transferClass.pool)
        }
    }

    /// What the store holds has changed in ways that nobody has listed here.
    package mutating func invalidate() {
        for transferClass in TransferClass.allCases {
            for app in (windows[transferClass] ?? [:]).keys { windows[transferClass]?[app]?.invalidate() }
        }
        knowledge = [:]
    }

    func mustFind(_ transferClass: TransferClass) -> Bool { knowledge[transferClass] != .current }

    mutating func beginFinding(_ transferClass: TransferClass) { knowledge[transferClass] = .asked }

    /// These apps have something of a class in their queue. An answer that is out of date counts for nothing.
    package mutating func found(_ apps: [String], _ transferClass: TransferClass, at now: Duration) {
        guard knowledge[transferClass] == .asked else { return }
        knowledge[transferClass] = .current
        for app in apps where windows[transferClass]?[app] == nil {
            enter(app, transferClass.pool, at: now)
            windows[transferClass, default: [:]][app] = QueueWindow(isComplete: false)
        }
    }

    /// An app's best entries; `isAll` when the store has no more that could start.
    package mutating func load(_ entries: [QueueEntry], app: String, _ transferClass: TransferClass, isAll: Bool) {
        let waiting = entries.filter { running[$0.id] == nil }
        let limit = windowLimit
        windows[transferClass]?[app]?.load(waiting, isAll: isAll, limit: limit)
        forget(app, transferClass.pool)
    }

    mutating func beginLoading(_ app: String, _ transferClass: TransferClass) {
        windows[transferClass]?[app]?.beginLoading()
    }

    /// Entries that one window may hold, so that all together stay within their maximum.
    var windowLimit: Int {
        let count = windows.values.reduce(0) { $0 + $1.count }
        return min(PolicyNumbers.queueWindowMax, max(1, PolicyNumbers.queueEntriesMax / max(1, count)))
    }

    // MARK: What runs

    /// All bytes of a transfer have come and are on their way to the disk: its place is free, unless so much waits for the
    /// disk that more would only fill memory. Then it is free when the transfer has ended.
    ///
    /// - Parameter unwritten: Bytes that it has in memory.
    package mutating func gathered(_ id: String, unwritten bytes: Int64, at now: Duration) {
        let memory = PolicyNumbers.transferMemory + bytes
        guard running[id] != nil, unwrittenSum + memory <= PolicyNumbers.unwrittenMax else { return }
        end(id, at: now)
        unwritten[id] = memory
        unwrittenSum += memory
    }

    /// The transfer has ended or never began.
    package mutating func end(_ id: String, at now: Duration) {
        unwrittenSum -= unwritten.removeValue(forKey: id) ?? 0
        guard let ended = running.removeValue(forKey: id) else { return }
        settle(ended, at: now)
        forget(ended.entry.app, ended.account.pool)
    }

    /// From now on the transfer counts as one of that class. Where that has no place left, `next` finds who stops.
    package mutating func change(_ id: String, to transferClass: TransferClass, at now: Duration) {
        guard let before = running[id] else { return }
        settle(before, at: now)
        enter(before.entry.app, transferClass.pool, at: now)
        running[id]?.entry.transferClass = transferClass
        running[id]?.begunAt = now
        forget(before.entry.app, before.account.pool)
    }

    /// Whether the transfer could stop now and go on later without fetching a byte again. It has not stopped where it was
    /// asked to before: the choice is made anew.
    package mutating func setCanYield(_ canYield: Bool, _ id: String) {
        running[id]?.canYield = canYield
        running[id]?.isYielding = false
    }

    /// So many bytes of the transfer's file are still to come.
    package mutating func progressed(_ id: String, remaining: Int64?) { running[id]?.entry.remaining = remaining }

    mutating func begin(_ entry: QueueEntry, at now: Duration) {
        windows[entry.transferClass]?[entry.app]?.remove(id: entry.id)
        running[entry.id] = Running(entry: entry, share: entry.share, begunAt: now)
    }

    mutating func beginYielding(_ id: String) { running[id]?.isYielding = true }

    mutating func favour(_ entry: QueueEntry) { windows[entry.transferClass]?[entry.app]?.favour(id: entry.id) }

    // MARK: Who has had how much

    /// Time that an app's transfers have had in a pool.
    func served(_ account: Account, at now: Duration) -> Duration {
        running.values.reduce(served[account] ?? .zero) { sum, other in
            other.account == account ? sum + (now - other.begunAt) : sum
        }
    }

    private mutating func settle(_ transfer: Running, at now: Duration) {
        served[transfer.account, default: .zero] += now - transfer.begunAt
    }

    /// Who was away begins level with who had least: time that nobody wanted is not saved up.
    private mutating func enter(_ app: String, _ pool: Pool, at now: Duration) {
        let account = Account(pool: pool, app: app)
        guard served[account] == nil else { return }
        let others = served.keys.filter { $0.pool == pool }
        served[account] = others.map { served($0, at: now) }.min() ?? .zero
    }

    /// Forgets what an app without anything to do has had.
    private mutating func forget(_ app: String, _ pool: Pool) {
        let classes = TransferClass.allCases.filter { $0.pool == pool }
        for transferClass in classes where windows[transferClass]?[app]?.isDone == true {
            windows[transferClass]?[app] = nil
        }
        let account = Account(pool: pool, app: app)
        let isActive =
            running.values.contains { $0.account == account } || classes.contains { windows[$0]?[app] != nil }
        if !isActive { served[account] = nil }
    }
}

extension TransferQueue.Running {
    var account: TransferQueue.Account {
        TransferQueue.Account(pool: entry.transferClass.pool, app: entry.app)
    }
}

extension TransferQueue.Cause {
    package var reason: Reason {
        switch self {
        case .turn: .timeSlice
        case .surplus: .concurrency
        }
    }

    /// A sentence for people.
    package var sentence: String {
        switch self {
        case .turn: "others have waited; it goes on later at the same byte"
        case .surplus(let count, let places):
            "\(count) transfers shared \(places) places; it goes on later at the same byte"
        }
    }
}

extension TransferClass {
    var pool: TransferQueue.Pool {
        switch self {
        case .background: .background
        case .foreground, .essential: .foreground
        }
    }
}
