// The rule of exclusive control: app and extension of one app take turns.

/// First come, first served; at most one holder.
package struct ExclusiveControl: Hashable, Sendable {
    package struct Request: Hashable, Sendable {
        package var ticket: Int64
        /// The session that asked.
        package var session: String
        /// Process clock; nil waits without limit.
        package var deadline: Duration?
        package init(ticket: Int64, session: String, deadline: Duration?) {
            self.ticket = ticket
            self.session = session
            self.deadline = deadline
        }
    }

    package enum Action: Hashable, Sendable {
        case grant(ticket: Int64, session: String)
        case refuse(ticket: Int64, session: String)
        /// Ask again with `expire` then.
        case setTimer(at: Duration)
    }

    private var holder: Request?
    private var waiting: [Request] = []

    package init() {}

    package var isFree: Bool { holder == nil && waiting.isEmpty }

    /// `now` on the process clock. A deadline that has come tries once.
    package mutating func acquire(_ request: Request, at now: Duration) -> [Action] {
        guard holder != nil else {
            holder = request
            return [.grant(ticket: request.ticket, session: request.session)]
        }
        if let deadline = request.deadline, deadline <= now {
            return [.refuse(ticket: request.ticket, session: request.session)]
        }
        waiting.append(request)
        return request.deadline.map { [.setTimer(at: $0)] } ?? []
    }

    /// The holder is done, or somebody stopped waiting.
    package mutating func release(ticket: Int64, session: String) -> [Action] {
        if holder?.ticket == ticket, holder?.session == session { return grantNext() }
        waiting.removeAll { $0.ticket == ticket && $0.session == session }
        return []
    }

    /// The session's process is gone: what it holds is free, what it waits for is forgotten.
    package mutating func end(session: String) -> [Action] {
        waiting.removeAll { $0.session == session }
        return holder?.session == session ? grantNext() : []
    }

    package mutating func expire(at now: Duration) -> [Action] {
        let late = waiting.filter { $0.isDue(at: now) }
        waiting.removeAll { $0.isDue(at: now) }
        return late.map { .refuse(ticket: $0.ticket, session: $0.session) }
    }

    private mutating func grantNext() -> [Action] {
        guard !waiting.isEmpty else {
            holder = nil
            return []
        }
        let next = waiting.removeFirst()
        holder = next
        return [.grant(ticket: next.ticket, session: next.session)]
    }
}

extension ExclusiveControl.Request {
    fileprivate func isDue(at now: Duration) -> Bool { deadline.map { $0 <= now } ?? false }
}
