// When an app's extension is next asked what is new.

/// The rule of periodic checks, for one app: the more it is used, the more often. Times are of the calendar clock.
///
/// Chance comes as a number of 64 random bits: devices that were set up together must not ask their servers together.
package struct PeriodicPlan: Hashable, Sendable {
    /// How much an app is used.
    package enum Use: String, Hashable, Sendable, CaseIterable {
        case daily
        case weekly
        case monthly
        case unused
    }

    /// The last launch that counted; of an app that was never launched, its installation.
    package private(set) var lastUse: Duration
    /// When the extension was asked last, or the app was installed.
    package private(set) var lastCheck: Duration
    /// When it is asked next.
    package private(set) var due: Duration

    /// Of an app that becomes launchable now.
    package init(installedAt now: Duration, chance: UInt64) {
        (lastUse, lastCheck, due) = (now, now, now)
        due = now + Self.spread(Self.interval(of: use(at: now)), chance)
    }

    /// As it was stored.
    package init(lastUse: Duration, lastCheck: Duration, due: Duration) {
        self.lastUse = lastUse
        self.lastCheck = lastCheck
        self.due = due
    }

    package func use(at now: Duration) -> Use {
        switch now - lastUse {
        case ..<PolicyNumbers.dailyUse: .daily
        case ..<PolicyNumbers.weeklyUse: .weekly
        case ..<PolicyNumbers.monthlyUse: .monthly
        default: .unused
        }
    }

    package static func interval(of use: Use) -> Duration {
        switch use {
        case .daily: PolicyNumbers.checkIntervalDaily
        case .weekly: PolicyNumbers.checkIntervalWeekly
        case .monthly: PolicyNumbers.checkIntervalMonthly
        case .unused: PolicyNumbers.checkIntervalUnused
        }
    }

    package func isDue(at now: Duration) -> Bool { due <= now }

    /// The app was launched. True when the plan has changed.
    package mutating func used(at now: Duration, chance: UInt64) -> Bool {
        guard now < lastUse || now - lastUse >= PolicyNumbers.useResolution else { return false }
        lastUse = now
        // What the app wants itself at its start comes first.
        let soonest = now + PolicyNumbers.checkAfterUse
        due = min(due, max(soonest, lastCheck + Self.spread(Self.interval(of: .daily), chance)))
        return true
    }

    /// The extension was asked, or there was nothing to ask it with.
    package mutating func checked(at now: Duration, chance: UInt64) {
        lastCheck = now
        due = now + Self.spread(Self.interval(of: use(at: now)), chance)
    }

    /// The check could not begin.
    package mutating func postpone(to time: Duration) { due = max(due, time) }

    /// A calendar that was set back would keep the extension asleep for as long. True when the plan has changed.
    package mutating func mend(at now: Duration, chance: UInt64) -> Bool {
        let longest = Self.interval(of: .unused) * (100 + PolicyNumbers.checkSpread) / 100
        guard lastCheck > now || due > now + longest else { return false }
        lastUse = min(lastUse, now)
        checked(at: now, chance: chance)
        return true
    }

    /// The interval, longer or shorter by up to the spread.
    private static func spread(_ interval: Duration, _ chance: UInt64) -> Duration {
        let spread = UInt64(PolicyNumbers.checkSpread) * 100
        return interval * Int(10_000 - spread + chance % (2 * spread + 1)) / 10_000
    }
}

/// An occasion on which the extension of an installed app is asked what to download.
package struct ContentEvent: Hashable, Sendable {
    package enum Origin: String, Hashable, Sendable, CaseIterable {
        /// By the plan.
        case planned
        /// By a developer, in Developer Mode.
        case simulated
    }

    package var app: String
    package var request: ContentRequest
    package var origin: Origin
    /// Unique identifier of the manifest's download, which comes first.
    package var manifest: String

    package init(app: String, request: ContentRequest, origin: Origin, manifest: String) {
        self.app = app
        self.request = request
        self.origin = origin
        self.manifest = manifest
    }
}
