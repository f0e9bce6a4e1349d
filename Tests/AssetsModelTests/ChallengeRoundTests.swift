// Who is asked about a challenge, and whose answer counts.
import AssetsModel
import Testing

@Suite("The round of a challenge")
struct ChallengeRoundTests {
    @Test("The first explicit disposition wins; nobody else is waited for")
    func first() {
        var round = ChallengeRound()
        #expect(round.begin(sessions: ["app", "extension"]) == [.send(to: ["app", "extension"]), .setAnswerTimer])
        #expect(round.answer(session: "app", .cancel) == [.close(.answered(.cancel))])
        #expect(round.answer(session: "extension", .performDefaultHandling) == [])
        #expect(round.isClosed)
    }

    @Test("A delegate that appears within the patience is asked; after it the extension is")
    func patience() {
        var round = ChallengeRound()
        #expect(round.begin(sessions: [], patience: .seconds(1)) == [.setRedeliveryTimer(after: .seconds(1))])
        var other = round
        #expect(round.delegateAppeared("app") == [.send(to: ["app"]), .setAnswerTimer])
        #expect(round.redeliveryTimerFired() == [])
        #expect(other.redeliveryTimerFired() == [.callExtension])
    }

    @Test("When all say that they have no method, or go, the extension is woken", arguments: [true, false])
    func woken(byDeath: Bool) {
        var round = ChallengeRound()
        _ = round.begin(sessions: ["app", "other"])
        #expect(round.answer(session: "app", nil) == [])
        let actions = byDeath ? round.sessionEnded("other") : round.answer(session: "other", nil)
        #expect(actions == [.callExtension])
        #expect(round.extensionTakes() == true)
        #expect(round.extensionAnswered(.performDefaultHandling) == [.close(.answered(.performDefaultHandling))])
    }

    @Test("Silence ends: of delegates with the extension's turn, of the extension with the default")
    func silence() {
        var round = ChallengeRound()
        _ = round.begin(sessions: ["silent"])
        #expect(round.answerTimerFired() == [.callExtension])
        #expect(round.answerTimerFired() == [])
        #expect(round.extensionTakes() == true)
        #expect(round.extensionTimedOut() == [.close(.timedOut)])
    }

    @Test("A late answer counts while there is no other", arguments: [true, false])
    func late(inExtension: Bool) {
        var round = ChallengeRound()
        _ = round.begin(sessions: ["slow"])
        _ = round.answerTimerFired()
        if inExtension { #expect(round.extensionTakes() == true) }
        #expect(round.answer(session: "slow", .cancel) == [.close(.answered(.cancel))])
        #expect(round.extensionAnswered(.performDefaultHandling) == [])
        #expect(round.answer(session: "stranger", .cancel) == [])
    }

    @Test("A delegate that appears while the extension is waited for is asked instead")
    func appears() {
        var round = ChallengeRound()
        #expect(round.begin(sessions: []) == [.callExtension])
        #expect(round.delegateAppeared("app") == [.send(to: ["app"]), .setAnswerTimer])
        #expect(round.extensionTakes() == false)
        #expect(round.answer(session: "app", nil) == [.callExtension])
        // Once asked it is not asked again.
        #expect(round.delegateAppeared("app") == [])
    }

    @Test("An extension that dies is tried a few times, one without the method once")
    func deaths() {
        var round = ChallengeRound()
        _ = round.begin(sessions: [])
        for number in 1..<PolicyNumbers.challengeCallsMax {
            #expect(round.extensionTakes() == true)
            #expect(round.extensionDied() == [.setRedeliveryTimer(after: .seconds(1 << number))])
            #expect(round.redeliveryTimerFired() == [.callExtension])
        }
        #expect(round.extensionTakes() == true)
        #expect(round.extensionDied() == [.close(.givenUp)])
        var other = ChallengeRound()
        _ = other.begin(sessions: [])
        #expect(other.extensionTakes() == true)
        #expect(other.extensionLacksMethod() == [.close(.notImplemented)])
    }
}
