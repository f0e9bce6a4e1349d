// The processes of extensions: the service's side of `ExtensionLife`.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

/// What the service knows of one app's extension, with or without a process.
struct ExtensionProcessState {
    var life = ExtensionLife()
    var target: ExtensionTarget?
    /// Of the process that there is; nil while there is none.
    var urgency: ExtensionUrgency?
    /// Of the rule.
    var timer: TimerToken?
    /// The process's row in the ledger; nil while there is none.
    var run: ExtensionRun?
    /// The entry point that is wanted or runs.
    var entry: EntryPoint?
    var isCalling = false
    /// Who waits until it can be called.
    var caller: CheckedContinuation<ExtensionEnd?, Never>?
    /// Since when its runtime counts; process clock.
    var countedSince: Duration?
    var runtimeTimer: TimerToken?
    /// The file whose lock kept it from being stopped.
    var lockedFile: String?
    /// What was wrong with its answer, or why it could not be launched; and what the kernel says of its end.
    var lastWords: String?
    var howItEnded: String?
    /// How the last process ended.
    var end: ExtensionEnd?
    var endWaiters: [CheckedContinuation<Void, Never>] = []
}

/// Why a process ended, and how, for people.
struct ExtensionEnd {
    var reason: Reason
    var detail: String

    /// Of the call that it ended.
    var outcome: EntryPointOutcome { .died(reason == .none ? .cancelled : reason, detail) }
}

extension AssetsService {
    // MARK: The rule and its actions

    func extensionEvent(_ event: ExtensionLife.Event, of app: String) {
        guard var process = extensionProcesses[app] else { return }
        let actions = process.life.handle(event, at: seams.loop.now)
        extensionProcesses[app] = process
        countRuntime(of: app)
        for action in actions { perform(action, of: app) }
        // Nobody will call it any more.
        guard let left = extensionProcesses[app], !left.life.hasProcess, let caller = left.caller else { return }
        extensionProcesses[app]?.caller = nil
        caller.resume(returning: left.end ?? ExtensionEnd(reason: .crash, detail: "it is gone"))
    }

    private func perform(_ action: ExtensionLife.Action, of app: String) {
        let runner = seams.extensions
        switch action {
        case .launch: begin(app)
        case .call:
            extensionProcesses[app]?.isCalling = true
            extensionProcesses[app]?.run?.calls += 1
            let caller = extensionProcesses[app]?.caller
            extensionProcesses[app]?.caller = nil
            caller?.resume(returning: nil)
        case .stop: runner.stop(app: app)
        case .resume: runner.resume(app: app)
        case .setTimer(let deadline): setExtensionTimer(of: app, at: deadline)
        case .tellEnd: runner.tellEnd(app: app)
        case .close: runner.close(app: app)
        case .kill: runner.kill(app: app)
        case .ended(let reason): ended(app, reason)
        }
    }

    private func begin(_ app: String) {
        guard let target = extensionProcesses[app]?.target else { preconditionFailure("nobody wanted \(app)") }
        extensionProcesses[app]?.urgency = target.urgency
        extensionProcesses[app]?.end = nil
        extensionProcesses[app]?.lastWords = nil
        extensionProcesses[app]?.howItEnded = nil
        extensionProcesses[app]?.lockedFile = nil
        let run = ExtensionRun(id: seams.random.uuid(), app: app, launchedAt: calendarNow)
        extensionProcesses[app]?.run = run
        saveSoon(.saveExtensionRun(run))
        seams.extensions.start(target)
    }

    private func setExtensionTimer(of app: String, at deadline: Duration) {
        if let timer = extensionProcesses[app]?.timer { seams.loop.cancel(timer) }
        extensionProcesses[app]?.timer = seams.loop.schedule(at: deadline) {
            self.assumeIsolated { service in
                service.extensionProcesses[app]?.timer = nil
                service.extensionEvent(.timerFired, of: app)
            }
        }
    }

    // MARK: News of the process

    func extensionNews(_ news: ExtensionNews, of app: String) {
        switch news {
        case .launched: extensionEvent(.launched, of: app)
        case .launchFailed(let why):
            extensionProcesses[app]?.lastWords = why
            extensionEvent(.launchFailed, of: app)
        case .memory(let peak, let verdict): noteMemory(peak, verdict, of: app)
        case .stopped:
            extensionEvent(.stopped, of: app)
            if extensionProcesses[app]?.life.phase == .suspended { journal(.extensionSuspended, .none, app: app) }
        case .locked(let file):
            extensionProcesses[app]?.lockedFile = file
            extensionEvent(.locked, of: app)
        case .endNoted: extensionEvent(.endNoted, of: app)
        case .ended(let how, let peak):
            extensionProcesses[app]?.run?.memoryPeak = peak
            extensionProcesses[app]?.howItEnded = how
            extensionEvent(.exited, of: app)
        }
    }

    private func noteMemory(_ peak: Int64, _ verdict: MemoryRule.Verdict, of app: String) {
        extensionProcesses[app]?.run?.memoryPeak = peak
        switch verdict {
        case .fine: break
        case .warn:
            let limit = PolicyNumbers.extensionMemoryMax.mebibytes
            warn(.memory, .memory, of: app, "the extension has \(peak.mebibytes) of memory of its own; \(limit) end it")
        case .tooMuch: extensionEvent(.misbehaved(.memory), of: app)
        }
    }

    /// It has come close to a limit.
    func warn(_ warning: ExtensionRun.Warning, _ reason: Reason, of app: String, _ detail: String) {
        extensionProcesses[app]?.run?.warnings.insert(warning)
        journal(.warning, reason, app: app, detail)
    }

    // MARK: The end

    private func ended(_ app: String, _ reason: Reason) {
        guard let process = extensionProcesses[app] else { return }
        if let timer = process.timer { seams.loop.cancel(timer) }
        let end = ExtensionEnd(reason: reason, detail: describeEnd(of: process, reason))
        let download = process.isCalling ? process.entry?.download ?? "" : ""
        journal(.extensionEnded, reason, app: app, download: download, end.detail)
        if var run = process.run {
            (run.endedAt, run.reason, run.detail) = (calendarNow, reason, end.detail)
            saveSoon(.saveExtensionRun(run))
        }
        extensionProcesses[app]?.timer = nil
        extensionProcesses[app]?.run = nil
        extensionProcesses[app]?.urgency = nil
        extensionProcesses[app]?.isCalling = false
        extensionProcesses[app]?.end = end
        extensionProcesses[app]?.endWaiters = []
        for waiter in process.endWaiters { waiter.resume() }
        activityChanged?()
    }

    private func describeEnd(of process: ExtensionProcessState, _ reason: Reason) -> String {
        let how = process.howItEnded ?? ""
        let entry = process.isCalling ? process.entry.map { "\($0.name): " } ?? "" : ""
        let peak = process.run?.memoryPeak ?? 0
        let why: String? =
            switch reason {
            case .memory:
                "it had \(peak.mebibytes) of memory of its own, \(PolicyNumbers.extensionMemoryMax.mebibytes) are allowed"
            case .timeout: "it did not return in time"
            case .budget: "its runtime of the day is used up"
            // The name is the app's own, of any length.
            case .lock: "it kept the lock of \(process.lockedFile?.suffix(200) ?? "a file")"
            default: process.lastWords
            }
        return entry + [why, how].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: ", ")
    }

    /// How the app's process ended, once it has.
    func extensionEnd(of app: String) async -> ExtensionEnd {
        await extensionIsGone(app)
        return extensionProcesses[app]?.end ?? ExtensionEnd(reason: .crash, detail: "it is gone")
    }

    private func extensionIsGone(_ app: String) async {
        await withCheckedContinuation { continuation in
            // Asked in here, because this body may run as a job of its own, after others.
            if extensionProcesses[app]?.life.hasProcess == true {
                extensionProcesses[app]?.endWaiters.append(continuation)
            } else {
                continuation.resume()
            }
        }
    }

    /// Ends the app's extension, and returns when it was reaped.
    func endExtension(of app: String) async {
        extensionEvent(.unwanted, of: app)
        await extensionIsGone(app)
    }

    /// The same for all of them: each has the same moment to end.
    func endAllExtensions() async {
        let apps = extensionProcesses.keys.sorted()
        for app in apps { extensionEvent(.unwanted, of: app) }
        for app in apps { await extensionIsGone(app) }
    }

    // MARK: Awake or not

    /// Tells the rule whether the extension has or waits for what others wait for too.
    func noteExtensionBusy(_ app: String) {
        guard extensionProcesses[app]?.life.hasProcess == true else { return }
        extensionEvent(.busy(isAwakeForControl(app) || isAnswering(app)), of: app)
    }

    /// A delegate in the extension has a message or a question.
    private func isAnswering(_ app: String) -> Bool {
        guard let session = sessionOrder.first(where: { sessions[$0]?.app == app && sessions[$0]?.isExtension == true })
        else { return false }
        return rounds.values.contains { $0.record.app == app && $0.machine.isAwaited(session) }
            || challenges.values.contains { $0.record.app == app && $0.round.isAwaited(session) }
    }

    /// A stopped extension hears nothing: what is sent to it would wait until somebody wakes it.
    func isListening(_ session: ManagerSession) -> Bool {
        !session.isExtension || extensionProcesses[session.app]?.life.isAwake == true
    }
}

extension Int64 {
    /// "12.3 MiB".
    var mebibytes: String {
        let tenths = (self * 10 + (1 << 19)) >> 20
        return tenths % 10 == 0 ? "\(tenths / 10) MiB" : "\(tenths / 10).\(tenths % 10) MiB"
    }
}
