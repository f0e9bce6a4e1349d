// The rule of delivery: who gets a finished or failed message, and when it is done.

/// The way of one message: first to every delegate that is connected at that moment, then to the extension.
///
/// Any *handled* ends it. *Not implemented* from the extension is final; only death inside the callback is retried.
package struct DeliveryRound: Hashable, Sendable {
    private enum State: Hashable, Sendable {
        case idle
        /// Sessions that have not answered, and whether one of them said *handled*.
        case delegates(pending: Set<String>, handled: Bool)
        case waitingForExtension
        case inExtension
        case closed
    }

    package enum Action: Hashable, Sendable {
        case send(to: [String])
        case setAnswerTimer
        case callExtension
        case setRedeliveryTimer(after: Duration)
        case close(Outcome)
    }

    /// How the message ended.
    package enum Outcome: Hashable, Sendable {
        /// Everybody who got it is done with the file.
        case handled
        case notImplemented
        /// The extension died in the callback every time.
        case givenUp
    }

    /// Where the message is, for people.
    package enum Stage: Hashable, Sendable {
        case withDelegates
        /// After a death in the callback.
        case pausing
        case waitingForExtension
        case inExtension
        case over
    }

    private var state: State = .idle
    /// Times that the extension died in the callback.
    package private(set) var deaths: Int
    /// The extension is not called before the redelivery timer has fired.
    private var pause: Duration
    /// Sessions whose delegate appeared while the extension had the message.
    private var newcomers: [String] = []
    /// Sessions whose answer was waited for in vain: it may still come.
    private var late: Set<String> = []

    /// - Parameters:
    ///   - deaths: What earlier services have counted.
    ///   - pause: What is left of the pause after the last of them.
    package init(deaths: Int = 0, pause: Duration = .zero) {
        self.deaths = deaths
        self.pause = max(.zero, pause)
    }

    package var isClosed: Bool { state == .closed }

    package var stage: Stage {
        switch state {
        case .delegates: .withDelegates
        case .waitingForExtension: pause > .zero ? .pausing : .waitingForExtension
        case .inExtension: .inExtension
        case .idle, .closed: .over
        }
    }

    /// True while the session has the message and has not answered.
    package func isAwaited(_ session: String) -> Bool {
        if case .delegates(let pending, _) = state { pending.contains(session) } else { false }
    }

    /// `sessions`: those with a delegate, in the order they connected.
    package mutating func begin(sessions: [String]) -> [Action] {
        guard state == .idle else { return [] }
        let timer: [Action] = pause > .zero ? [.setRedeliveryTimer(after: pause)] : []
        return timer + offer(to: sessions)
    }

    package mutating func answer(session: String, handled: Bool) -> [Action] {
        let isLate = late.remove(session) != nil
        guard case .delegates(var pending, let before) = state, pending.remove(session) != nil || isLate else {
            return isLate && handled ? handledLate() : []
        }
        return settle(pending: pending, handled: before || handled)
    }

    /// Nobody has taken the message yet, and now it turns out that nobody needs to.
    private mutating func handledLate() -> [Action] {
        guard state == .waitingForExtension else { return [] }
        state = .closed
        return [.close(.handled)]
    }

    /// The session's process is gone.
    package mutating func sessionEnded(_ session: String) -> [Action] {
        newcomers.removeAll { $0 == session }
        return answer(session: session, handled: false)
    }

    /// Nobody may keep a message longer than the answer limit. A late *handled* ends the round all the same, as long as
    /// nobody else has the message.
    package mutating func answerTimerFired() -> [Action] {
        guard case .delegates(let pending, let handled) = state else { return [] }
        late.formUnion(pending)
        return settle(pending: [], handled: handled)
    }

    /// A delegate appeared: it gets the message while that waits for the extension, or if the extension dies of it.
    package mutating func delegateAppeared(_ session: String) -> [Action] {
        switch state {
        case .waitingForExtension: return offer(to: [session])
        case .inExtension:
            newcomers.append(session)
            return []
        case .idle, .delegates, .closed: return []
        }
    }

    /// True when the extension is to be called now; the message is then in its hands.
    package mutating func extensionTakes() -> Bool {
        guard state == .waitingForExtension, pause == .zero else { return false }
        state = .inExtension
        return true
    }

    package mutating func extensionHandled() -> [Action] { endInExtension(.handled) }
    package mutating func extensionLacksMethod() -> [Action] { endInExtension(.notImplemented) }

    package mutating func extensionDied() -> [Action] {
        guard state == .inExtension else { return [] }
        deaths += 1
        guard deaths < PolicyNumbers.deliveriesMax else { return endInExtension(.givenUp) }
        pause = PolicyNumbers.redeliveryPause(afterDeaths: deaths)
        let sessions = newcomers
        newcomers = []
        return [.setRedeliveryTimer(after: pause)] + offer(to: sessions)
    }

    /// The extension may be tried (again).
    package mutating func redeliveryTimerFired() -> [Action] {
        pause = .zero
        return state == .waitingForExtension ? [.callExtension] : []
    }

    private mutating func offer(to sessions: [String]) -> [Action] {
        guard !sessions.isEmpty else { return wake() }
        state = .delegates(pending: Set(sessions), handled: false)
        return [.send(to: sessions), .setAnswerTimer]
    }

    private mutating func settle(pending: Set<String>, handled: Bool) -> [Action] {
        guard pending.isEmpty else {
            state = .delegates(pending: pending, handled: handled)
            return []
        }
        if handled {
            state = .closed
            return [.close(.handled)]
        }
        return wake()
    }

    /// The extension's turn, at once or when the pause is over.
    private mutating func wake() -> [Action] {
        state = .waitingForExtension
        return pause > .zero ? [] : [.callExtension]
    }

    private mutating func endInExtension(_ outcome: Outcome) -> [Action] {
        guard state == .inExtension else { return [] }
        state = .closed
        return [.close(outcome)]
    }
}
