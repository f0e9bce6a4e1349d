// When an interrupted download is tried again, and when it is given up.

/// What becomes of a download whose attempt was interrupted.
package enum RetryDecision: Hashable, Sendable {
    /// Not before this time.
    case retry(at: Duration)
    /// Once what it lacks is there, which somebody watches; given up at this time.
    case wait(until: Duration)
    case fail(DownloadFailure)
}

/// What the owner of a download knows of the world around it.
package struct RetrySurroundings: Hashable, Sendable {
    /// Somebody watches what the download lacks and says when it is there.
    package var isWatched: Bool
    /// The network is another one since the attempt began: its failure says nothing about that of now.
    package var hasNewNetwork: Bool

    package init(isWatched: Bool = false, hasNewNetwork: Bool = false) {
        self.isWatched = isWatched
        self.hasNewNetwork = hasNewNetwork
    }
}

/// The rule of retries. All times are of one clock, which the caller picks.
package struct RetryPolicy: Hashable, Sendable {
    /// How long a background download is tried without receiving a byte.
    package var patience: Duration

    package init(patience: Duration = PolicyNumbers.givesUpAfter) { self.patience = patience }

    /// The history after one more interruption. A byte that was not there before makes it start anew.
    package static func record(
        _ interruption: Interruption, in history: RetryHistory, at now: Duration
    ) -> RetryHistory {
        guard !interruption.hasAdvanced, let first = history.firstFailure, first <= now else {
            return RetryHistory(failures: 1, firstFailure: now)
        }
        return RetryHistory(failures: history.failures + 1, firstFailure: first)
    }

    /// The history of one that cannot be tried now: its time counts, but nothing has failed.
    package static func record(untriedAt now: Duration, in history: RetryHistory) -> RetryHistory {
        RetryHistory(failures: history.failures, firstFailure: min(history.firstFailure ?? now, now))
    }

    /// Whether a connection broke because of a pause: servers hang up on who does not read, and that is no failure of theirs.
    ///
    /// - Parameter pausedAt: when the last pause of this attempt began, in the time of `now`; nil without one.
    package static func isOfPause(_ interruption: Interruption, pausedAt: Duration?, now: Duration) -> Bool {
        guard let pausedAt, pausedAt <= now, interruption.kind == .broken else { return false }
        return now - pausedAt < PolicyNumbers.pauseBlameMax
    }

    /// Decides after `record`. `random` is 64 random bits.
    package func decide(
        _ transferClass: TransferClass, _ history: RetryHistory, _ interruption: Interruption, now: Duration,
        random: UInt64, _ surroundings: RetrySurroundings = RetrySurroundings()
    ) -> RetryDecision {
        let end = (history.firstFailure ?? now) + patience(transferClass, interruption.kind)
        let isTimeUp = now >= end
        guard !isTimeUp || !hasTriedEnough(transferClass, history, interruption) else {
            return .fail(interruption.failure)
        }
        if surroundings.isWatched { return .wait(until: end) }
        let pause =
            surroundings.hasNewNetwork && interruption.isOfNetwork
            ? Self.drawn(random, below: PolicyNumbers.networkSpread)
            : Self.pause(transferClass, afterFailures: history.failures, interruption.retryAfter, random)
        // The last attempt is made when the time is up, so that a long pause does not shorten it.
        return .retry(at: isTimeUp ? now + pause : min(now + pause, end))
    }

    /// False where the time is up because the machine slept, or because its calendar was set, and not because nobody was to be
    /// reached all that time.
    private func hasTriedEnough(
        _ transferClass: TransferClass, _ history: RetryHistory, _ interruption: Interruption
    ) -> Bool {
        transferClass != .background || interruption.kind != .unreachable || interruption.reason == .offline
            || history.failures >= min(PolicyNumbers.unreachableTriesMin, Int(patience / PolicyNumbers.retryPauseMax))
    }

    /// What becomes of a download that is not even tried, for want of something whose coming is watched.
    ///
    /// - Parameters:
    ///   - now: Calendar time.
    ///   - processNow: Of the clock that stands still while the machine sleeps, as `connectivity` has it.
    package func decideUntried(
        _ transferClass: TransferClass, _ history: RetryHistory, _ interruption: Interruption, now: Duration,
        _ connectivity: Connectivity, at processNow: Duration
    ) -> RetryDecision {
        let decision = decide(
            transferClass, history, interruption, now: now, random: 0, RetrySurroundings(isWatched: true))
        // A machine that slept through the patience gets a moment to find its network.
        let moment = min(PolicyNumbers.networkWakeTime, patience)
        guard case .fail = decision, interruption.reason == .offline, transferClass == .background,
            !connectivity.isOffline(at: processNow, for: moment)
        else { return decision }
        return .wait(until: now + moment)
    }

    /// How long failures without a byte are borne.
    private func patience(_ transferClass: TransferClass, _ kind: Interruption.Kind) -> Duration {
        switch (transferClass, kind) {
        case (.background, _): patience
        case (.foreground, .unreachable): PolicyNumbers.foregroundOfflineLimit
        case (.foreground, .server), (.foreground, .broken): PolicyNumbers.givesUpAfter
        case (.essential, .unreachable): PolicyNumbers.essentialOfflineLimit
        case (.essential, .server), (.essential, .broken): PolicyNumbers.essentialServerLimit
        // Somebody waits who can make room: tell at once.
        case (.foreground, .storage), (.essential, .storage): .zero
        }
    }

    private static func pause(
        _ transferClass: TransferClass, afterFailures failures: Int, _ retryAfter: Duration?, _ random: UInt64
    ) -> Duration {
        let least = PolicyNumbers.retryPauseMin
        if let retryAfter {
            let most = transferClass == .background ? PolicyNumbers.retryAfterMax : PolicyNumbers.retryPauseMax
            let asked = min(max(retryAfter, least), most)
            // Never before the time that the server named, and not all of its clients at that time.
            return asked + drawn(random, below: max(asked / PolicyNumbers.retryAfterSpread, least))
        }
        // Ten doublings are beyond the longest pause.
        let most = min(least * (1 << min(max(failures, 1), 10)), PolicyNumbers.retryPauseMax)
        // Full jitter: devices that failed together come back apart.
        return least + drawn(random, below: most - least)
    }

    private static func drawn(_ random: UInt64, below limit: Duration) -> Duration {
        .milliseconds(Int64(limit / .milliseconds(1) * (Double(random >> 11) / 0x1p53)))
    }
}

extension Interruption {
    /// Another network, or none where there was one, could have caused it.
    fileprivate var isOfNetwork: Bool {
        switch kind {
        case .unreachable: true
        case .broken: reason == .network || reason == .stall
        case .server, .storage: false
        }
    }
}
