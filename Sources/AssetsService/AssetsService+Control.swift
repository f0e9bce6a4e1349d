// Exclusive control of an app's processes: tickets, grants, and who keeps the others waiting.
package import AssetsModel
internal import AssetsOS

/// One app's exclusive control, while anybody has it or wants it.
struct SharedControl {
    var rule = ExclusiveControl()
    /// Not later than the rule has something to say; in process time.
    var timer: (token: TimerToken, at: Duration)?
}

extension AssetsService {
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
        let holder = controls[app]?.rule.holder
        let actions = controls[app, default: SharedControl()].rule.acquire(request, at: now)
        noteExtensionBusy(app)
        if actions == [.grant(ticket: ticket, session: id)] { return (ticket, true) }
        if actions.isEmpty, let holder {
            let who = "\(described(holder.session)) has had it for \((now - holder.since).shown)"
            journal(.controlWaits, .control, app: app, "ticket \(ticket) of \(described(id)): \(who)")
        }
        // The ticket has to reach the caller before its refusal does.
        perform { $0.performControl(actions, app: app) }
        return (ticket, false)
    }

    package func releaseControl(session id: String, app: String, ticket: Int64) throws(AssetsError) {
        try check(session: id, app: app)
        let actions = controls[app]?.rule.release(ticket: ticket, session: id, at: seams.loop.now)
        performControl(actions ?? [], app: app)
    }

    /// The session's process is gone.
    func endControl(of session: ManagerSession) {
        let actions = controls[session.app]?.rule.end(session: session.id, at: seams.loop.now)
        performControl(actions ?? [], app: session.app)
    }

    /// True while the app's extension has exclusive control or waits for it: then it is neither suspended nor ended.
    package func isAwakeForControl(_ app: String) -> Bool {
        controls[app]?.rule.concerns { sessions[$0]?.isExtension == true } ?? false
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
            case .tell(let holder, let waiting):
                let since = (seams.loop.now - holder.since).shown
                journal(
                    .controlHeld, .control, app: app,
                    "ticket \(holder.ticket): \(described(holder.session)) has exclusive control for \(since), and "
                        + "\(waiting) \(waiting == 1 ? "waits" : "wait") for it; its end, or that of its process, "
                        + "releases it")
            }
        }
        if controls[app]?.rule.isFree == true { forgetControl(of: app) } else { armControlTimer(of: app) }
        noteExtensionBusy(app)
    }

    private func forgetControl(of app: String) {
        if let timer = controls.removeValue(forKey: app)?.timer { seams.loop.cancel(timer.token) }
    }

    /// One timer for each app. Control may change hands a thousand times before it fires, so it may fire for nothing.
    private func armControlTimer(of app: String) {
        guard let control = controls[app], let due = control.rule.due else { return }
        if let timer = control.timer {
            guard due < timer.at else { return }
            seams.loop.cancel(timer.token)
        }
        let token = seams.loop.schedule(at: due) { self.assumeIsolated { $0.controlTimerFired(of: app) } }
        controls[app]?.timer = (token, due)
    }

    private func controlTimerFired(of app: String) {
        controls[app]?.timer = nil
        let actions = controls[app]?.rule.expire(at: seams.loop.now)
        performControl(actions ?? [], app: app)
    }

    /// How an app's exclusive control stands.
    func control(of app: String, _ view: Standing.ExtensionView) -> Standing {
        let holder = controls[app]?.rule.holder.map { (party($0.session), since: seams.loop.now - $0.since) }
        let waiting = controls[app]?.rule.waiting.map { party($0.session) } ?? []
        return .control(holder: holder, waiting: waiting, view, at: calendarNow)
    }

    private func party(_ session: String) -> Standing.Party {
        Standing.Party(isExtension: sessions[session]?.isExtension == true, process: sessions[session]?.process)
    }

    /// Who a session is, for people.
    private func described(_ session: String) -> String { party(session).name }
}
