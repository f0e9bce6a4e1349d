// Whether the device has a network, and when what waits for one is tried again.

/// What the kernel says of the network at one moment.
package struct NetworkView: Hashable, Sendable {
    /// Addresses of this machine on links that are up, as text and sorted; those of the loopback too.
    package var addresses: [String]
    /// Those on links that lead to somebody: with a carrier, and not the loopback.
    package var connected: [String]
    /// How one gets beyond the machine's own networks: a line for each protocol that leads there.
    package var ways: [String]

    package init(addresses: [String] = [], connected: [String] = [], ways: [String] = []) {
        self.addresses = addresses
        self.connected = connected
        self.ways = ways
    }

    /// There is not even a neighbour to talk to. Without a way further a server may still be in the machine's own
    /// network, so that is no reason not to try.
    package var isOffline: Bool { routes.isEmpty }

    /// What makes it another network than before.
    fileprivate var routes: [String] { ways + connected.filter { !Self.isOwn($0) } }

    /// An address that a machine gives itself where nobody else does.
    private static func isOwn(_ text: String) -> Bool {
        guard let address = IPAddress(text) else { return false }
        let own = [("169.254.0.0", 16), ("fe80::", 10)]
        return own.contains { network, bits in
            IPAddress(network).map { address.begins(like: $0, bits: bits) } ?? false
        }
    }
}

/// Follows the network. Times are of the process clock, which stands still while the machine sleeps.
package struct Connectivity: Hashable, Sendable {
    private enum State: Hashable, Sendable {
        /// Nobody tells: attempts show.
        case unknown
        case offline(since: Duration)
        case online
    }

    package enum Action: Hashable, Sendable {
        case wentOffline
        case cameOnline
        /// Another network than before.
        case changed
        /// Connections that use none of these addresses any more are dead.
        case dropConnections(keeping: [String])
        /// Call `retryTimerFired` at this time.
        case setRetryTimer(at: Duration)
    }

    private var state = State.unknown
    private var view: NetworkView?
    /// The last retry after a change, and how long the next one is put off.
    private var lastRetry: Duration?
    private var rest = Duration.zero
    private var retryAt: Duration?
    /// When the network was last seen to be another one.
    package private(set) var changedAt: Duration?

    package init() {}

    /// Whether changes are told at all.
    package var isKnown: Bool { view != nil }
    package var isOffline: Bool { if case .offline = state { true } else { false } }

    /// A machine that has been awake without a network for so long: it will not find one in the next moment.
    package func isOffline(at now: Duration, for time: Duration) -> Bool {
        guard case .offline(let since) = state else { return false }
        return now - since >= time
    }

    /// The kernel told how it is now. `random` is 64 random bits.
    package mutating func see(_ new: NetworkView, at now: Duration, random: UInt64) -> [Action] {
        guard new != view else { return [] }
        let old = view
        view = new
        var actions: [Action] = []
        if let old, !Set(old.addresses).isSubset(of: new.addresses) {
            actions.append(.dropConnections(keeping: new.addresses))
        }
        guard old?.routes != new.routes else { return actions }
        if old != nil { changedAt = now }
        if new.isOffline {
            if !isOffline {
                state = .offline(since: now)
                actions.append(.wentOffline)
            }
            return actions
        }
        switch state {
        case .offline: actions.append(.cameOnline)
        case .online: actions.append(.changed)
        case .unknown: break
        }
        state = .online
        // What waited through the end of an earlier process waits for this as well.
        return actions + planRetry(at: now, random)
    }

    private mutating func planRetry(at now: Duration, _ random: UInt64) -> [Action] {
        guard retryAt == nil else { return [] }
        let spread = PolicyNumbers.networkSpread / .milliseconds(1) * (Double(random >> 11) / 0x1p53)
        let earliest = lastRetry.map { max(now, $0 + rest) } ?? now
        let at = earliest + .milliseconds(Int64(spread))
        retryAt = at
        return [.setRetryTimer(at: at)]
    }

    /// True when what waits for the network is to be tried again.
    package mutating func retryTimerFired(at now: Duration) -> Bool {
        retryAt = nil
        guard !isOffline else { return false }
        // That of the beginning is none: nothing has changed yet.
        guard changedAt != nil else { return true }
        let isCalm = lastRetry.map { now - $0 > PolicyNumbers.networkCalm } ?? true
        rest = isCalm ? PolicyNumbers.networkRestMin : min(rest * 2, PolicyNumbers.networkRestMax)
        lastRetry = now
        return true
    }
}
