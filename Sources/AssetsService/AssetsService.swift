// The service: one isolation domain that asks the rules and performs what they say.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer

/// One device's service: installs apps, runs their downloads, wakes their extensions and tells everybody.
///
/// It lives on the executor of `ServiceSeams.loop`. Rules are values of AssetsModel; after every `await` the state is
/// looked at again, because another call may have run meanwhile.
package actor AssetsService {
    let seams: ServiceSeams
    package nonisolated var unownedExecutor: UnownedSerialExecutor { seams.loop.asUnownedSerialExecutor() }

    var settings = DeviceSettings()
    /// A UUID that the device keeps.
    var deviceName = ""
    var apps: [String: AppRecord] = [:]
    var installations: [String: Installation] = [:]

    // Journal rows that wait for the next commit, and who follows the journal.
    var pendingJournal: [JournalEntry] = []
    /// Intents whose effects are on stable storage; the next commit closes them.
    var pendingClosures: [StoreChange] = []
    var isFlushPlanned = false
    var journalWatchers: [Int: @Sendable () -> Void] = [:]
    var nextWatcher = 0

    // The queue: what is in memory of it, and what runs.
    var windows: [TransferClass: QueueWindow] = [:]
    var windowVersions: [TransferClass: Int] = [:]
    var slots = TransferSlots()
    var running: [String: RunningTransfer] = [:]
    /// Downloads that are being removed: what was read of them before is not to be started.
    var leaving: Set<String> = []
    var isPumping = false
    var mustPumpAgain = false
    var retryTimer: (token: TimerToken, at: Duration)?
    /// Connections that hold a download in the foreground.
    var foregroundHolders: [String: Set<Int>] = [:]

    // Messages, extensions, sessions.
    var rounds: [String: Round] = [:]
    var hasMoreMessages: Set<String> = []
    /// Messages that were closed: what was read of them before does not hold any more.
    var closedMessages = 0
    var extensionQueues: [String: ExtensionQueue] = [:]
    /// Questions of servers that somebody is to answer, by download; then what is known of each download's questions, and
    /// of each app's servers. Never written.
    var challenges: [String: OpenChallenge] = [:]
    var challengeLives: [String: ChallengeLife] = [:]
    var credentials: [String: CredentialMemory] = [:]
    var sessions: [String: ManagerSession] = [:]
    var sessionOrder: [String] = []
    var controls: [String: ExclusiveControl] = [:]
    var nextTicket: Int64 = 1
    var nextEventNumber: Int64 = 1

    /// In process time.
    let startedAt: Duration
    var isStopping = false
    /// Told whenever the service may have become idle.
    var activityChanged: (@Sendable () -> Void)?

    package init(seams: ServiceSeams) {
        self.seams = seams
        startedAt = seams.loop.now
    }

    var calendarNow: Duration { seams.calendar.now }

    /// Runs `body` on the service's executor, in the order of these calls; for callbacks from elsewhere.
    nonisolated func perform(_ body: @escaping @Sendable (isolated AssetsService) -> Void) {
        seams.loop.perform { self.assumeIsolated { body($0) } }
    }

    /// Starts a piece of work on the service's executor.
    nonisolated func launch(_ body: @escaping @Sendable (isolated AssetsService) async -> Void) {
        _ = Task(executorPreference: seams.loop) { await body(self) }
    }

    /// True while anything is planned or running: then the service stays.
    package var isBusy: Bool {
        !running.isEmpty || !rounds.isEmpty || !challenges.isEmpty || !sessions.isEmpty || isPumping
            || installations.values.contains { !$0.life.isEnded || $0.isPerforming }
            || windows.values.contains { !$0.entries.isEmpty } || retryTimer != nil
            || extensionQueues.values.contains { $0.isActive }
    }

    /// Calls `body` on the service's executor whenever the service may have become idle.
    package func observeActivity(_ body: @escaping @Sendable () -> Void) { activityChanged = body }
}

/// What the device's user has set.
package struct DeviceSettings: Hashable, Sendable {
    package var isDeveloperModeOn = false
    package init() {}
}
