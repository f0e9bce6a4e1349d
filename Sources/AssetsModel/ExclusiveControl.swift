// The rule of exclusive control: app and extension of one app take turns.

/// First come, first served; at most one holder. Times are of the process clock.
package struct ExclusiveControl: Hashable, Sendable {
    package struct Request: Hashable, Sendable {
        package var ticket: Int64
        /// The session that asked.
        package var session: String
        /// nil waits without limit.
        package var deadline: Duration?
        package init(ticket: Int64, session: String, deadline: Duration?) {
            self.ticket = ticket
            self.session = session
            self.deadline = deadline
        }
    }

    package struct Holder: Hashable, Sendable {
        package var ticket: Int64
        package var session: String
        package var since: Duration
        /// It was told of already that others wait for it.
        fileprivate var isTold = false
    }

    package enum Action: Hashable, Sendable {
        case grant(ticket: Int64, session: String)
        case refuse(ticket: Int64, session: String)
        /// People should know who keeps the others waiting.
        case tell(Holder, waiting: Int)
    }

    package private(set) var holder: Holder?
    /// Who waits for it, the first one first.
    package private(set) var waiting: [Request] = []

    package init() {}

    package var isFree: Bool { holder == nil && waiting.isEmpty }

    /// True when one of these sessions has control or waits for it.
    package func concerns(_ isMeant: (_ session: String) -> Bool) -> Bool {
        holder.map { isMeant($0.session) } ?? false || waiting.contains { isMeant($0.session) }
    }

    /// `now` on the process clock. A deadline that has come tries once.
    package mutating func acquire(_ request: Request, at now: Duration) -> [Action] {
        guard holder != nil else {
            holder = Holder(ticket: request.ticket, session: request.session, since: now)
            return [.grant(ticket: request.ticket, session: request.session)]
        }
        if let deadline = request.deadline, deadline <= now {
            return [.refuse(ticket: request.ticket, session: request.session)]
        }
        waiting.append(request)
        return []
    }

    /// The holder is done, or somebody stopped waiting.
    package mutating func release(ticket: Int64, session: String, at now: Duration) -> [Action] {
        if holder?.ticket == ticket, holder?.session == session { return grantNext(at: now) }
        waiting.removeAll { $0.ticket == ticket && $0.session == session }
        return []
    }

    /// The session's process is gone: what it holds is free, what it waits for is forgotten.
    package mutating func end(session: String, at now: Duration) -> [Action] {
        waiting.removeAll { $0.session == session }
        return holder?.session == session ? grantNext(at: now) : []
    }

    /// When `expire` has something to say, as things are now; nil when it never will.
    package var due: Duration? {
        let patience = holder.flatMap { $0.isTold || waiting.isEmpty ? nil : $0.since + PolicyNumbers.controlPatience }
        return (waiting.compactMap(\.deadline) + [patience].compactMap(\.self)).min()
    }

    package mutating func expire(at now: Duration) -> [Action] {
        let late = waiting.filter { $0.isDue(at: now) }
        waiting.removeAll { $0.isDue(at: now) }
        return late.map { .refuse(ticket: $0.ticket, session: $0.session) } + complaint(at: now)
    }

    private mutating func grantNext(at now: Duration) -> [Action] {
        guard !waiting.isEmpty else {
            holder = nil
            return []
        }
        let next = waiting.removeFirst()
        holder = Holder(ticket: next.ticket, session: next.session, since: now)
        return [.grant(ticket: next.ticket, session: next.session)]
    }

    /// Says once of each holder that it keeps others waiting.
    private mutating func complaint(at now: Duration) -> [Action] {
        guard let holder, !holder.isTold, !waiting.isEmpty, now - holder.since >= PolicyNumbers.controlPatience else {
            return []
        }
        self.holder?.isTold = true
        return [.tell(holder, waiting: waiting.count)]
    }
}

extension ExclusiveControl.Request {
    fileprivate func isDue(at now: Duration) -> Bool { deadline.map { $0 <= now } ?? false }
}
