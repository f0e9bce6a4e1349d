// When to try again, against a table.
import AssetsModel
import Testing

private func interruption(
    _ kind: Interruption.Kind, retryAfter: Duration? = nil, receivedAny: Bool = false
) -> Interruption {
    Interruption(
        kind: kind, reason: .network, retryAfter: retryAfter, receivedAny: receivedAny,
        failure: DownloadFailure(domain: .url, code: -1, reason: "why"))
}

private func pause(_ decision: RetryDecision, from now: Duration) -> Duration? {
    if case .retry(let at) = decision { return at - now }
    return nil
}

@Suite("Retries")
struct RetryPolicyTests {
    struct Row: Sendable {
        var transferClass: TransferClass
        var kind: Interruption.Kind
        /// How long failures without a byte are borne.
        var patience: Duration
    }
    static let rows = [
        Row(transferClass: .background, kind: .unreachable, patience: .seconds(86400)),
        Row(transferClass: .background, kind: .server, patience: .seconds(86400)),
        Row(transferClass: .background, kind: .broken, patience: .seconds(86400)),
        Row(transferClass: .background, kind: .storage, patience: .seconds(86400)),
        Row(transferClass: .foreground, kind: .unreachable, patience: .seconds(3)),
        Row(transferClass: .foreground, kind: .server, patience: .seconds(86400)),
        Row(transferClass: .foreground, kind: .broken, patience: .seconds(86400)),
        Row(transferClass: .foreground, kind: .storage, patience: .zero),
        Row(transferClass: .essential, kind: .unreachable, patience: .seconds(5)),
        Row(transferClass: .essential, kind: .server, patience: .seconds(30)),
        Row(transferClass: .essential, kind: .broken, patience: .seconds(30)),
        Row(transferClass: .essential, kind: .storage, patience: .zero),
    ]

    @Test("Patience depends on who waits and on what went wrong", arguments: rows)
    func patience(_ row: Row) {
        let now = Duration.seconds(1_000_000)
        let failed = interruption(row.kind)
        let inTime = RetryHistory(failures: 3, firstFailure: now - row.patience + .milliseconds(1))
        let late = RetryHistory(failures: 3, firstFailure: now - row.patience)
        let end = now + .milliseconds(1)
        if row.patience > .zero {
            let decision = RetryPolicy.decide(row.transferClass, inTime, failed, now: now, random: .max)
            // A last attempt is made when the time is up.
            #expect(decision == .retry(at: end))
        }
        #expect(
            RetryPolicy.decide(row.transferClass, late, failed, now: now, random: 0) == .fail(failed.failure))
    }

    @Test(
        "Pauses grow, are drawn at random and stay within bounds",
        arguments: [(1, 1.0, 2.0), (2, 1, 4), (4, 1, 16), (8, 1, 256), (9, 1, 300), (1000, 1, 300)])
    func pauses(failures: Int, least: Double, most: Double) throws {
        let history = RetryHistory(failures: failures, firstFailure: .zero)
        func drawn(_ random: UInt64) throws -> Double {
            let decision = RetryPolicy.decide(.background, history, interruption(.server), now: .zero, random: random)
            return try #require(pause(decision, from: .zero)) / .seconds(1)
        }
        #expect(try drawn(0) == least)
        #expect(try drawn(.max) > most - 0.01 && drawn(.max) <= most)
        let middle = try drawn(.max / 2)
        #expect(abs(middle - (least + most) / 2) < 0.01)
    }

    @Test(
        "What a server asks for is honoured within bounds",
        arguments: [
            (TransferClass.background, Duration.seconds(0), Duration.seconds(1)),
            (.background, .seconds(42), .seconds(42)),
            (.background, .seconds(4000), .seconds(300)), (.essential, .seconds(12), .seconds(12)),
            (.essential, .seconds(200), .seconds(30)), (.foreground, .seconds(200), .seconds(200)),
        ])
    func retryAfter(transferClass: TransferClass, asked: Duration, expected: Duration) {
        let history = RetryHistory(failures: 1, firstFailure: .zero)
        let failed = interruption(.server, retryAfter: asked)
        let decision = RetryPolicy.decide(transferClass, history, failed, now: .zero, random: 7)
        #expect(decision == .retry(at: expected))
    }

    @Test("A byte makes the count start anew")
    func record() {
        var history = RetryHistory()
        history = RetryPolicy.record(interruption(.broken), in: history, at: .seconds(10))
        history = RetryPolicy.record(interruption(.broken), in: history, at: .seconds(20))
        #expect(history == RetryHistory(failures: 2, firstFailure: .seconds(10)))
        history = RetryPolicy.record(interruption(.broken, receivedAny: true), in: history, at: .seconds(30))
        #expect(history == RetryHistory(failures: 1, firstFailure: .seconds(30)))
    }

    @Test("A clock that was set back does not make patience longer")
    func clockSetBack() {
        let history = RetryPolicy.record(
            interruption(.broken), in: RetryHistory(failures: 5, firstFailure: .seconds(1000)), at: .seconds(10))
        #expect(history == RetryHistory(failures: 1, firstFailure: .seconds(10)))
    }

    @Test("Work that store or disk do not take is tried again after ever longer pauses, up to a minute")
    func storagePauses() {
        let pauses = [0, 1, 2, 3, 4, 5, 6, 7, 1000].map { PolicyNumbers.storagePause(afterTries: $0) }
        #expect(pauses == [2, 2, 4, 8, 16, 32, 60, 60, 60].map { Duration.seconds($0) })
    }
}
