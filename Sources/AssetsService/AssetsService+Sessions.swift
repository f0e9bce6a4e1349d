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
    /// Its number; nil for an extension.
    let process: Int32?
    var hasDelegate = false
    /// Whether the delegate has a method for progress.
    var hearsProgress = true
    let send: (SessionEvent) -> Void

    func hears(_ event: SessionEvent) -> Bool {
        if case .progress = event { hearsProgress } else { true }
    }
}

extension AssetsService {
    // MARK: Sessions

    /// Opens a session for a connection that may speak for `app`. `send` is called on the service's executor.
    package func openSession(
        app: String, isExtension: Bool, process: Int32? = nil, send: @escaping @Sendable (SessionEvent) -> Void
    ) -> String {
        let id = seams.random.uuid()
        sessions[id] = ManagerSession(id: id, app: app, isExtension: isExtension, process: process, send: send)
        sessionOrder.append(id)
        return id
    }

    /// The session's process is gone.
    package func closeSession(_ id: String) {
        guard let session = sessions.removeValue(forKey: id) else { return }
        sessionOrder.removeAll { $0 == id }
        endControl(of: session)
        for round in roundsInOrder where round.record.app == session.app {
            change(round.record.id) { $0.sessionEnded(id) }
        }
        for open in challengesInOrder where open.record.app == session.app {
            changeChallenge(open.record.id) { $0.sessionEnded(id) }
        }
        activityChanged?()
    }

    /// - Parameter hearsProgress: Whether the delegate has a method for it.
    package func setDelegate(
        _ isPresent: Bool, hearsProgress: Bool = true, session id: String, app: String
    ) throws(AssetsError) {
        try check(session: id, app: app)
        sessions[id]?.hearsProgress = hearsProgress
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
        guard let round = roundsOfEvents[number].flatMap({ rounds[$0] }), round.numbers[id] == number else { return }
        journal(
            .messageHandled, isHandled ? .none : .notHandled, app: app, download: round.record.id,
            isHandled ? "by a delegate" : "the delegate has no method for it")
        change(round.record.id) { $0.answer(session: id, handled: isHandled) }
    }

    /// Begin, pause and progress: to every delegate that is connected and hears it, kept for nobody.
    func tellDelegates(of app: String, _ event: SessionEvent) {
        for id in delegateSessions(of: app) {
            if let session = sessions[id], session.hears(event) { session.send(event) }
        }
    }

    func delegateSessions(of app: String) -> [String] {
        sessionOrder.filter { id in
            guard let session = sessions[id] else { return false }
            return session.app == app && session.hasDelegate && isListening(session)
        }
    }

    func check(session id: String, app: String) throws(AssetsError) {
        guard sessions[id]?.app == app else {
            throw AssetsError(
                .callerConnectionInvalid, "this session is not open", remedy: "open one with Events on this socket")
        }
    }
}
