import Foundation
import Synchronization
import Testing

@testable import AssetsOS

/// What fails is said by the thread sanitizer only.
@Suite("Continuations under the thread sanitizer", .timeLimit(.minutes(10)))
struct OrderedContinuationTests {
    private final class Made: @unchecked Sendable {
        // Sendable because whoever made it writes it before anybody else has it.
        var number = 0
    }

    /// Runs `body` on a thread and returns when it has ended, in a way that orders nothing.
    private func unordered(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = Shared(Atomic(false))
        Thread {
            body()
            hasEnded.value.store(true, ordering: .relaxed)
        }.start()
        while !hasEnded.value.load(ordering: .relaxed) { sched_yield() }
    }

    private final class Shared<Value: ~Copyable & Sendable>: Sendable {
        let value: Value
        init(_ value: consuming Value) { self.value = value }
    }

    private func make(_ number: Int) -> Made {
        let made = Made()
        made.number = number
        return made
    }

    @Test("One that is resumed before it is awaited orders what was done before")
    func resumedEarly() async throws {
        await Task.detached {
            let made = await withCheckedContinuation { continuation in
                unordered { continuation.resume(returning: make(1)) }
            }
            #expect(made.number == 1)
        }.value
    }

    @Test("So does one that may throw, and one that throws")
    func resumedEarlyThrowing() async throws {
        struct Failure: Error { let made: Made }
        try await Task.detached {
            let made = try await withCheckedThrowingContinuation { continuation in
                unordered { continuation.resume(returning: make(1)) }
            }
            #expect(made.number == 1)
            do {
                let none: Made = try await withCheckedThrowingContinuation { continuation in
                    unordered { continuation.resume(throwing: Failure(made: make(2))) }
                }
                Issue.record("\(none)")
            } catch let failure as Failure {
                #expect(failure.made.number == 2)
            }
        }.value
    }
}
