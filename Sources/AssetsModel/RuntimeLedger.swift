// The rule of runtime: how long an app's extension may run in a day.

/// What an app's extension has run of late, over a rolling day.
///
/// Time is that of a calendar which never runs backwards: where the machine's is set back the ledger's stands still at that
/// moment and goes on from there, so that neither direction blocks an app for good.
package struct RuntimeLedger: Hashable, Sendable, Codable {
    /// Runtime that ended within one step of the ledger's clock.
    private struct Use: Hashable, Sendable, Codable {
        /// Steps since the clock's start.
        var step: Int64
        /// Microseconds.
        var length: Int64
    }

    /// Oldest first; at most as many as a day has steps, and one.
    private var uses: [Use] = []
    /// The ledger's clock and the machine's calendar when it was last looked at, in microseconds.
    private var clock: Int64 = 0
    private var calendar: Int64?

    package init() {}

    /// Pieces of runtime that it holds.
    package var length: Int { uses.count }

    /// Notes that an extension ran. `now` on the calendar clock.
    package mutating func charge(_ length: Duration, at now: Duration) {
        look(at: now)
        guard length > .zero else { return }
        let step = clock / Self.step
        if uses.last?.step == step {
            uses[uses.count - 1].length += length.wholeMicroseconds
        } else {
            uses.append(Use(step: step, length: length.wholeMicroseconds))
        }
    }

    /// What was used of the day that ends now.
    package mutating func used(at now: Duration) -> Duration {
        look(at: now)
        return .microseconds(uses.reduce(0) { $0 + $1.length })
    }

    /// What is left of a day's budget.
    package mutating func remaining(of budget: Duration, at now: Duration) -> Duration {
        max(.zero, budget - used(at: now))
    }

    /// How long until something of a spent budget is there again; zero while there is something.
    package mutating func wait(for budget: Duration, at now: Duration) -> Duration {
        var used = used(at: now)
        guard used >= budget else { return .zero }
        for use in uses {
            used -= .microseconds(use.length)
            if used < budget {
                return .microseconds((use.step + Self.dayInSteps + 1) * Self.step - clock)
            }
        }
        // Of a budget of nothing there is never anything.
        return PolicyNumbers.runtimeWindow
    }

    /// A simulated event begins a new day.
    package mutating func reset() { uses = [] }

    private mutating func look(at now: Duration) {
        let calendarNow = now.wholeMicroseconds
        if let calendar { clock += max(0, calendarNow - calendar) } else { clock = calendarNow }
        calendar = calendarNow
        // A use counts until the last moment of its step is a day ago.
        let first = clock / Self.step - Self.dayInSteps
        uses.removeAll { $0.step < first }
    }

    private static let step = PolicyNumbers.runtimeStep.wholeMicroseconds
    private static let dayInSteps = PolicyNumbers.runtimeWindow.wholeMicroseconds / step
}

extension Duration {
    fileprivate var wholeMicroseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}

/// How much an app is used, as far as its extension's runtime goes.
package enum AppUsage: Hashable, Sendable {
    /// Installed a short while ago: nothing is known yet.
    case new
    /// Days of the last month on which somebody opened it, 1 or more.
    case used(days: Int)
    /// Nobody opened it for a month.
    case unused

    /// Runtime of its extension within a day.
    package var runtime: Duration {
        switch self {
        case .new: return PolicyNumbers.runtimeOfNewApp
        case .unused: return PolicyNumbers.runtimeOfUnusedApp
        case .used(let days):
            let days = min(max(days, 1), PolicyNumbers.usageDays)
            let more = PolicyNumbers.runtimeOfDailyApp - PolicyNumbers.runtimeOfNewApp
            return PolicyNumbers.runtimeOfNewApp + more * days / PolicyNumbers.usageDays
        }
    }
}
