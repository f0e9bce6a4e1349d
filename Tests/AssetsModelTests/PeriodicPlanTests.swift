import AssetsModel
import Testing

private let hour = Duration.seconds(3600)
private let day = hour * 24

/// Walks through time from check to check; `launches` says when the app is used.
private func checks(of plan: PeriodicPlan, launches: [Duration], until end: Duration, seed: UInt64) -> [Duration] {
    var plan = plan
    var random = SplitMix(seed: seed)
    var launches = launches[...]
    var found: [Duration] = []
    while true {
        if let launch = launches.first, launch <= plan.due {
            launches.removeFirst()
            _ = plan.used(at: launch, chance: random.next())
            continue
        }
        guard plan.due <= end else { return found }
        found.append(plan.due)
        plan.checked(at: plan.due, chance: random.next())
    }
}

@Suite("The plan of periodic checks")
struct PeriodicPlanTests {
    @Test(
        "The first check comes some hours after the installation, spread over a fifth of them both ways",
        arguments: [UInt64(0), 1, 2000, 4000, 4001, .max])
    func first(chance: UInt64) {
        let plan = PeriodicPlan(installedAt: day, chance: chance)
        let wait = plan.due - day
        #expect(wait >= hour * 48 / 10 && wait <= hour * 72 / 10)
        let ends: [UInt64: Duration] = [
            0: .seconds(17_280), 2000: .seconds(21_600), 4000: .seconds(25_920), 4001: .seconds(17_280),
        ]
        if let end = ends[chance] { #expect(wait == end) }
        #expect(!plan.isDue(at: day) && plan.isDue(at: plan.due))
    }

    @Test(
        "Use within a day, a week and a month each has its interval, and none has the longest",
        arguments: zip(
            [-24, 0, 23, 24, 167, 168, 719, 720, 100_000],
            [PeriodicPlan.Use.daily, .daily, .daily, .weekly, .weekly, .monthly, .monthly, .unused, .unused]))
    func use(hours: Int, expected: PeriodicPlan.Use) {
        let since = hour * hours
        let plan = PeriodicPlan(lastUse: day * 10, lastCheck: day * 10, due: day * 11)
        #expect(plan.use(at: day * 10 + since) == expected)
        let intervals = PeriodicPlan.Use.allCases.map(PeriodicPlan.interval)
        #expect(intervals == [hour * 6, day, day * 3, day * 14])
    }

    @Test(
        "An app used every day is checked about four times a day; one that nobody opens fades away", arguments: 0..<20)
    func sixtyDays(seed: UInt64) {
        let plan = PeriodicPlan(installedAt: .zero, chance: seed &* 7919)
        let launches = (0..<60).map { day * $0 + hour }
        let used = checks(of: plan, launches: launches, until: day * 60, seed: seed)
        #expect((200...300).contains(used.count), "\(used.count)")
        let unused = checks(of: plan, launches: [], until: day * 60, seed: seed)
        #expect((12...25).contains(unused.count), "\(unused.count)")
        #expect(unused.filter { $0 > day * 31 }.count <= 3)
        #expect(unused.contains { $0 > day * 30 })
        // Neither twice at once nor never.
        let gaps = zip(used, used.dropFirst()).map { $1 - $0 }
        #expect(gaps.allSatisfy { $0 >= hour * 48 / 10 && $0 <= hour * 72 / 10 })
    }

    @Test("An app that is opened again is checked soon, but not while it starts; many launches are one")
    func openedAgain() {
        var plan = PeriodicPlan(lastUse: .zero, lastCheck: day * 40, due: day * 54)
        let now = day * 45
        #expect(plan.used(at: now, chance: 0) == true)
        #expect(plan.due == now + PolicyNumbers.checkAfterUse)
        let planned = plan
        #expect(plan.used(at: now + .seconds(60), chance: 0) == false)
        #expect(plan == planned)
        #expect(plan.used(at: now + PolicyNumbers.useResolution, chance: 0) == true)
        // What is due sooner stays.
        #expect(plan.due == planned.due)
        var busy = PeriodicPlan(lastUse: .zero, lastCheck: .zero, due: hour * 2)
        #expect(busy.used(at: hour, chance: 0) == true)
        #expect(busy.due == hour * 2)
    }

    @Test("A check that could not begin is looked at later, never sooner")
    func postponed() {
        var plan = PeriodicPlan(lastUse: .zero, lastCheck: .zero, due: hour)
        plan.postpone(to: hour * 2)
        #expect(plan.due == hour * 2)
        plan.postpone(to: hour)
        #expect(plan.due == hour * 2)
    }

    @Test("A calendar that was set back does not put the check off for as long; a proper plan is left alone")
    func setBack() {
        for use in PeriodicPlan.Use.allCases {
            var plan = PeriodicPlan(lastUse: day * 100, lastCheck: day * 100, due: day * 100)
            let later: [PeriodicPlan.Use: Int] = [.daily: 0, .weekly: 2, .monthly: 9, .unused: 99]
            let now = day * (100 + (later[use] ?? 0))
            plan.checked(at: now, chance: .max)
            let proper = plan
            #expect(plan.use(at: now) == use)
            #expect(plan.mend(at: now, chance: 1) == false)
            #expect(plan == proper)
        }
        var plan = PeriodicPlan(installedAt: day * 1000, chance: 5)
        #expect(plan.mend(at: day, chance: 5) == true)
        #expect(plan == PeriodicPlan(installedAt: day, chance: 5))
        // Years too late is only late.
        var late = PeriodicPlan(installedAt: day, chance: 5)
        #expect(late.mend(at: day * 5000, chance: 5) == false)
        #expect(late.isDue(at: day * 5000))
    }
}
