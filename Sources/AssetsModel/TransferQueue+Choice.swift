// The queue's choice: who starts next, and who stops for whom.

extension TransferQueue {
    /// What to do now. `isHeld` tells whether nothing of an app and class may start.
    package mutating func next(at now: Duration, isHeld: (String, TransferClass) -> Bool) -> Step {
        var blocked: [QueueWindow] = []
        for transferClass in TransferClass.allCases.reversed() {
            if mustFind(transferClass) {
                beginFinding(transferClass)
                return .find(transferClass)
            }
            for app in order(transferClass, at: now) where !isHeld(app, transferClass) {
                guard let window = windows[transferClass]?[app] else { continue }
                if window.mustLoad {
                    beginLoading(app, transferClass)
                    return .load(app: app, transferClass, limit: windowLimit)
                }
                if let entry = firstFree(in: window, transferClass.pool) {
                    begin(entry, at: now)
                    return .start(entry)
                }
                blocked.append(window)
            }
        }
        let mustYield = !blocked.isEmpty || Pool.allCases.contains { surplus(of: $0) != nil }
        return mustYield ? yield(to: blocked, at: now) : .wait(until: nil)
    }

    /// The best entry that could start now.
    private func firstFree(in window: QueueWindow, _ pool: Pool) -> QueueEntry? {
        guard count(of: pool) < pool.transfersMax else { return nil }
        var busyHosts: Set<String> = []
        for entry in window.entries where !busyHosts.contains(entry.host) {
            if isFree(for: entry) { return entry }
            busyHosts.insert(entry.host)
        }
        return nil
    }

    /// Apps with something of a class, in the order in which they get the next place.
    private func order(_ transferClass: TransferClass, at now: Duration) -> [String] {
        let apps = (windows[transferClass] ?? [:]).filter { !$0.value.isDone }
        guard apps.count > 1 else { return Array(apps.keys) }
        struct Rank {
            var app: String
            var count: Int
            var served: Duration
            var place: Int64
        }
        let ranks = apps.map { app, window in
            let account = Account(pool: transferClass.pool, app: app)
            return Rank(
                app: app, count: count(of: account), served: served(account, at: now),
                place: window.entries.first?.place ?? .max)
        }
        return ranks.sorted { ($0.count, $0.served, $0.place, $0.app) < ($1.count, $1.served, $1.place, $1.app) }
            .map(\.app)
    }

    private func count(of pool: Pool) -> Int {
        running.values.reduce(0) { $1.account.pool == pool ? $0 + 1 : $0 }
    }

    /// Places that an app holds in a pool.
    private func count(of account: Account) -> Int {
        running.values.reduce(0) { $1.account == account ? $0 + 1 : $0 }
    }

    /// Whether an entry could start now, or could once another transfer were gone.
    private func isFree(for entry: QueueEntry, without gone: String? = nil) -> Bool {
        limit(of: entry, without: gone) == nil
    }

    /// What keeps an entry from having a place.
    package enum Obstacle: Hashable, Sendable {
        /// So many transfers of its pool run, as many as may.
        case places(Int)
        /// So many of its pool run in so many places.
        case surplus(Int, of: Int)
        /// So many from its server, for its app or for all.
        case host(String, Int)
        /// Others go first.
        case turn
    }

    /// Why an entry that waits has no place yet.
    package func obstacle(to entry: QueueEntry) -> Obstacle { limit(of: entry) ?? .turn }

    /// The limit that is reached for an entry; nil when it could start.
    private func limit(of entry: QueueEntry, without gone: String? = nil) -> Obstacle? {
        var ofPool = 0
        var ofHost = 0
        var shares = entry.share
        for (id, other) in running where id != gone {
            if other.entry.transferClass.pool == entry.transferClass.pool { ofPool += 1 }
            guard other.entry.host == entry.host else { continue }
            ofHost += 1
            if other.entry.app == entry.app { shares += other.share }
        }
        let placesMax = entry.transferClass.pool.transfersMax
        if ofPool >= placesMax { return ofPool > placesMax ? .surplus(ofPool, of: placesMax) : .places(ofPool) }
        let isHostFull =
            ofHost >= PolicyNumbers.transfersPerHostMax || shares > 2 * PolicyNumbers.transfersPerAppAndHostMax
        return isHostFull ? .host(entry.host, ofHost) : nil
    }

    // MARK: Time slices

    /// Finds a transfer that stops, one at a time: what the place of it changes is seen first.
    private mutating func yield(to waiting: [QueueWindow], at now: Duration) -> Step {
        guard !running.values.contains(where: \.isYielding) else { return .wait(until: nil) }
        let slice = PolicyNumbers.transferSlice
        let candidates = running.values.filter(\.canYield).sorted { isFirstToYield($0, $1, at: now) }
        if let step = yieldTurn(of: candidates, to: waiting, at: now) { return step }
        if let step = yieldSurplus(of: candidates, to: waiting, at: now) { return step }
        return .wait(until: candidates.map { $0.begunAt + slice > now ? $0.begunAt + slice : now + slice }.min())
    }

    private mutating func yieldTurn(of candidates: [Running], to waiting: [QueueWindow], at now: Duration) -> Step? {
        let slice = PolicyNumbers.transferSlice
        for window in waiting {
            let transferClass = window.entries.first?.transferClass ?? .background
            for transfer in candidates
            where transfer.entry.transferClass < transferClass || now - transfer.begunAt >= slice {
                guard let entry = window.entries.first(where: { mayYield(transfer, to: $0, at: now) }) else { continue }
                beginYielding(transfer.entry.id)
                let isOwn = transfer.entry.app == entry.app
                if isOwn { favour(entry) }
                return .yield(id: transfer.entry.id, .turn(stepsBack: isOwn))
            }
        }
        return nil
    }

    /// The lowest class first, then the app that has had most, then the lowest priority, then who has run longest.
    private func isFirstToYield(_ left: Running, _ right: Running, at now: Duration) -> Bool {
        if left.entry.transferClass != right.entry.transferClass {
            return left.entry.transferClass < right.entry.transferClass
        }
        let had = (count(of: left.account), served(left.account, at: now))
        let other = (count(of: right.account), served(right.account, at: now))
        if had != other { return had > other }
        if left.entry.priority != right.entry.priority { return left.entry.priority < right.entry.priority }
        return (left.begunAt, left.entry.place, left.entry.id) < (right.begunAt, right.entry.place, right.entry.id)
    }

    /// Whether a transfer stops so that an entry can start in its place.
    ///
    /// A lower class stops at once. Otherwise a transfer has its slice; then it stops for an app that has fewer, or as
    /// many afterwards and has had less time, and within its app for what has a higher priority, or the same and is shorter:
    /// among equals nobody gains by turns.
    private func mayYield(_ transfer: Running, to entry: QueueEntry, at now: Duration) -> Bool {
        let own = transfer.entry
        guard own.transferClass <= entry.transferClass, isFree(for: entry, without: own.id) else { return false }
        guard own.transferClass == entry.transferClass else { return true }
        guard now - transfer.begunAt >= PolicyNumbers.transferSlice else { return false }
        if own.app == entry.app {
            return entry.priority > own.priority || entry.priority == own.priority && entry.isShorter(than: own)
        }
        let other = Account(pool: entry.transferClass.pool, app: entry.app)
        let (mine, theirs) = (count(of: transfer.account), count(of: other))
        return theirs + 1 < mine
            || theirs + 1 == mine && served(other, at: now) < served(transfer.account, at: now)
    }

    // MARK: Too many

    /// More run than a pool has places: transfers bring themselves along when their class changes, and not all can stop.
    private func surplus(of pool: Pool) -> Cause? {
        let count = count(of: pool)
        return count > pool.transfersMax ? .surplus(count, of: pool.transfersMax) : nil
    }

    private mutating func yieldSurplus(of candidates: [Running], to waiting: [QueueWindow], at now: Duration) -> Step? {
        let isUrgent = waiting.contains { $0.entries.first?.transferClass == .essential }
        for transfer in candidates where mayBeSurplus(transfer, isUrgent: isUrgent, at: now) {
            guard let cause = surplus(of: transfer.account.pool) else { continue }
            beginYielding(transfer.entry.id)
            return .yield(id: transfer.entry.id, cause)
        }
        return nil
    }

    /// Whether a transfer stops where too many run.
    ///
    /// Somebody looks at a foreground one: it has its slice, unless something essential waits. So one that was just promoted
    /// goes on in the place of one that was there before.
    private func mayBeSurplus(_ transfer: Running, isUrgent: Bool, at now: Duration) -> Bool {
        switch transfer.entry.transferClass {
        case .background: true
        case .foreground: isUrgent || now - transfer.begunAt >= PolicyNumbers.transferSlice
        case .essential: false
        }
    }
}

extension TransferQueue.Pool {
    fileprivate var transfersMax: Int {
        switch self {
        case .foreground: PolicyNumbers.foregroundTransfersMax
        case .background: PolicyNumbers.backgroundTransfersMax
        }
    }
}
