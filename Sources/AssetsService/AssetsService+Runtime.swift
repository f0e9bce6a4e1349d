// What extensions use of their day and of the disk, and what they are refused because of it.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore

/// What an extension's developer wants to know.
package struct ExtensionLedger: Sendable {
    package var phase: ExtensionLife.Phase
    /// Of the past day.
    package var used: Duration
    package var budget: Duration
    /// Why it may not run now.
    package var obstacle: (reason: Reason, detail: String)?
    /// The last one first.
    package var runs: [ExtensionRun]
}

extension AssetsService {
    // MARK: Runtime

    /// What an app's extension may run in a day. How much the app is used is not known: it counts as new.
    func runtimeBudget(of app: String) -> Duration { AppUsage.new.runtime }

    /// Begins or ends counting, as the rule of its life says.
    func countRuntime(of app: String) {
        guard let process = extensionProcesses[app] else { return }
        switch (process.life.isCounted, process.countedSince != nil) {
        case (true, false):
            extensionProcesses[app]?.countedSince = seams.loop.now
            armRuntimeTimer(of: app)
        case (false, true):
            chargeRuntime(of: app)
            extensionProcesses[app]?.countedSince = nil
            if let timer = process.runtimeTimer { seams.loop.cancel(timer) }
            extensionProcesses[app]?.runtimeTimer = nil
        case (true, true), (false, false): break
        }
    }

    /// Writes down what was used since the last time.
    private func chargeRuntime(of app: String) {
        let now = seams.loop.now
        guard let since = extensionProcesses[app]?.countedSince else { return }
        extensionProcesses[app]?.countedSince = now
        var ledger = runtimes[app] ?? RuntimeLedger()
        let half = runtimeBudget(of: app) / 2
        let before = ledger.used(at: calendarNow)
        ledger.charge(now - since, at: calendarNow)
        let after = ledger.used(at: calendarNow)
        runtimes[app] = ledger
        saveSoon(.saveRuntime(app: app, ledger))
        extensionProcesses[app]?.run?.runtime += now - since
        if before < half, after >= half {
            warn(
                .runtime, .budget, of: app,
                "the extension has used \(after.shown) of the \((half * 2).shown) of its day")
        }
        if let run = extensionProcesses[app]?.run { saveSoon(.saveExtensionRun(run)) }
    }

    private func armRuntimeTimer(of app: String) {
        var ledger = runtimes[app] ?? RuntimeLedger()
        let left = ledger.remaining(of: runtimeBudget(of: app), at: calendarNow)
        let delay = min(left, PolicyNumbers.runtimeSaveTime)
        extensionProcesses[app]?.runtimeTimer = seams.loop.schedule(after: delay) {
            self.assumeIsolated { $0.runtimeTimerFired(of: app) }
        }
    }

    private func runtimeTimerFired(of app: String) {
        guard extensionProcesses[app]?.life.isCounted == true else { return }
        chargeRuntime(of: app)
        guard runtimes[app]?.remaining(of: runtimeBudget(of: app), at: calendarNow) == .zero else {
            return armRuntimeTimer(of: app)
        }
        extensionProcesses[app]?.runtimeTimer = nil
        extensionEvent(.runtimeSpent, of: app)
    }

    /// A simulated event begins a new day for the app's extension.
    package func resetRuntime(of app: String) {
        guard runtimes[app] != nil else { return }
        runtimes[app]?.reset()
        if let ledger = runtimes[app] { saveSoon(.saveRuntime(app: app, ledger)) }
        serveHeldWork(of: app)
    }

    // MARK: Obstacles

    /// Why an extension may not run now, and for how long that holds at least.
    struct ExtensionObstacle {
        var reason: Reason
        var detail: String
        var wait: Duration
    }

    func obstacle(to app: AppRecord) async -> ExtensionObstacle? {
        if oversized[app.id] != nil { await lookAtStorage(of: app.id) }
        return knownObstacle(to: app.id)
    }

    private func knownObstacle(to app: String) -> ExtensionObstacle? {
        let budget = runtimeBudget(of: app)
        if let wait = runtimes[app]?.wait(for: budget, at: calendarNow), wait > .zero {
            let text =
                "the extension has used up its runtime of the day, \(budget.shown); some of it is there again in "
            return ExtensionObstacle(reason: .budget, detail: text + wait.shown, wait: wait)
        }
        if let text = oversized[app] {
            return ExtensionObstacle(reason: .size, detail: text, wait: PolicyNumbers.storageLook)
        }
        return nil
    }

    /// Takes the next piece of work whose time has come. What can wait waits while the extension may not run; the journal
    /// says once why, and a timer when to look again.
    func takeWork(of app: String) -> ExtensionQueue.Work? {
        guard let queue = extensionQueues[app], !queue.waiting.isEmpty else { return nil }
        let obstacle = knownObstacle(to: app)
        guard let place = queue.waiting.firstIndex(where: { obstacle == nil || !$0.canWait }) else {
            if let obstacle { hold(app, obstacle) }
            return nil
        }
        return extensionQueues[app]?.waiting.remove(at: place)
    }

    private func hold(_ app: String, _ obstacle: ExtensionObstacle) {
        guard extensionQueues[app]?.heldTimer == nil else { return }
        journal(.extensionRefused, obstacle.reason, app: app, obstacle.detail + "; what is to be told waits")
        extensionQueues[app]?.heldTimer = seams.loop.schedule(after: obstacle.wait) {
            self.assumeIsolated { service in
                service.launch { service in
                    if service.oversized[app] != nil { await service.lookAtStorage(of: app) }
                    service.serveHeldWork(of: app)
                }
            }
        }
    }

    /// Looks again whether what waits may be told.
    private func serveHeldWork(of app: String) {
        guard let timer = extensionQueues[app]?.heldTimer else { return }
        seams.loop.cancel(timer)
        extensionQueues[app]?.heldTimer = nil
        serveExtensionSoon(of: app)
    }

    // MARK: For its developer

    /// How the app's extension may run now.
    func extensionView(of app: String) -> Standing.ExtensionView {
        chargeRuntime(of: app)
        var ledger = runtimes[app] ?? RuntimeLedger()
        return Standing.ExtensionView(
            phase: extensionProcesses[app]?.life.phase ?? .absent, used: ledger.used(at: calendarNow),
            budget: runtimeBudget(of: app), obstacle: knownObstacle(to: app).map { ($0.reason, $0.detail, $0.wait) })
    }

    /// What an app's extension may use and what its runs used.
    package func extensionLedger(of app: String) async throws(AssetsError) -> ExtensionLedger {
        guard apps[app] != nil else {
            throw AssetsError(
                .notInstalled, "no app \(app) is installed on this device",
                remedy: "list the apps with: backgroundassets apps")
        }
        chargeRuntime(of: app)
        if let run = extensionProcesses[app]?.run { saveSoon(.saveExtensionRun(run)) }
        try await commit([])
        var ledger = runtimes[app] ?? RuntimeLedger()
        do throws(StoreError) {
            return ExtensionLedger(
                phase: extensionProcesses[app]?.life.phase ?? .absent, used: ledger.used(at: calendarNow),
                budget: runtimeBudget(of: app), obstacle: knownObstacle(to: app).map { ($0.reason, $0.detail) },
                runs: try await seams.store.extensionRuns(app: app, limit: PolicyNumbers.extensionRunsMax))
        } catch { throw AssetsError(error) }
    }

    // MARK: Storage

    /// Looks at the size of an app's containers: soon, and only once for calls that follow each other closely.
    func measureStorage(of app: String) {
        guard !isStopping, storageTimers[app] == nil else { return }
        storageTimers[app] = seams.loop.schedule(after: PolicyNumbers.storageLookDelay) {
            self.assumeIsolated { service in
                service.launch { service in
                    await service.lookAtStorage(of: app)
                    service.storageTimers[app] = nil
                }
            }
        }
    }

    private func lookAtStorage(of id: String) async {
        guard let app = apps[id], !isStopping else { return }
        let files = seams.files
        let folders = writableContainers(of: app)
        let usage = await seams.unpacking.run { () -> FolderUsage? in
            var sum = FolderUsage()
            for folder in folders {
                guard let usage = try? files.usage(of: folder, filesMax: PolicyNumbers.extensionFilesMax) else {
                    return nil
                }
                sum += usage
            }
            return sum
        }
        guard let usage, apps[id] != nil else { return }
        let before = oversized[id]
        oversized[id] = app.excess(of: usage)
        if before == nil, let text = oversized[id] { warn(.size, .size, of: id, text) }
    }

    /// The app is gone, and with it what its extension was and used.
    func forgetExtension(of app: String) {
        for timer in [extensionQueues[app]?.heldTimer, storageTimers[app]] {
            if let timer { seams.loop.cancel(timer) }
        }
        extensionQueues[app]?.heldTimer = nil
        storageTimers[app] = nil
        extensionProcesses[app] = nil
        runtimes[app] = nil
        oversized[app] = nil
    }
}

extension ExtensionQueue.Work {
    /// Messages are told later. Whoever installs, or a server that asks, does not wait for hours.
    fileprivate var canWait: Bool {
        switch self {
        case .message: true
        case .contentRequest(let request, _): request == .periodic
        case .challenge: false
        }
    }
}

extension AppRecord {
    /// What its containers may hold: the app declares the sizes of its essential and of its other assets.
    package var containerSizeMax: Int64 {
        let (sum, isTooMuch) = description.maxInstallSize.addingReportingOverflow(
            description.essentialMaxInstallSize ?? 0)
        return isTooMuch ? .max : sum
    }

    /// What is too much; nil when nothing is.
    fileprivate func excess(of usage: FolderUsage) -> String? {
        if usage.bytes > containerSizeMax {
            return
                "the containers hold \(usage.bytes.mebibytes); BAMaxInstallSize and BAEssentialMaxInstallSize declare "
                + containerSizeMax.mebibytes
        }
        guard usage.files > PolicyNumbers.extensionFilesMax || !usage.isComplete else { return nil }
        return
            "the containers hold more than \(PolicyNumbers.extensionFilesMax) files, or folders too deep to be counted"
    }
}
