// Periodic checks: when the extension of each app is asked what is new. The service's side of `PeriodicPlan`.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    /// Checks are planned: whoever ends the service has to see to it that it is started again.
    package var hasPlans: Bool { !plans.isEmpty }

    /// After a start: plans as they were stored, and new ones for apps that have none.
    func resumePlans() async throws(AssetsError) {
        var changes: [StoreChange] = []
        for app in installedApps() where app.gate == .open {
            let known = plans[app.id]
            var plan = known ?? PeriodicPlan(installedAt: calendarNow, chance: seams.random.next())
            _ = plan.mend(at: calendarNow, chance: seams.random.next())
            guard plan != known else { continue }
            plans[app.id] = plan
            note(plan, of: app.id)
            changes.append(.savePlan(app: app.id, plan))
        }
        if !changes.isEmpty { try await commit(changes) }
        armPlanTimer()
    }

    /// An app became launchable: from now on its extension is asked from time to time.
    func makePlan(for app: String) -> StoreChange {
        let plan = PeriodicPlan(installedAt: calendarNow, chance: seams.random.next())
        plans[app] = plan
        note(plan, of: app)
        armPlanTimer()
        return .savePlan(app: app, plan)
    }

    /// The app was launched; nil when that changes nothing.
    func planAfterUse(of app: String) -> StoreChange? {
        guard var plan = plans[app] else { return nil }
        let due = plan.due
        guard plan.used(at: calendarNow, chance: seams.random.next()) else { return nil }
        plans[app] = plan
        if plan.due != due { note(plan, of: app) }
        armPlanTimer()
        return .savePlan(app: app, plan)
    }

    /// The extension was asked, or could not be; nil for an app that is gone.
    func planAfterCheck(of app: String) -> StoreChange? {
        guard var plan = plans[app] else { return nil }
        plan.checked(at: calendarNow, chance: seams.random.next())
        plans[app] = plan
        note(plan, of: app)
        armPlanTimer()
        return .savePlan(app: app, plan)
    }

    func forgetPlan(of app: String) {
        plans[app] = nil
        events[app] = nil
        armPlanTimer()
    }

    private func note(_ plan: PeriodicPlan, of app: String) {
        let use = plan.use(at: calendarNow)
        let how = use == .unused ? "not used for a month" : "used \(use)"
        journal(
            .eventPlanned, .interval, app: app,
            "a periodic check in \((plan.due - calendarNow).shownRoughly): \(how), so every "
                + PeriodicPlan.interval(of: use).shownRoughly)
    }

    // MARK: The timer

    /// One timer for all plans. It is of the process clock, which stands still while the machine sleeps, so it never runs
    /// for long.
    func armPlanTimer() {
        if let timer = planTimer { seams.loop.cancel(timer.token) }
        planTimer = nil
        let due = plans.filter { isPlannable($0.key) }.values.map(\.due).min()
        guard let due, !isStopping else { return }
        let delay = min(max(.milliseconds(1), due - calendarNow), PolicyNumbers.planLookMax)
        let token = seams.loop.schedule(after: delay) { self.assumeIsolated { $0.planTimerFired() } }
        planTimer = (token, seams.loop.now + delay)
    }

    /// What is under way ends by itself, and arms the timer then.
    private func isPlannable(_ app: String) -> Bool {
        apps[app]?.gate == .open && events[app] == nil && runningInstallation(of: app) == nil
    }

    private func planTimerFired() {
        planTimer = nil
        let now = calendarNow
        for app in plans.keys.sorted() where isPlannable(app) && plans[app]?.isDue(at: now) == true {
            launch { await $0.beginCheck(of: app) }
        }
        for app in plans.keys.sorted() {
            guard var plan = plans[app], plan.mend(at: now, chance: seams.random.next()) else { continue }
            plans[app] = plan
            note(plan, of: app)
            let changed = plan
            launch { _ = try? await $0.commit([.savePlan(app: app, changed)]) }
        }
        // Those that begin now are not plannable any more once they have.
        launch { $0.armPlanTimer() }
    }

    private func beginCheck(of app: String) async {
        guard isPlannable(app), plans[app]?.isDue(at: calendarNow) == true, !isStopping else { return }
        do throws(AssetsError) { try await beginEvent(.periodic, of: app, .planned) } catch {
            journal(.eventRefused, .space, app: app, "periodic check: \(error.description)")
            // The store takes nothing now: the next look tries again.
            plans[app]?.postpone(to: calendarNow + PolicyNumbers.planLookMax)
            armPlanTimer()
        }
    }
}
