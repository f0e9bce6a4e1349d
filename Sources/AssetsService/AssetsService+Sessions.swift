// Sessions of app and extension processes: who gets events, and who has exclusive control.
package import AssetsModel
internal import AssetsOS

/// What a session is told.
package enum SessionEvent: Hashable, Sendable {
    case began(DownloadRecord)
    case paused(DownloadRecord)
    /// Bytes since the last one, so far, expected.
    case progress(DownloadRecord, written: Int64, total: Int64, expected: Int64)
    /// `number` names it in the answer; `path` is absolute.
    case finished(DownloadRecord, path: String, number: Int64)
    case failed(DownloadRecord, DownloadFailure, number: Int64)
    case challenge(DownloadRecord, ChallengeLife.Question, number: Int64)
    case controlGranted(ticket: Int64)
    case controlRefused(ticket: Int64)
}

/// One process of an app that listens.
struct ManagerSession {
    let id: String
    let app: String
    let isExtension: Bool
    var hasDelegate = false
    let send: (SessionEvent) -> Void
}

extension AssetsService {
    // MARK: Sessions

    /// Opens a session for a connection that may speak for `app`. `send` is called on the service's executor.
    package func openSession(app: String, isExtension: Bool, send: @escaping @Sendable (SessionEvent) -> Void)
        -> String
    {
        let id = seams.random.uuid()
        sessions[id] = ManagerSession(id: id, app: app, isExtension: isExtension, send: send)
        sessionOrder.append(id)
        return id
    }

    /// The session's process is gone.
    package func closeSession(_ id: String) {
        guard let session = sessions.removeValue(forKey: id) else { return }
        sessionOrder.removeAll { $0 == id }
        performControl(controls[session.app]?.end(session: id) ?? [], app: session.app)
        for round in roundsInOrder where round.record.app == session.app {
            change(round.record.id) { $0.sessionEnded(id) }
        }
        for open in challengesInOrder where open.record.app == session.app {
            changeChallenge(open.record.id) { $0.sessionEnded(id) }
        }
        activityChanged?()
    }

    package func setDelegate(_ isPresent: Bool, session id: String, app: String) throws(AssetsError) {
        try check(session: id, app: app)
        guard sessions[id]?.hasDelegate != isPresent else { return }
        sessions[id]?.hasDelegate = isPresent
        // What was sent to a delegate that is gone is answered all the same: its callback may be running.
        guard isPresent else { return }
        for round in roundsInOrder where round.record.app == app {
            change(round.record.id) { $0.delegateAppeared(id) }
        }
        for open in challengesInOrder where open.record.app == app {
            changeChallenge(open.record.id) { $0.delegateAppeared(id) }
        }
    }

    /// A delegate is done with a finished or failed event.
    package func answer(session id: String, app: String, number: Int64, isHandled: Bool) throws(AssetsError) {
        try check(session: id, app: app)
        guard let round = rounds.values.first(where: { $0.numbers[id] == number }) else { return }
        journal(
            .messageHandled, isHandled ? .none : .notHandled, app: app, download: round.record.id,
            isHandled ? "by a delegate" : "the delegate has no method for it")
        change(round.record.id) { $0.answer(session: id, handled: isHandled) }
    }

    /// Begin, pause and progress: to every delegate that is connected, kept for nobody.
    func tellDelegates(of app: String, _ event: SessionEvent) {
        for id in sessionOrder {
            guard let session = sessions[id], session.app == app, session.hasDelegate else { continue }
            session.send(event)
        }
    }

    func delegateSessions(of app: String) -> [String] {
        sessionOrder.filter { sessions[$0]?.app == app && sessions[$0]?.hasDelegate == true }
    }

    func check(session id: String, app: String) throws(AssetsError) {
        guard sessions[id]?.app == app else {
            throw AssetsError(
                .callerConnectionInvalid, "this session is not open", remedy: "open one with Events on this socket")
        }
    }

    // MARK: Exclusive control

    /// Asks for exclusive control. When it is not granted at once the answer comes as event. `limit` nil waits, zero tries
    /// once.
    package func acquireControl(
        session id: String, app: String, within limit: Duration?
    ) throws(AssetsError) -> (ticket: Int64, isGranted: Bool) {
        try check(session: id, app: app)
        let ticket = nextTicket
        nextTicket += 1
        let now = seams.loop.now
        let request = ExclusiveControl.Request(ticket: ticket, session: id, deadline: limit.map { now + $0 })
        let actions = controls[app, default: ExclusiveControl()].acquire(request, at: now)
        if actions == [.grant(ticket: ticket, session: id)] { return (ticket, true) }
        if actions != [.refuse(ticket: ticket, session: id)] {
            journal(.controlWaits, .control, app: app, "ticket \(ticket), until whoever has it gives it back")
        }
        // The ticket has to reach the caller before its refusal does.
        perform { $0.performControl(actions, app: app) }
        return (ticket, false)
    }

    package func releaseControl(session id: String, app: String, ticket: Int64) throws(AssetsError) {
        try check(session: id, app: app)
        performControl(controls[app]?.release(ticket: ticket, session: id) ?? [], app: app)
    }

    private func performControl(_ actions: [ExclusiveControl.Action], app: String) {
        for action in actions {
            switch action {
            case .grant(let ticket, let session):
                journal(.controlAcquired, .control, app: app, "ticket \(ticket)")
                sessions[session]?.send(.controlGranted(ticket: ticket))
            case .refuse(let ticket, let session):
                journal(.controlRefused, .timeout, app: app, "ticket \(ticket)")
                sessions[session]?.send(.controlRefused(ticket: ticket))
            case .setTimer(let deadline):
                _ = seams.loop.schedule(at: deadline) {
                    self.assumeIsolated { service in
                        let actions = service.controls[app]?.expire(at: service.seams.loop.now) ?? []
                        service.performControl(actions, app: app)
                    }
                }
            }
        }
        if controls[app]?.isFree == true { controls[app] = nil }
    }
}
