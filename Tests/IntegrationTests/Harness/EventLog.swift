// Events in the order they came, and waiting for one of them with a limit.
import AssetsOS
import Dispatch

/// A list that grows from any thread; tests wait for what they expect in it.
final class EventLog<Event: Sendable>: Sendable {
    private struct Waiter {
        let matches: @Sendable (Event) -> Bool
        let continuation: CheckedContinuation<Event, any Error>
    }

    private struct State {
        var events: [Event] = []
        var isClosed = false
        var waiters: [Int: Waiter] = [:]
        var lastWaiter = 0
    }

    private let name: String
    private let state = Guarded(State())

    init(_ name: String) { self.name = name }

    var all: [Event] { state.withLock { $0.events } }
    var count: Int { state.withLock { $0.events.count } }

    func put(_ event: Event) {
        let found = state.withLock { state in
            state.events.append(event)
            let keys = state.waiters.filter { $0.value.matches(event) }.keys.sorted()
            return keys.compactMap { state.waiters.removeValue(forKey: $0)?.continuation }
        }
        for continuation in found { continuation.resume(returning: event) }
    }

    /// Nothing more comes: whoever waits gets an error.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [:] }
            return state.waiters.keys.sorted().compactMap { state.waiters[$0]?.continuation }
        }
        for continuation in left { continuation.resume(throwing: HarnessError("\(name) ended")) }
    }

    /// Events come again.
    func reopen() { state.withLock { $0.isClosed = false } }

    /// All events that match, once there are so many: who was told of something may know it before the log does.
    func all(
        atLeast count: Int, within limit: Duration = .seconds(120), _ what: String,
        where matches: @escaping @Sendable (Event) -> Bool
    ) async throws -> [Event] {
        while true {
            let seen = all
            let found = seen.filter(matches)
            if found.count >= count { return found }
            _ = try await first(from: seen.count, within: limit, "\(what) (\(found.count) of \(count))", where: matches)
        }
    }

    /// The first event from `start` on that matches, there already or still to come.
    func first(
        from start: Int = 0, within limit: Duration = .seconds(120), _ what: String,
        where matches: @escaping @Sendable (Event) -> Bool
    ) async throws -> Event {
        try await withCheckedThrowingContinuation { continuation in
            let number: Int? = state.withLock { state in
                if let event = state.events.dropFirst(start).first(where: matches) {
                    continuation.resume(returning: event)
                    return nil
                }
                if state.isClosed {
                    continuation.resume(throwing: HarnessError("\(name) ended without \(what)"))
                    return nil
                }
                state.lastWaiter += 1
                state.waiters[state.lastWaiter] = Waiter(matches: matches, continuation: continuation)
                return state.lastWaiter
            }
            guard let number else { return }
            let milliseconds = Int(limit / .milliseconds(1))
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [self] in
                let late = state.withLock { $0.waiters.removeValue(forKey: number)?.continuation }
                late?.resume(throwing: HarnessError("\(name): no \(what) within \(limit)"))
            }
        }
    }
}

/// What went wrong in the harness, or what did not come.
struct HarnessError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Runs a blocking call on a thread of its own.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        onThread { continuation.resume(with: Result(catching: body)) }
    }
}
