// The rule of an extension's process: when it is launched, stopped, continued and ended.

/// The life of one app's extension. There is one process at a time: the next is launched when the one before was reaped.
///
/// The owner performs the returned actions in order and reports what came of them as events. `now` is the process clock.
package struct ExtensionLife: Hashable, Sendable {
    private enum State: Hashable, Sendable {
        case absent
        /// Its process is being made; perhaps nobody wants it any more.
        case launching(isUnwanted: Bool)
        /// An entry point runs.
        case running
        /// Awake between two entry points.
        case idle
        /// No entry point follows for now: it is to be stopped.
        case resting(Rest)
        /// Stopped; ended at that time.
        case suspended(until: Duration)
        case ending(Ending)
    }

    /// What keeps it from being stopped.
    private enum Rest: Hashable, Sendable {
        /// It waits for exclusive control or has it, or handles a message as a delegate.
        case busy
        /// The owner is about to stop it; what was decided meanwhile is done when that is known.
        case stopping(lockSince: Duration?, isWanted: Bool)
        /// It holds a file lock, since then.
        case locked(since: Duration)
    }

    private struct Ending: Hashable, Sendable {
        var reason: Reason
        /// An entry point has not answered yet.
        var hasCall: Bool
        /// Another process is to be launched after this one.
        var isWanted: Bool
        var isKilled: Bool
        /// When it is killed if it has not ended by itself.
        var deadline: Duration
    }

    package enum Event: Hashable, Sendable {
        /// An entry point is to be called. The owner has one call under way at a time.
        case wanted
        case launched
        case launchFailed
        /// The entry point has answered.
        case answered
        /// No other entry point follows for now.
        case rest
        /// Whether it waits for exclusive control, has it, or handles a message as a delegate.
        case busy(Bool)
        case stopped
        /// It was not stopped, because it holds a file lock.
        case locked
        case timerFired
        /// Its runtime of the day is used up: it is told, and killed soon after.
        case runtimeSpent
        /// To be killed at once: it uses too much, takes too long, or answers nonsense.
        case misbehaved(Reason)
        /// Nobody wants it any more.
        case unwanted
        /// It has taken note of its end.
        case endNoted
        /// The process is gone, whoever ended it.
        case exited
    }

    package enum Action: Hashable, Sendable {
        case launch
        /// The entry point that is wanted is to be called now.
        case call
        /// Stop it unless it holds a file lock, and say which of the two.
        case stop
        case resume
        /// A later timer takes the place of an earlier one.
        case setTimer(at: Duration)
        /// extensionWillTerminate(), as far as it still listens.
        case tellEnd
        /// Close its entry points, at which it exits.
        case close
        case kill
        /// The process was reaped; `crash` where it ended by itself.
        case ended(Reason)
    }

    /// What people and tests are shown.
    package enum Phase: String, Hashable, Sendable, CaseIterable {
        case absent, launching, running, idle, suspended, ending
    }

    private var state: State = .absent
    private var isBusy = false

    package init() {}

    package var phase: Phase {
        switch state {
        case .absent: .absent
        case .launching: .launching
        case .running: .running
        case .idle, .resting: .idle
        case .suspended: .suspended
        case .ending: .ending
        }
    }

    /// True while time counts against the runtime of the day: while an entry point runs, and while it keeps or waits for what
    /// others wait for too.
    package var isCounted: Bool {
        switch state {
        case .absent, .launching, .suspended: false
        case .running: true
        case .idle, .resting: isBusy
        case .ending(let ending): ending.hasCall || isBusy
        }
    }

    /// True while a delegate in it can hear and answer.
    package var isAwake: Bool {
        switch state {
        case .running, .idle, .resting(.busy), .resting(.locked): true
        case .absent, .launching, .resting(.stopping), .suspended, .ending: false
        }
    }

    /// True while there is a process, or is about to be one.
    package var hasProcess: Bool { state != .absent }

    package mutating func handle(_ event: Event, at now: Duration) -> [Action] {
        switch event {
        case .wanted: wanted(at: now)
        case .launched: launched(at: now)
        case .launchFailed: launchFailed()
        case .answered: answered()
        case .rest: rest()
        case .busy(let isBusy): busy(isBusy)
        case .stopped: stopped(at: now)
        case .locked: locked(at: now)
        case .timerFired: timerFired(at: now)
        case .runtimeSpent: end(.budget, at: now)
        case .misbehaved(let reason): kill(reason, at: now)
        case .unwanted: end(.none, at: now)
        case .endNoted: endNoted()
        case .exited: exited()
        }
    }

    // MARK: Calls

    private mutating func wanted(at now: Duration) -> [Action] {
        switch state {
        case .absent:
            state = .launching(isUnwanted: false)
            return [.launch]
        case .launching, .running: preconditionFailure("a second entry point is called in state \(state)")
        case .idle, .resting(.busy), .resting(.locked):
            state = .running
            return [.call]
        case .resting(.stopping(let since, _)):
            state = .resting(.stopping(lockSince: since, isWanted: true))
            return []
        case .suspended:
            state = .running
            return [.resume, .call]
        case .ending(var ending):
            ending.isWanted = true
            state = .ending(ending)
            return []
        }
    }

    private mutating func launched(at now: Duration) -> [Action] {
        switch state {
        case .launching(false):
            state = .running
            return [.call]
        case .launching(true):
            state = .idle
            return kill(.none, at: now)
        case .absent, .running, .idle, .resting, .suspended, .ending:
            preconditionFailure("launched in state \(state)")
        }
    }

    private mutating func launchFailed() -> [Action] {
        switch state {
        case .launching:
            state = .absent
            return [.ended(.crash)]
        case .absent, .running, .idle, .resting, .suspended, .ending:
            preconditionFailure("a launch failed in state \(state)")
        }
    }

    private mutating func answered() -> [Action] {
        switch state {
        case .running:
            state = .idle
            return []
        case .ending(var ending):
            ending.hasCall = false
            state = .ending(ending)
            return []
        // It answered and ended at once: the end was seen first.
        case .absent: return []
        case .launching, .idle, .resting, .suspended: preconditionFailure("an answer in state \(state)")
        }
    }

    // MARK: Rest

    private mutating func rest() -> [Action] {
        switch state {
        case .idle: return isBusy ? restBusy() : stop(lockSince: nil)
        case .absent, .launching, .running, .resting, .suspended, .ending: return []
        }
    }

    private mutating func restBusy() -> [Action] {
        state = .resting(.busy)
        return []
    }

    private mutating func stop(lockSince: Duration?) -> [Action] {
        state = .resting(.stopping(lockSince: lockSince, isWanted: false))
        return [.stop]
    }

    private mutating func busy(_ isBusy: Bool) -> [Action] {
        self.isBusy = isBusy
        switch state {
        case .resting(.busy): return isBusy ? [] : stop(lockSince: nil)
        case .resting(.locked): return isBusy ? restBusy() : []
        case .suspended where isBusy:
            // It asked before it was stopped: now others would wait for it.
            state = .resting(.busy)
            return [.resume]
        case .absent:
            self.isBusy = false
            return []
        case .launching, .running, .idle, .resting(.stopping), .suspended, .ending: return []
        }
    }

    private mutating func stopped(at now: Duration) -> [Action] {
        guard case .resting(.stopping(_, let isWanted)) = state else { return [] }
        if isWanted {
            state = .running
            return [.resume, .call]
        }
        if isBusy {
            state = .resting(.busy)
            return [.resume]
        }
        let end = now + PolicyNumbers.extensionGrace
        state = .suspended(until: end)
        return [.setTimer(at: end)]
    }

    private mutating func locked(at now: Duration) -> [Action] {
        guard case .resting(.stopping(let since, let isWanted)) = state else { return [] }
        if isWanted {
            state = .running
            return [.call]
        }
        if isBusy { return restBusy() }
        let first = since ?? now
        state = .resting(.locked(since: first))
        guard now - first < PolicyNumbers.lockGrace else { return end(.lock, at: now) }
        return [.setTimer(at: min(now + PolicyNumbers.lockLook, first + PolicyNumbers.lockGrace))]
    }

    // MARK: The end

    private mutating func timerFired(at now: Duration) -> [Action] {
        switch state {
        case .resting(.locked(let since)): return stop(lockSince: since)
        case .suspended(let end):
            guard now >= end else { return [.setTimer(at: end)] }
            return self.end(.none, at: now)
        case .ending(var ending):
            guard !ending.isKilled else { return [] }
            guard now >= ending.deadline else { return [.setTimer(at: ending.deadline)] }
            ending.isKilled = true
            state = .ending(ending)
            return [.kill]
        case .absent, .launching, .running, .idle, .resting(.busy), .resting(.stopping): return []
        }
    }

    /// Tells it, and gives it a moment.
    private mutating func end(_ reason: Reason, at now: Duration) -> [Action] {
        let isStopped: Bool
        let hasCall: Bool
        switch state {
        case .absent: return []
        case .launching:
            // Its process is not there to be told.
            state = .launching(isUnwanted: true)
            return []
        case .ending(var ending):
            ending.isWanted = false
            state = .ending(ending)
            return []
        case .running: (isStopped, hasCall) = (false, true)
        case .idle, .resting(.busy), .resting(.locked): (isStopped, hasCall) = (false, false)
        // It may be stopped by the time this is done.
        case .resting(.stopping), .suspended: (isStopped, hasCall) = (true, false)
        }
        let isWanted = if case .resting(.stopping(_, true)) = state { true } else { false }
        let deadline = now + PolicyNumbers.terminationGrace
        state = .ending(
            Ending(reason: reason, hasCall: hasCall, isWanted: isWanted, isKilled: false, deadline: deadline))
        return (isStopped ? [.resume] : []) + [.tellEnd, .setTimer(at: deadline)]
    }

    private mutating func kill(_ reason: Reason, at now: Duration) -> [Action] {
        switch state {
        case .absent, .launching: return []
        case .running, .idle, .resting, .suspended:
            let isWanted = if case .resting(.stopping(_, true)) = state { true } else { false }
            state = .ending(
                Ending(
                    reason: reason, hasCall: state == .running, isWanted: isWanted, isKilled: true, deadline: now))
            return [.kill]
        case .ending(var ending):
            guard !ending.isKilled else { return [] }
            ending.isKilled = true
            // What began the end says why, if anything did.
            if ending.reason == .none { ending.reason = reason }
            state = .ending(ending)
            return [.kill]
        }
    }

    private mutating func endNoted() -> [Action] {
        guard case .ending(let ending) = state, !ending.isKilled else { return [] }
        return [.close]
    }

    private mutating func exited() -> [Action] {
        isBusy = false
        switch state {
        case .absent: return []
        case .launching: preconditionFailure("exited before it was launched")
        case .running, .idle, .resting(.busy), .resting(.locked), .suspended:
            state = .absent
            return [.ended(.crash)]
        case .resting(.stopping(_, let isWanted)):
            state = isWanted ? .launching(isUnwanted: false) : .absent
            return [.ended(.crash)] + (isWanted ? [.launch] : [])
        case .ending(let ending):
            state = ending.isWanted ? .launching(isUnwanted: false) : .absent
            return [.ended(ending.reason)] + (ending.isWanted ? [.launch] : [])
        }
    }
}
