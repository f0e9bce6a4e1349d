// Challenges: a server asks who asks, somebody of the app says, and the download goes on or ends.
//
// A download whose server asks has no transfer: no slot, no connection. It waits in the queue with the reason `challenge`,
// and an answer lets it start again. Questions and credentials live in memory; after the service's death the download is
// simply started, and the server asks again.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore

/// One question on its way.
struct OpenChallenge {
    let record: DownloadRecord
    let question: ChallengeLife.Question
    /// Tells it from another question of the same download.
    let serial: Int64
    var round = ChallengeRound()
    /// The event's number in each session that got it.
    var numbers: [String: Int64] = [:]
    var timer: TimerToken?
}

extension AssetsService {
    // MARK: From transfers

    /// What an attempt of this download may answer by itself.
    func authentication(for record: DownloadRecord) -> TransferAuthentication {
        let life = challengeLives[record.id] ?? ChallengeLife()
        let known = life.credentials(with: credentialMemory(of: record.app))
        guard !known.isEmpty else { return TransferAuthentication() }
        let nonce = [seams.random.next(), seams.random.next()].map { String($0, radix: 16) }.joined()
        return TransferAuthentication(credentials: known, clientNonce: nonce)
    }

    func credentialMemory(of app: String) -> CredentialMemory { credentials[app] ?? CredentialMemory() }

    /// A server was content with a credential: others may have it too, and some may only be waiting for it.
    func authenticated(_ entry: SpaceCredential, of id: String) {
        guard let record = running[id]?.record else { return }
        let app = record.app
        let isKnown = credentialMemory(of: app).entry(of: entry.space)?.credential == entry.credential
        guard isKnown || challengeLives[id]?.mayShare(entry) == true else { return }
        credentials[app, default: CredentialMemory()].remember(entry)
        for open in challengesInOrder where open.record.app == app {
            let other = open.record.id
            guard challengeLives[other]?.canTry(credentialMemory(of: app)) == true else { continue }
            closeChallenge(other)
            launch { await $0.goOn(other) }
        }
    }

    /// An attempt ended with a challenge. The step is taken once the transfer has let go of the download.
    func met(_ challenge: ServerChallenge, _ record: DownloadRecord) -> ChallengeLife.Step {
        guard apps[record.app] != nil else {
            let why = "the server answered 401: an app's archive is fetched without a credential"
            return .fail(
                DownloadFailure(domain: .url, code: URLErrorCode.userAuthenticationRequired, reason: why), .challenge)
        }
        for entry in challenge.refused { credentials[record.app]?.forget(entry) }
        var life = challengeLives[record.id] ?? ChallengeLife()
        let step = life.met(challenge, credentialMemory(of: record.app))
        challengeLives[record.id] = life
        return step
    }

    /// Does what the rule says about a download that has no transfer.
    func take(_ step: ChallengeLife.Step, _ record: DownloadRecord) async {
        switch step {
        case .ask(let question): await ask(question, record)
        case .tryAgain: await goOn(record.id)
        case .fail(let failure, let reason):
            await fail(record, failure, reason, isRunning: false)
            closeChallenge(record.id)
            invalidateQueue()
        }
    }

    // MARK: The question

    private func ask(_ question: ChallengeLife.Question, _ record: DownloadRecord) async {
        closeChallenge(record.id)
        let open = OpenChallenge(record: record, question: question, serial: nextEventNumber)
        nextEventNumber += 1
        // From here on the queue leaves it alone.
        challenges[record.id] = open
        let detail = "\(question.space.shown) asks for a credential"
        let failures = question.previousFailures > 0 ? ", refused so far: \(question.previousFailures)" : ""
        journal(.challengeAsked, .challenge, app: record.app, download: record.id, question.space.shown + failures)
        let isSaved = await save(
            [
                .setDownloadWait(
                    id: record.id, notBefore: nil, reason: .challenge, detail: detail, retry: record.retry,
                    attempts: record.attempts)
            ], of: record.id, isRunning: false)
        guard challenges[record.id]?.serial == open.serial else { return }
        guard isSaved == .done else { return forgetChallenges(of: record.id) }
        let sessions = delegateSessions(of: record.app)
        let patience = max(.zero, startedAt + PolicyNumbers.reconnectTime - seams.loop.now)
        changeChallenge(record.id) { $0.begin(sessions: sessions, patience: patience) }
    }

    /// Questions that are open now.
    package var openChallenges: Int { challenges.count }

    var challengesInOrder: [OpenChallenge] { challenges.values.sorted { $0.record.sequence < $1.record.sequence } }

    /// Asks the rule of a question and performs what it says.
    func changeChallenge(_ id: String, _ event: (inout ChallengeRound) -> [ChallengeRound.Action]) {
        guard var open = challenges[id] else { return }
        let actions = event(&open.round)
        challenges[id]?.round = open.round
        for action in actions { perform(action, open) }
        noteExtensionBusy(open.record.app)
    }

    private func perform(_ action: ChallengeRound.Action, _ open: OpenChallenge) {
        let id = open.record.id
        switch action {
        case .send(let sessions):
            for session in sessions {
                let number = nextEventNumber
                nextEventNumber += 1
                challenges[id]?.numbers[session] = number
                self.sessions[session]?.send(.challenge(open.record, open.question, number: number))
            }
        case .setAnswerTimer:
            setTimer(of: id, after: PolicyNumbers.challengeLimit) { service in
                service.journal(
                    .challengeTimedOut, .timeout, app: open.record.app, download: id,
                    "no delegate answered within \(PolicyNumbers.challengeLimit.shown)")
                service.changeChallenge(id) { $0.answerTimerFired() }
            }
        case .callExtension: callExtension(of: open.record.app, .challenge(id))
        case .setRedeliveryTimer(let delay):
            setTimer(of: id, after: delay) { $0.changeChallenge(id) { $0.redeliveryTimerFired() } }
        case .close(let outcome): ended(open, outcome)
        }
    }

    private func setTimer(
        of id: String, after delay: Duration, _ body: @escaping @Sendable (isolated AssetsService) -> Void
    ) {
        if let timer = challenges[id]?.timer { seams.loop.cancel(timer) }
        challenges[id]?.timer = seams.loop.schedule(after: delay) {
            self.assumeIsolated { service in
                service.challenges[id]?.timer = nil
                body(service)
            }
        }
    }

    /// Forgets a question; whoever still answers it says nothing new.
    func closeChallenge(_ id: String) {
        guard let open = challenges.removeValue(forKey: id) else { return }
        if let timer = open.timer { seams.loop.cancel(timer) }
        activityChanged?()
    }

    // MARK: The answer

    /// A delegate says what to do; nil when it has no method for it.
    package func answerChallenge(
        session id: String, app: String, number: Int64, _ disposition: ChallengeDisposition?
    ) throws(AssetsError) {
        try check(session: id, app: app)
        guard let open = challenges.values.first(where: { $0.numbers[id] == number }) else { return }
        if disposition == nil {
            journal(
                .challengeAnswered, .notHandled, app: app, download: open.record.id,
                "the delegate has no method for it")
        }
        changeChallenge(open.record.id) { $0.answer(session: id, disposition) }
    }

    /// The extension's turn.
    func askExtension(_ appID: String, challenge id: String) async {
        guard let app = apps[appID], var open = challenges[id] else { return }
        let takes = open.round.extensionTakes()
        challenges[id]?.round = open.round
        guard takes else { return }
        let entry = EntryPoint.challenge(open.record.request, open.question)
        let outcome = await call(entry, of: app, limit: PolicyNumbers.challengeLimit)
        // What it says of another question, or too late, changes nothing.
        guard challenges[id]?.serial == open.serial else { return }
        changeChallenge(id) { round in
            switch outcome {
            case .answered(let disposition): round.extensionAnswered(disposition)
            case .notImplemented: round.extensionLacksMethod()
            case .died(.timeout, _): round.extensionTimedOut()
            case .died, .handled, .downloads: round.extensionDied()
            }
        }
    }

    private func ended(_ open: OpenChallenge, _ outcome: ChallengeRound.Outcome) {
        let record = open.record
        var life = challengeLives[record.id] ?? ChallengeLife()
        let step: ChallengeLife.Step
        switch outcome {
        case .answered(let disposition):
            journal(.challengeAnswered, .none, app: record.app, download: record.id, disposition.shown)
            step = life.answer(disposition, credentialMemory(of: record.app))
        case .notImplemented:
            journal(
                .challengeAnswered, .notImplemented, app: record.app, download: record.id,
                "neither app nor extension has a method for it")
            step = life.unanswered("neither app nor extension has a method for the challenge")
        case .timedOut:
            journal(
                .challengeTimedOut, .timeout, app: record.app, download: record.id,
                "nobody answered within \(PolicyNumbers.challengeLimit.shown)")
            step = life.unanswered("nobody answered the challenge in time")
        case .givenUp:
            journal(
                .challengeTimedOut, .crash, app: record.app, download: record.id,
                "the extension died in the callback \(PolicyNumbers.challengeCallsMax) times")
            step = life.unanswered("the extension died in the callback \(PolicyNumbers.challengeCallsMax) times")
        }
        challengeLives[record.id] = life
        if let timer = challenges[record.id]?.timer { seams.loop.cancel(timer) }
        challenges[record.id]?.timer = nil
        launch { service in
            guard service.challenges[record.id]?.serial == open.serial else { return }
            await service.take(step, record)
        }
    }

    // MARK: Back to the queue

    /// Starts the download again, as it is by now.
    func goOn(_ id: String) async {
        guard var record = try? await downloadRecord(id: id), case .waiting = record.state else {
            return closeChallenge(id)
        }
        let isSaved = await save(
            [
                .setDownloadWait(
                    id: id, notBefore: nil, reason: .none, detail: "", retry: record.retry, attempts: record.attempts)
            ], of: id, isRunning: false)
        closeChallenge(id)
        guard isSaved == .done, !leaving.contains(id) else { return }
        (record.reason, record.detail) = (.none, "")
        // Others of the app may have been left out while too many asked.
        invalidateQueue()
        enqueue(record)
    }

    /// The download has ended, or is being removed: its questions and its own credentials go.
    func forgetChallenges(of id: String) {
        closeChallenge(id)
        challengeLives[id] = nil
    }

    /// True while so many of the app's downloads ask that the next would only ask as well.
    func isHeldByChallenges(_ app: String) -> Bool {
        challenges.values.reduce(0) { $0 + ($1.record.app == app ? 1 : 0) } >= PolicyNumbers.openChallengesMax
    }

    private func invalidateQueue() {
        queue.invalidate()
        pumpSoon()
    }
}
