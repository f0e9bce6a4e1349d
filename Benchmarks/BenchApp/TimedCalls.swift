// A call that is repeated and timed.
import AssetsOS
import BackgroundAssets
import Foundation

/// Repeats a call until a moment and prints how long each took, in nanoseconds, of those that began after another moment:
/// what came before warms up, and several processes measure at the same time.
struct TimedCalls {
    private let start: Duration
    private let end: Duration

    /// The arguments: a word, and both moments in nanoseconds of the monotonic clock.
    init(_ arguments: [String]) throws {
        guard arguments.count == 3, let start = Int64(arguments[1]), let end = Int64(arguments[2]) else {
            throw CocoaError(.keyValueValidation)
        }
        self.start = .nanoseconds(start)
        self.end = .nanoseconds(end)
    }

    func run(_ call: () async throws -> Void) async throws {
        var times: [Duration] = []
        times.reserveCapacity(100_000)
        while true {
            let begin = MonotonicClock.now
            guard begin < end else { break }
            try await call()
            if begin >= start { times.append(MonotonicClock.now - begin) }
        }
        print(times.map { "\(Int64($0 / .nanoseconds(1)))" }.joined(separator: "\n"))
    }
}
