// When an interrupted download is tried again, and when it is given up.

/// What becomes of a download whose attempt was interrupted.
package enum RetryDecision: Hashable, Sendable {
    /// Not before this time.
    case retry(at: Duration)
    case fail(DownloadFailure)
}

/// The rule of retries. All times are of one clock, which the caller picks.
package enum RetryPolicy {
    /// The history after one more interruption. A byte received makes it start anew.
    package static func record(
        _ interruption: Interruption, in history: RetryHistory, at now: Duration
    ) -> RetryHistory {
        guard !interruption.receivedAny, let first = history.firstFailure, first <= now else {
            return RetryHistory(failures: 1, firstFailure: now)
        }
        return RetryHistory(failures: history.failures + 1, firstFailure: first)
    }

    /// Decides after `record`. `random` is 64 random bits.
    package static func decide(
        _ transferClass: TransferClass, _ history: RetryHistory, _ interruption: Interruption, now: Duration,
        random: UInt64
    ) -> RetryDecision {
        let end = (history.firstFailure ?? now) + patience(transferClass, interruption.kind)
        guard now < end else { return .fail(interruption.failure) }
        let pause = pause(afterFailures: history.failures, interruption.retryAfter, random)
        // The last attempt is made when the time is up, so that a long pause does not shorten it.
        return .retry(at: min(now + pause, end))
    }

    /// How long failures without a byte are borne.
    private static func patience(_ transferClass: TransferClass, _ kind: Interruption.Kind) -> Duration {
        switch (transferClass, kind) {
        case (.background, _): PolicyNumbers.givesUpAfter
        case (.foreground, .unreachable): PolicyNumbers.foregroundOfflineLimit
        case (.foreground, .server), (.foreground, .broken): PolicyNumbers.givesUpAfter
        case (.essential, .unreachable): PolicyNumbers.essentialOfflineLimit
        case (.essential, .server), (.essential, .broken): PolicyNumbers.essentialServerLimit
        // Somebody waits who can make room: tell at once.
        case (.foreground, .storage), (.essential, .storage): .zero
        }
    }

    private static func pause(afterFailures failures: Int, _ retryAfter: Duration?, _ random: UInt64) -> Duration {
        if let retryAfter {
            return min(max(retryAfter, PolicyNumbers.retryPauseMin), PolicyNumbers.retryPauseMax)
        }
        let least = PolicyNumbers.retryPauseMin
        // Ten doublings are beyond the longest pause.
        let most = min(least * (1 << min(max(failures, 1), 10)), PolicyNumbers.retryPauseMax)
        let milliseconds = (most - least) / .milliseconds(1)
        // Full jitter: devices that failed together come back apart.
        return least + .milliseconds(Int64(milliseconds * (Double(random >> 11) / 0x1p53)))
    }
}
