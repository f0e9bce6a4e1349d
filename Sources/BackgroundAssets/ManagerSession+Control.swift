// Exclusive control: asking, waiting, giving back.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Dispatch
internal import Foundation

extension ManagerSession {
    /// Asks for exclusive control; the request tells what came of it. Never blocks.
    func acquire(_ request: ControlRequest) {
        work.async { self.ask(for: request) }
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

    /// Gives exclusive control back, off the caller's thread.
    func release(_ lease: ControlLease) async {
        await withCheckedContinuation { continuation in
            answers.async {
                self.release(lease)
                continuation.resume()
            }
        }
    }

    /// On the work queue.
    private func ask(for request: ControlRequest) {
        guard request.isOpen else { return }
        let name: String
        let ticket: Int64
        do {
            (name, ticket) = try inSession { name, wasRepeated in
                (name, try askTicket(for: request, session: name, wasRepeated: &wasRepeated))
            }
        } catch {
            request.finish(.failed(AssetsFailure.error(error)))
            return
        }
        let outcome: (action: ControlTable.Action, strays: [Int64])? = content.withLock { content in
            guard content.stream?.name == name else {
                _ = content.controls.endWithoutTicket()
                return nil
            }
            return content.controls.end(ticket: ticket, request: request)
        }
        guard let outcome else {
            request.finish(
                .failed(AssetsFailure.error(.callerConnectionInvalid, "the connection to the service broke")))
            return
        }
        releaseStrays(outcome.strays, session: name)
        perform(outcome.action, session: name, ticket: ticket)
    }

    private func askTicket(
        for request: ControlRequest, session: String, wasRepeated: inout Bool
    ) throws -> Int64 {
        content.withLock { $0.controls.begin() }
        do {
            return try requests.call(
                ManagerInterface.AcquireControl.self,
                ManagerInterface.AcquireControl.Parameters(session: session, within: request.remainingMilliseconds),
                wasRepeated: &wasRepeated
            ).ticket
        } catch {
            releaseStrays(content.withLock { $0.controls.endWithoutTicket() }, session: session)
            throw error
        }
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
