// Exclusive control: asking, waiting, giving back.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Dispatch
internal import Foundation

extension ManagerSession {
    /// Asks for exclusive control; the request tells what came of it. Never blocks.
    func acquire(_ request: ControlRequest) {
        content.withLock { $0.asks += 1 }
        work.async { self.ask(for: request) }
    }

    /// Asks for exclusive control; where nothing stands in the way, on the caller's thread, which waits for the reply as it
    /// does in all blocking calls. Nobody waits here for whoever holds control.
    func acquireNow(_ request: ControlRequest) {
        if !askNow(for: request) { acquire(request) }
    }

    /// Stops waiting for exclusive control. Never blocks.
    func withdraw(_ request: ControlRequest) {
        guard request.finish(.cancelled) else { return }
        work.async {
            let (ticket, name) = self.content.withLock { ($0.controls.withdraw(request), $0.stream?.name) }
            if let ticket, let name { self.release(ControlLease(session: name, ticket: ticket)) }
        }
    }

    /// Gives exclusive control back and waits until the service has taken it.
    func release(_ lease: ControlLease) {
        // A session that is lost holds nothing any more.
        _ = try? requests.call(
            ManagerInterface.ReleaseControl.self,
            ManagerInterface.ReleaseControl.Parameters(session: lease.session, ticket: lease.ticket))
    }

    /// Gives exclusive control back; where other calls stand in the way, off the caller's thread.
    func release(_ lease: ControlLease) async {
        let parameters = ManagerInterface.ReleaseControl.Parameters(session: lease.session, ticket: lease.ticket)
        // An error is left to the other way, which connects anew.
        if let reply = try? requests.callIfFree(ManagerInterface.ReleaseControl.self, parameters), reply == Nothing() {
            return
        }
        await withCheckedContinuation { continuation in
            answers.async {
                self.release(lease)
                continuation.resume()
            }
        }
    }

    /// False when it has to be asked on the work queue: there is no session yet, others asked before, or the call failed.
    private func askNow(for request: ControlRequest) -> Bool {
        let name: String? = content.withLock { content in
            guard content.asks == 0, let name = content.stream?.name else { return nil }
            content.controls.begin()
            return name
        }
        guard let name else { return false }
        let parameters = ManagerInterface.AcquireControl.Parameters(
            session: name, within: request.remainingMilliseconds)
        guard let reply = try? requests.callIfFree(ManagerInterface.AcquireControl.self, parameters) else {
            releaseStrays(content.withLock { $0.controls.endWithoutTicket() }, session: name)
            return false
        }
        conclude(request, reply, session: name)
        return true
    }

    /// On the work queue.
    private func ask(for request: ControlRequest) {
        let asked = Result {
            try request.isOpen
                ? inSession { name, wasRepeated in
                    (name: name, reply: try askTicket(for: request, session: name, wasRepeated: &wasRepeated))
                } : nil
        }
        // Before the request is told: whoever it lets go on may ask again at once.
        content.withLock { $0.asks -= 1 }
        do {
            guard let (name, reply) = try asked.get() else { return }
            conclude(request, reply, session: name)
        } catch {
            request.finish(.failed(AssetsFailure.error(error)))
        }
    }

    private func askTicket(
        for request: ControlRequest, session: String, wasRepeated: inout Bool
    ) throws -> ManagerInterface.AcquireControl.Reply {
        content.withLock { $0.controls.begin() }
        do {
            return try requests.call(
                ManagerInterface.AcquireControl.self,
                ManagerInterface.AcquireControl.Parameters(session: session, within: request.remainingMilliseconds),
                wasRepeated: &wasRepeated)
        } catch {
            releaseStrays(content.withLock { $0.controls.endWithoutTicket() }, session: session)
            throw error
        }
    }

    /// The ticket has come, and perhaps the grant with it.
    private func conclude(
        _ request: ControlRequest, _ reply: ManagerInterface.AcquireControl.Reply, session: String
    ) {
        let outcome: (action: ControlTable.Action, strays: [Int64])? = content.withLock { content in
            guard content.stream?.name == session else {
                _ = content.controls.endWithoutTicket()
                return nil
            }
            if reply.granted { return content.controls.endGranted(request: request) }
            return content.controls.end(ticket: reply.ticket, request: request)
        }
        guard let outcome else {
            request.finish(
                .failed(AssetsFailure.error(.callerConnectionInvalid, "the connection to the service broke")))
            return
        }
        releaseStrays(outcome.strays, session: session)
        perform(outcome.action, session: session, ticket: reply.ticket)
        // Who withdrew before the ticket was known has not found it.
        guard !request.isOpen, let ticket = content.withLock({ $0.controls.withdraw(request) }) else { return }
        releaseStrays([ticket], session: session)
    }

    func perform(_ action: ControlTable.Action, session: String, ticket: Int64) {
        switch action {
        case .none: break
        case .release(let tickets): releaseStrays(tickets, session: session)
        case .finish(let request, granted: true, _):
            let lease = ControlLease(session: session, ticket: ticket)
            // It may have been cancelled meanwhile.
            if !request.finish(.granted(lease)) { releaseStrays([ticket], session: session) }
        case .finish(let request, granted: false, let reason):
            request.finish(.failed(Self.controlRefusal(reason)))
        }
    }

    private func releaseStrays(_ tickets: [Int64], session: String) {
        guard !tickets.isEmpty else { return }
        answers.async {
            for ticket in tickets { self.release(ControlLease(session: session, ticket: ticket)) }
        }
    }

    private static func controlRefusal(_ reason: String?) -> NSError {
        AssetsFailure.error(
            .downloadInvalid, reason ?? "another process held exclusive control until the date had passed",
            remedy: "try again, or with a later date",
            underlying: NSError(domain: NSPOSIXErrorDomain, code: Int(ETIMEDOUT)))
    }
}
