import AssetsModel
import Testing

@Suite("The delivery of a message")
struct DeliveryRoundTests {
    @Test("Without a delegate the extension is called")
    func noDelegate() {
        var round = DeliveryRound()
        #expect(round.begin(sessions: []) == [.callExtension])
        #expect(round.extensionTakes() == true)
        #expect(round.extensionHandled() == [.close(.handled)])
        #expect(round.isClosed)
    }

    @Test("Every connected delegate gets it, and one that handles it is enough")
    func severalDelegates() {
        var round = DeliveryRound()
        #expect(round.begin(sessions: ["app", "extension"]) == [.send(to: ["app", "extension"]), .setAnswerTimer])
        #expect(round.answer(session: "app", handled: true) == [])
        // The file lives until all receivers have answered.
        #expect(!round.isClosed)
        #expect(round.answer(session: "extension", handled: false) == [.close(.handled)])
    }

    @Test("When no delegate handles it the extension is woken", arguments: [true, false])
    func nobodyHandles(byDeath: Bool) {
        var round = DeliveryRound()
        _ = round.begin(sessions: ["app"])
        let actions = byDeath ? round.sessionEnded("app") : round.answer(session: "app", handled: false)
        #expect(actions == [.callExtension])
    }

    @Test("A delegate that never answers counts as one that does not handle it")
    func silence() {
        var round = DeliveryRound()
        _ = round.begin(sessions: ["silent"])
        #expect(round.answerTimerFired() == [.callExtension])
        #expect(round.answerTimerFired() == [])
        #expect(round.extensionTakes() == true)
        // Its late answer changes nothing: the extension has the message.
        #expect(round.answer(session: "silent", handled: true) == [])
        #expect(round.extensionHandled() == [.close(.handled)])
    }

    @Test("A delegate that was late has handled the message, unless somebody else has it by then")
    func late() {
        var round = DeliveryRound()
        _ = round.begin(sessions: ["late", "mute", "gone"])
        #expect(round.answer(session: "gone", handled: false) == [])
        #expect(round.answerTimerFired() == [.callExtension])
        #expect(round.answer(session: "gone", handled: true) == [])
        #expect(round.answer(session: "late", handled: false) == [])
        #expect(round.answer(session: "late", handled: true) == [])
        #expect(round.answer(session: "mute", handled: true) == [.close(.handled)])
        #expect(round.extensionTakes() == false)

        var other = DeliveryRound()
        _ = other.begin(sessions: ["late"])
        _ = other.answerTimerFired()
        #expect(other.delegateAppeared("new") == [.send(to: ["new"]), .setAnswerTimer])
        #expect(other.answer(session: "late", handled: true) == [])
        #expect(other.answer(session: "new", handled: false) == [.close(.handled)])
    }

    @Test("While it waits for the extension a new delegate gets it instead; once handled nobody does")
    func lateDelegate() {
        var round = DeliveryRound()
        _ = round.begin(sessions: [])
        #expect(round.delegateAppeared("app") == [.send(to: ["app"]), .setAnswerTimer])
        #expect(round.extensionTakes() == false)
        #expect(round.answer(session: "app", handled: true) == [.close(.handled)])
        #expect(round.delegateAppeared("other") == [])
    }

    @Test("When the extension dies of it, delegates that have appeared meanwhile get it without a pause")
    func newcomers() {
        var round = DeliveryRound()
        _ = round.begin(sessions: ["before"])
        #expect(round.answer(session: "before", handled: false) == [.callExtension])
        #expect(round.extensionTakes() == true)
        for session in ["app", "gone"] { #expect(round.delegateAppeared(session) == []) }
        #expect(round.sessionEnded("gone") == [])
        let pause = PolicyNumbers.redeliveryPause(afterDeaths: 1)
        #expect(
            round.extensionDied() == [.setRedeliveryTimer(after: pause), .send(to: ["app"]), .setAnswerTimer])
        #expect(round.stage == .withDelegates && round.deaths == 1)
        var other = round
        #expect(round.answer(session: "app", handled: true) == [.close(.handled)])
        // Nobody is asked twice.
        #expect(other.answer(session: "app", handled: false) == [])
        #expect(other.stage == .pausing && other.redeliveryTimerFired() == [.callExtension])
        #expect(other.extensionTakes() == true)
        #expect(other.extensionDied() == [.setRedeliveryTimer(after: PolicyNumbers.redeliveryPause(afterDeaths: 2))])
    }

    @Test("A message in the extension's hands is given to nobody else")
    func inExtension() {
        var round = DeliveryRound()
        _ = round.begin(sessions: [])
        #expect(round.extensionTakes() == true)
        #expect(round.delegateAppeared("app") == [])
        #expect(round.extensionTakes() == false)
    }

    @Test("Not implemented is final")
    func notImplemented() {
        var round = DeliveryRound()
        _ = round.begin(sessions: [])
        _ = round.extensionTakes()
        #expect(round.extensionLacksMethod() == [.close(.notImplemented)])
    }

    @Test("Death in the callback is tried again with growing pauses, and given up in the end")
    func deaths() {
        var round = DeliveryRound()
        _ = round.begin(sessions: [])
        var pauses: [Duration] = []
        for number in 1..<PolicyNumbers.deliveriesMax {
            #expect(round.extensionTakes() == true)
            guard case .setRedeliveryTimer(let pause) = round.extensionDied().first else {
                Issue.record("no pause after death \(number)")
                return
            }
            pauses.append(pause)
            #expect(round.deaths == number && round.stage == .pausing)
            // Not before the pause is over.
            #expect(round.extensionTakes() == false)
            #expect(round.redeliveryTimerFired() == [.callExtension])
            #expect(round.stage == .waitingForExtension)
        }
        #expect(round.extensionTakes() == true)
        #expect(round.extensionDied() == [.close(.givenUp)])
        #expect(pauses.first == PolicyNumbers.redeliveryPauseMin && pauses.last == PolicyNumbers.redeliveryPauseMax)
        #expect(zip(pauses, pauses.dropFirst()).allSatisfy { $0 < $1 })
        // Long enough for what passes, and an end on the same day.
        #expect((Duration.seconds(3600)...Duration.seconds(4 * 3600)).contains(pauses.reduce(.zero, +)))
    }

    @Test("Deaths that another service has counted count, and what is left of the pause is waited for")
    func countedBefore() {
        var round = DeliveryRound(deaths: PolicyNumbers.deliveriesMax - 1, pause: .seconds(7))
        #expect(round.begin(sessions: []) == [.setRedeliveryTimer(after: .seconds(7))])
        #expect(round.extensionTakes() == false)
        #expect(round.redeliveryTimerFired() == [.callExtension])
        #expect(round.extensionTakes() == true)
        #expect(round.extensionDied() == [.close(.givenUp)])

        // A pause that is over is none.
        var late = DeliveryRound(deaths: 1, pause: .seconds(-3))
        #expect(late.begin(sessions: []) == [.callExtension])
    }

    @Test("Delegates do not wait for the pause; when they do not handle it, the extension still does")
    func delegateInPause() {
        var round = DeliveryRound(deaths: 1, pause: .seconds(7))
        #expect(
            round.begin(sessions: ["app"]) == [
                .setRedeliveryTimer(after: .seconds(7)), .send(to: ["app"]), .setAnswerTimer,
            ])
        #expect(round.stage == .withDelegates)
        #expect(round.answer(session: "app", handled: false) == [])
        #expect(round.delegateAppeared("other") == [.send(to: ["other"]), .setAnswerTimer])
        // The pause ends while the other one has it.
        #expect(round.redeliveryTimerFired() == [])
        #expect(round.answer(session: "other", handled: false) == [.callExtension])
    }

    @Test("Random histories close exactly once", arguments: 0..<200)
    func randomHistories(seed: Int) {
        var random = SplitMix(seed: UInt64(seed))
        var round = DeliveryRound()
        var closings = 0
        for _ in 0..<60 {
            let session = "session \(random.next() % 3)"
            let actions: [DeliveryRound.Action]
            switch random.next() % 9 {
            case 0: actions = round.begin(sessions: random.next() % 2 == 0 ? [] : [session])
            case 1: actions = round.answer(session: session, handled: random.next() % 2 == 0)
            case 2: actions = round.sessionEnded(session)
            case 3: actions = round.answerTimerFired()
            case 4: actions = round.delegateAppeared(session)
            case 5: actions = round.extensionTakes() && random.next() % 2 == 0 ? round.extensionHandled() : []
            case 6: actions = round.extensionDied()
            case 7: actions = round.redeliveryTimerFired()
            default: actions = round.extensionLacksMethod()
            }
            let wasClosed = closings > 0
            closings += actions.filter { if case .close = $0 { true } else { false } }.count
            #expect(!wasClosed || actions.isEmpty)
        }
        #expect(closings <= 1)
        #expect(round.isClosed == (closings == 1))
    }
}
