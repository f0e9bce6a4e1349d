// The rule of an installation: which step follows which, and when the app becomes launchable.

/// The life of one installation, from the user's command to a launchable app.
///
/// The owner performs the returned actions in order and reports what came of them as events. Every state can be
/// entered again after a crash with `resume`, because each step's result is on disk before the next begins.
package struct InstallLife: Hashable, Sendable {
    private enum State: Hashable, Sendable {
        case idle
        case fetchingArchive
        case unpacking
        case fetchingManifest
        case asking(ContentRequest)
        case essential(EssentialWatch)
        case ended(InstallPhase)
    }

    /// What the gate's patience is measured by.
    private struct EssentialWatch: Hashable, Sendable {
        var remaining: Int
        var received: Int64
        var lastChange: Duration
    }

    package enum Event: Hashable, Sendable {
        case begin(sourceIsURL: Bool)
        /// After a restart of the service: the phase and gate that the store holds.
        case resume(InstallPhase, isGateOpen: Bool)
        case archiveFetched
        case archiveFailed(AssetsError)
        /// `gated`: essential keys are there, the source is a store and in-app content is on.
        case staged(gated: Bool)
        case stagingFailed(AssetsError)
        case manifestFetched
        case manifestFailed
        /// The extension answered; its set was admitted and queued.
        case answered(essentials: Int)
        /// The extension crashed, hung, answered nonsense or cannot run.
        case extensionFailed
        /// State of the essential downloads of this installation.
        case essentials(remaining: Int, received: Int64)
        case gateTimerFired
        case cancel
    }

    package enum Action: Hashable, Sendable {
        case enter(InstallPhase)
        case fetchArchive
        case stage
        case fetchManifest
        case ask(ContentRequest)
        case watchEssentials
        case setGateTimer(at: Duration)
        /// Makes the app launchable; only then messages and non-essential downloads go out.
        case openGate(GateOpening)
        case removeEverything
        case fail(AssetsError)
        case tellCancelled
    }

    /// Why the gate opened.
    package enum GateOpening: String, Hashable, Sendable {
        case complete
        case nothingEssential = "nothing-essential"
        case manifestFailed = "manifest-failed"
        case extensionFailed = "extension-failed"
        case patience
        case notGated = "not-gated"
    }

    private var state: State = .idle
    private var isGateOpen = false

    package init() {}

    package var isEnded: Bool { if case .ended = state { true } else { false } }

    package mutating func handle(_ event: Event, at now: Duration) -> [Action] {
        if case .ended = state { return [] }
        switch event {
        case .begin(let sourceIsURL): return sourceIsURL ? enterArchive() : enterUnpacking()
        case .resume(let phase, let isGateOpen):
            self.isGateOpen = isGateOpen
            return resume(phase)
        case .archiveFetched:
            guard state == .fetchingArchive else { return [] }
            return enterUnpacking()
        case .archiveFailed(let error), .stagingFailed(let error):
            guard state == .fetchingArchive || state == .unpacking else { return [] }
            state = .ended(.failed)
            return [.removeEverything, .fail(error)]
        case .staged(let gated):
            guard state == .unpacking else { return [] }
            state = .fetchingManifest
            var actions: [Action] = [.enter(.manifest)]
            if !gated { actions += openGate(.notGated) }
            return actions + [.fetchManifest]
        case .manifestFetched:
            guard state == .fetchingManifest else { return [] }
            state = .asking(.install)
            return [.enter(.asking), .ask(.install)]
        case .manifestFailed:
            guard state == .fetchingManifest else { return [] }
            return finish(.manifestFailed)
        case .answered(let essentials): return answered(essentials: essentials, at: now)
        case .extensionFailed:
            guard case .asking = state else { return [] }
            return finish(.extensionFailed)
        case .essentials(let remaining, let received):
            return essentialsChanged(remaining: remaining, received: received, at: now)
        case .gateTimerFired: return gateTimerFired(at: now)
        case .cancel: return cancel()
        }
    }

    private mutating func enterArchive() -> [Action] {
        state = .fetchingArchive
        return [.enter(.archive), .fetchArchive]
    }

    private mutating func enterUnpacking() -> [Action] {
        state = .unpacking
        return [.enter(.unpacking), .stage]
    }

    private mutating func resume(_ phase: InstallPhase) -> [Action] {
        guard state == .idle else { return [] }
        switch phase {
        case .archive: return enterArchive()
        case .unpacking: return enterUnpacking()
        case .manifest:
            state = .fetchingManifest
            return [.fetchManifest]
        case .asking:
            state = .asking(.install)
            return [.ask(.install)]
        case .essential:
            state = .essential(EssentialWatch(remaining: .max, received: 0, lastChange: .zero))
            return [.watchEssentials]
        case .launchable, .failed, .cancelled:
            state = .ended(phase)
            return []
        }
    }

    private mutating func answered(essentials: Int, at now: Duration) -> [Action] {
        guard case .asking = state else { return [] }
        guard essentials > 0, !isGateOpen else { return finish(.nothingEssential) }
        state = .essential(EssentialWatch(remaining: essentials, received: 0, lastChange: now))
        return [.enter(.essential), .watchEssentials, .setGateTimer(at: now + PolicyNumbers.gatePatience)]
    }

    private mutating func essentialsChanged(remaining: Int, received: Int64, at now: Duration) -> [Action] {
        guard case .essential(var watch) = state else { return [] }
        guard remaining > 0 else { return finish(.complete) }
        let isFirst = watch.remaining == .max
        let hasMoved = remaining != watch.remaining || received - watch.received >= PolicyNumbers.gateProgressBytes
        guard isFirst || hasMoved else { return [] }
        watch = EssentialWatch(remaining: remaining, received: received, lastChange: now)
        state = .essential(watch)
        return isFirst ? [.setGateTimer(at: now + PolicyNumbers.gatePatience)] : []
    }

    private mutating func gateTimerFired(at now: Duration) -> [Action] {
        guard case .essential(let watch) = state else { return [] }
        let deadline = watch.lastChange + PolicyNumbers.gatePatience
        return now >= deadline ? finish(.patience) : [.setGateTimer(at: deadline)]
    }

    private mutating func cancel() -> [Action] {
        state = .ended(.cancelled)
        return [.removeEverything, .tellCancelled]
    }

    private mutating func finish(_ opening: GateOpening) -> [Action] {
        state = .ended(.launchable)
        return openGate(opening) + [.enter(.launchable)]
    }

    private mutating func openGate(_ opening: GateOpening) -> [Action] {
        guard !isGateOpen else { return [] }
        isGateOpen = true
        return [.openGate(opening)]
    }
}
