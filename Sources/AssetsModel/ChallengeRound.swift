// The rule of challenges: who is asked, and whose answer counts.

/// The way of one challenge: first to every delegate that is connected at that moment, then to the extension.
///
/// The first explicit disposition wins, from whomever it comes; the others are not waited for. Silence ends by itself.
package struct ChallengeRound: Hashable, Sendable {
    private enum State: Hashable, Sendable {
        case idle
        /// Sessions that have not said anything.
        case delegates(pending: Set<String>)
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

    /// How the challenge ended.
    package enum Outcome: Hashable, Sendable {
        case answered(ChallengeDisposition)
        /// Neither a delegate nor the extension has a method for it.
        case notImplemented
        /// Those who have one said nothing in time.
        case timedOut
        /// The extension died in the callback every time.
        case givenUp
    }

    private var state: State = .idle
    private var deaths = 0
    /// Sessions that got it: a late answer of theirs still counts while there is no other.
    private var asked: Set<String> = []
    /// Somebody was silent for too long.
    private var hasTimedOut = false

    package init() {}

    package var isClosed: Bool { state == .closed }

    /// True while the session has the challenge and has said nothing.
    package func isAwaited(_ session: String) -> Bool {
        if case .delegates(let pending) = state { pending.contains(session) } else { false }
    }

    /// - Parameters:
    ///   - sessions: Those with a delegate, in the order they connected.
    ///   - patience: How long a delegate may yet appear before the extension is called, where there is none.
    package mutating func begin(sessions: [String], patience: Duration = .zero) -> [Action] {
        guard state == .idle else { return [] }
        guard sessions.isEmpty, patience > .zero else { return offer(to: sessions) }
        state = .waitingForExtension
        return [.setRedeliveryTimer(after: patience)]
    }

    /// `disposition` nil: the delegate has no method for it.
    package mutating func answer(session: String, _ disposition: ChallengeDisposition?) -> [Action] {
        guard asked.contains(session), state != .closed else { return [] }
        if let disposition { return close(.answered(disposition)) }
        return withdraw(session)
    }

    /// The session's process is gone, or its delegate is.
    package mutating func sessionEnded(_ session: String) -> [Action] {
        let actions = withdraw(session)
        asked.remove(session)
        return actions
    }

    /// Nobody is waited for longer than the challenge's limit.
    package mutating func answerTimerFired() -> [Action] {
        guard case .delegates = state else { return [] }
        hasTimedOut = true
        state = .waitingForExtension
        return [.callExtension]
    }

    /// A delegate appeared while the challenge waits for the extension.
    package mutating func delegateAppeared(_ session: String) -> [Action] {
        guard state == .waitingForExtension, !asked.contains(session) else { return [] }
        return offer(to: [session])
    }

    /// True when the extension is to be called now.
    package mutating func extensionTakes() -> Bool {
        guard state == .waitingForExtension else { return false }
        state = .inExtension
        return true
    }

    package mutating func extensionAnswered(_ disposition: ChallengeDisposition) -> [Action] {
        state == .inExtension ? close(.answered(disposition)) : []
    }

    package mutating func extensionLacksMethod() -> [Action] {
        state == .inExtension ? close(hasTimedOut ? .timedOut : .notImplemented) : []
    }

    /// It did not answer in time; asking again would take as long again.
    package mutating func extensionTimedOut() -> [Action] {
        state == .inExtension ? close(.timedOut) : []
    }

    package mutating func extensionDied() -> [Action] {
        guard state == .inExtension else { return [] }
        deaths += 1
        guard deaths < PolicyNumbers.challengeCallsMax else { return close(.givenUp) }
        state = .waitingForExtension
        return [.setRedeliveryTimer(after: PolicyNumbers.challengePause * (1 << (deaths - 1)))]
    }

    /// The extension may be tried (again).
    package mutating func redeliveryTimerFired() -> [Action] {
        state == .waitingForExtension ? [.callExtension] : []
    }

    private mutating func offer(to sessions: [String]) -> [Action] {
        guard !sessions.isEmpty else {
            state = .waitingForExtension
            return [.callExtension]
        }
        asked.formUnion(sessions)
        state = .delegates(pending: Set(sessions))
        return [.send(to: sessions), .setAnswerTimer]
    }

    private mutating func withdraw(_ session: String) -> [Action] {
        guard case .delegates(var pending) = state, pending.remove(session) != nil else { return [] }
        guard pending.isEmpty else {
            state = .delegates(pending: pending)
            return []
        }
        state = .waitingForExtension
        return [.callExtension]
    }

    private mutating func close(_ outcome: Outcome) -> [Action] {
        state = .closed
        return [.close(outcome)]
    }
}
