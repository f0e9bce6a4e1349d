// Requests for exclusive control that wait for the service's word.

internal import AssetsOS
internal import Foundation

/// One request for exclusive control.
final class ControlRequest: Sendable {
    /// What came of it.
    enum Outcome: Sendable {
        case granted(ControlLease)
        case failed(NSError)
        case cancelled

        /// Exclusive control, or why there is none.
        var lease: ControlLease {
            get throws {
                switch self {
                case .granted(let lease): return lease
                case .failed(let error): throw error
                case .cancelled: throw CancellationError()
                }
            }
        }
    }

    /// When to give up: a point of the wall clock, `nil` for never. It travels as the time that remains.
    let deadline: Date?

    private let completion: Guarded<(@Sendable (Outcome) -> Void)?>

    /// - Parameter completion: Runs once, on any thread.
    init(deadline: Date?, completion: @escaping @Sendable (Outcome) -> Void) {
        self.deadline = deadline
        self.completion = Guarded(completion)
    }

    /// Whether nothing has come of it yet.
    var isOpen: Bool { completion.withLock { $0 != nil } }

    /// Ends the request; false when it had ended before.
    @discardableResult
    func finish(_ outcome: Outcome) -> Bool {
        let handler = completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        handler?(outcome)
        return handler != nil
    }

    /// Milliseconds until the deadline as the wire takes them: 0 tries once, `nil` waits without limit.
    var remainingMilliseconds: Int64? {
        guard let deadline else { return nil }
        let milliseconds = (deadline.timeIntervalSinceNow * 1000).rounded(.up)
        // A date that is no number counts as past, one beyond all time waits without limit.
        if milliseconds.isNaN { return 0 }
        guard milliseconds < Self.waitMax else { return nil }
        return milliseconds > 0 ? Int64(milliseconds) : 0
    }

    /// Longer waits count as endless: 10 years, in milliseconds.
    private static let waitMax = 10.0 * 365 * 86_400 * 1000
}

/// What came of a request, for one task that may have to wait for it.
final class ControlGrant: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<ControlRequest.Outcome, Never>)
        case ended(ControlRequest.Outcome)
    }

    private let state = Guarded(State.open)

    /// nil while nothing has come of it.
    var outcome: ControlRequest.Outcome? {
        state.withLock { state in
            if case .ended(let outcome) = state { outcome } else { nil }
        }
    }

    /// Resumes the task that waits, or the one that will.
    func end(_ outcome: ControlRequest.Outcome) {
        let continuation: CheckedContinuation<ControlRequest.Outcome, Never>? = state.withLock { state in
            defer { state = .ended(outcome) }
            if case .awaited(let continuation) = state { return continuation }
            return nil
        }
        continuation?.resume(returning: outcome)
    }

    /// Resumes once there is an outcome. One task may wait.
    func await(_ continuation: CheckedContinuation<ControlRequest.Outcome, Never>) {
        let outcome: ControlRequest.Outcome? = state.withLock { state in
            if case .ended(let outcome) = state { return outcome }
            state = .awaited(continuation)
            return nil
        }
        if let outcome { continuation.resume(returning: outcome) }
    }
}

/// Exclusive control that this process holds.
struct ControlLease: Hashable, Sendable {
    var session: String
    var ticket: Int64
}

/// Which ticket belongs to which request.
///
/// Tickets come on the request connection, the service's word on the event stream: either may be first.
struct ControlTable {
    /// What is left to do after an event or reply.
    enum Action {
        case none
        case finish(ControlRequest, granted: Bool, reason: String?)
        case release([Int64])
    }

    private struct Word {
        var granted: Bool
        var reason: String?
    }

    private var waiting: [Int64: ControlRequest] = [:]
    /// Words on tickets that nobody knows yet: only while some are being asked for.
    private var early: [Int64: Word] = [:]
    private var asking = 0

    /// Requests that wait.
    var count: Int { waiting.count }

    /// A ticket is being asked for.
    mutating func begin() { asking += 1 }

    /// The ticket has come. Answers what to do with the request, and the tickets that belong to no request.
    mutating func end(ticket: Int64, request: ControlRequest) -> (action: Action, strays: [Int64]) {
        let word = early.removeValue(forKey: ticket)
        let strays = endAsking()
        guard let word else {
            waiting[ticket] = request
            return (.none, strays)
        }
        return (.finish(request, granted: word.granted, reason: word.reason), strays)
    }

    /// The ticket has come, and control with it.
    mutating func endGranted(request: ControlRequest) -> (action: Action, strays: [Int64]) {
        (.finish(request, granted: true, reason: nil), endAsking())
    }

    /// No ticket has come. Answers the tickets that belong to no request: the service may have acted all the same.
    mutating func endWithoutTicket() -> [Int64] { endAsking() }

    /// The service's word on a ticket.
    mutating func word(on ticket: Int64, granted: Bool, reason: String?) -> Action {
        if let request = waiting.removeValue(forKey: ticket) {
            return .finish(request, granted: granted, reason: reason)
        }
        if asking > 0 {
            early[ticket] = Word(granted: granted, reason: reason)
            return .none
        }
        return granted ? .release([ticket]) : .none
    }

    /// The request no longer waits. Answers its ticket, if it had one.
    mutating func withdraw(_ request: ControlRequest) -> Int64? {
        guard let ticket = waiting.first(where: { $0.value === request })?.key else { return nil }
        waiting[ticket] = nil
        return ticket
    }

    /// The session is lost, and all tickets with it. Answers the requests that waited, oldest first.
    mutating func lost() -> [ControlRequest] {
        defer { waiting = [:]; early = [:] }
        return waiting.sorted { $0.key < $1.key }.map(\.value)
    }

    private mutating func endAsking() -> [Int64] {
        asking -= 1
        // What came early may belong to another one that is being asked for.
        guard asking == 0 else { return [] }
        defer { early = [:] }
        return early.filter(\.value.granted).keys.sorted()
    }
}
