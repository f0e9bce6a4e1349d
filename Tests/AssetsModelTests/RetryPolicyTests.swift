// When to try again, against a table.
import AssetsModel
import Testing

private func interruption(
    _ kind: Interruption.Kind, retryAfter: Duration? = nil, hasAdvanced: Bool = false
) -> Interruption {
    Interruption(
        kind: kind, reason: .network, retryAfter: retryAfter, hasAdvanced: hasAdvanced,
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

    @Test("A connection that breaks right after a pause broke because of it, any other failure did not")
    func pauses() {
        let pausedAt = Duration.seconds(100)
        func isOfPause(_ kind: Interruption.Kind, after time: Duration) -> Bool {
            RetryPolicy.isOfPause(interruption(kind), pausedAt: pausedAt, now: pausedAt + time)
        }
        let most = PolicyNumbers.pauseBlameMax
        #expect(isOfPause(.broken, after: .zero) && isOfPause(.broken, after: most - .nanoseconds(1)))
        #expect(!isOfPause(.broken, after: most) && !isOfPause(.broken, after: .seconds(-1)))
        for kind in [Interruption.Kind.unreachable, .server, .storage] { #expect(!isOfPause(kind, after: .zero)) }
        #expect(!RetryPolicy.isOfPause(interruption(.broken), pausedAt: nil, now: pausedAt))
    }

    @Test("A machine that slept through the patience has a moment to find its network")
    func untried() {
        let now = Duration.seconds(10_000_000)
        var connectivity = Connectivity()
        _ = connectivity.see(NetworkView(), at: .seconds(100), random: 0)
        func decide(_ transferClass: TransferClass, after time: Duration, since: Duration) -> RetryDecision {
            RetryPolicy().decideUntried(
                transferClass, RetryHistory(firstFailure: now - since), .offline, now: now, connectivity,
                at: .seconds(100) + time)
        }
        let (patience, moment) = (RetryPolicy().patience, PolicyNumbers.networkWakeTime)
        #expect(decide(.background, after: .zero, since: .seconds(1)) == .wait(until: now + patience - .seconds(1)))
        #expect(decide(.background, after: .zero, since: patience) == .wait(until: now + moment))
        let failed = RetryDecision.fail(Interruption.offline.failure)
        #expect(decide(.background, after: moment, since: patience) == failed)
        #expect(decide(.foreground, after: .zero, since: patience) == failed)
    }

    @Test("Patience depends on who waits and on what went wrong", arguments: rows)
    func patience(_ row: Row) {
        let now = Duration.seconds(1_000_000)
        let failed = interruption(row.kind)
        let inTime = RetryHistory(failures: 3, firstFailure: now - row.patience + .milliseconds(1))
        let late = RetryHistory(failures: PolicyNumbers.unreachableTriesMin, firstFailure: now - row.patience)
        let end = now + .milliseconds(1)
        if row.patience > .zero {
            let decision = RetryPolicy().decide(row.transferClass, inTime, failed, now: now, random: .max)
            // A last attempt is made when the time is up.
            #expect(decision == .retry(at: end))
        }
        #expect(
            RetryPolicy().decide(row.transferClass, late, failed, now: now, random: 0) == .fail(failed.failure))
    }

    @Test(
        "Pauses grow, are drawn at random and stay within bounds",
        arguments: [(1, 1.0, 2.0), (2, 1, 4), (4, 1, 16), (8, 1, 256), (9, 1, 300), (1000, 1, 300)])
    func pauses(failures: Int, least: Double, most: Double) throws {
        let history = RetryHistory(failures: failures, firstFailure: .zero)
        func drawn(_ random: UInt64) throws -> Double {
            let decision = RetryPolicy().decide(.background, history, interruption(.server), now: .zero, random: random)
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
            (.background, .seconds(3000), .seconds(3000)), (.background, .seconds(4000), .seconds(3600)),
            (.essential, .seconds(12), .seconds(12)), (.essential, .seconds(200), .seconds(30)),
            (.foreground, .seconds(200), .seconds(200)), (.foreground, .seconds(400), .seconds(300)),
        ])
    func retryAfter(transferClass: TransferClass, asked: Duration, expected: Duration) {
        let history = RetryHistory(failures: 1, firstFailure: .zero)
        let failed = interruption(.server, retryAfter: asked)
        let decision = RetryPolicy().decide(transferClass, history, failed, now: .zero, random: 7)
        #expect(decision == .retry(at: expected))
    }

    @Test("Nobody comes back before the time that a server named, and not all at that time")
    func retryAfterSpread() throws {
        let history = RetryHistory(failures: 1, firstFailure: .zero)
        func drawn(_ asked: Duration, _ random: UInt64) throws -> Double {
            let failed = interruption(.server, retryAfter: asked)
            let decision = RetryPolicy().decide(.background, history, failed, now: .zero, random: random)
            return try #require(pause(decision, from: .zero)) / .seconds(1)
        }
        #expect(try drawn(.seconds(100), 0) == 100)
        #expect(try drawn(.seconds(100), .max) > 109 && drawn(.seconds(100), .max) <= 110)
        #expect(try drawn(.seconds(2), .max) > 2.9 && drawn(.seconds(2), .max) <= 3)
    }

    @Test("What is watched waits without being tried, as long as patience lasts")
    func watched() {
        let history = RetryHistory(failures: 1, firstFailure: .zero)
        let watched = RetrySurroundings(isWatched: true)
        for (transferClass, patience) in [
            (TransferClass.background, 86400), (.foreground, 3), (.essential, 5),
        ] {
            func decide(at now: Duration) -> RetryDecision {
                RetryPolicy().decide(transferClass, history, .offline, now: now, random: 7, watched)
            }
            #expect(decide(at: .seconds(1)) == .wait(until: .seconds(patience)))
            #expect(decide(at: .seconds(patience)) == .fail(Interruption.offline.failure))
        }
    }

    @Test("A failure that another network has overtaken is tried again at once, one of the server is not")
    func newNetwork() throws {
        let history = RetryHistory(failures: 9, firstFailure: .zero)
        func paused(_ kind: Interruption.Kind, _ reason: Reason, _ random: UInt64) throws -> Duration {
            var failed = interruption(kind)
            failed.reason = reason
            let decision = RetryPolicy().decide(
                .background, history, failed, now: .zero, random: random, RetrySurroundings(hasNewNetwork: true))
            return try #require(pause(decision, from: .zero))
        }
        for (kind, reason) in [
            (Interruption.Kind.unreachable, Reason.network), (.unreachable, .certificate), (.broken, .network),
            (.broken, .stall),
        ] {
            #expect(try paused(kind, reason, 0) == .zero)
            #expect(try paused(kind, reason, .max) <= .milliseconds(500))
        }
        #expect(try paused(.server, .http, .max) > .seconds(200))
        #expect(try paused(.broken, .http, .max) > .seconds(200))
    }

    @Test("A device's own patience holds for its background downloads only")
    func ownPatience() {
        let policy = RetryPolicy(patience: .seconds(60))
        let history = RetryHistory(failures: 4, firstFailure: .zero)
        func decide(_ transferClass: TransferClass) -> RetryDecision {
            policy.decide(transferClass, history, interruption(.server), now: .seconds(59), random: .max)
        }
        #expect(decide(.background) == .retry(at: .seconds(60)))
        #expect(decide(.essential) == .fail(interruption(.server).failure))
    }

    @Test("A byte makes the count start anew")
    func record() {
        var history = RetryHistory()
        history = RetryPolicy.record(interruption(.broken), in: history, at: .seconds(10))
        history = RetryPolicy.record(interruption(.broken), in: history, at: .seconds(20))
        #expect(history == RetryHistory(failures: 2, firstFailure: .seconds(10)))
        history = RetryPolicy.record(interruption(.broken, hasAdvanced: true), in: history, at: .seconds(30))
        #expect(history == RetryHistory(failures: 1, firstFailure: .seconds(30)))
    }

    @Test("What was not tried has not failed, but its time counts")
    func untriedHistory() {
        let fresh = RetryPolicy.record(untriedAt: .seconds(10), in: RetryHistory())
        #expect(fresh == RetryHistory(failures: 0, firstFailure: .seconds(10)))
        let failed = RetryHistory(failures: 3, firstFailure: .seconds(5))
        #expect(RetryPolicy.record(untriedAt: .seconds(10), in: failed) == failed)
        #expect(RetryPolicy.record(untriedAt: .seconds(1), in: failed).firstFailure == .seconds(1))
    }

    @Test(
        "A day that the machine slept through, or was set to, is none of trying",
        arguments: [(Duration.seconds(86_400), 6), (.seconds(1800), 6), (.seconds(900), 3), (.seconds(299), 0)])
    func fewTries(patience: Duration, tries: Int) {
        let now = Duration.seconds(1_000_000)
        func decide(_ kind: Interruption.Kind, failures: Int, _ transferClass: TransferClass = .background)
            -> RetryDecision
        {
            RetryPolicy(patience: patience).decide(
                transferClass, RetryHistory(failures: failures, firstFailure: .zero), interruption(kind), now: now,
                random: 0)
        }
        if tries > 0 {
            #expect(decide(.unreachable, failures: tries - 1) == .retry(at: now + PolicyNumbers.retryPauseMin))
            #expect(decide(.unreachable, failures: tries - 1, .foreground) == .fail(interruption(.unreachable).failure))
        }
        #expect(decide(.unreachable, failures: tries) == .fail(interruption(.unreachable).failure))
        #expect(decide(.server, failures: 1) == .fail(interruption(.server).failure))
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
