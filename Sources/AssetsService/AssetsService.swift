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
    /// Where the containers of apps and extensions lie; read from the disk once.
    var containers = ContainerFolders()
    var installations: [String: Installation] = [:]

    // Journal rows that wait for the next commit, and who follows the journal.
    var pendingJournal: [JournalEntry] = []
    /// What nobody waits for: intents whose effects are on stable storage, what extensions used. Written with the next
    /// commit.
    var pendingChanges: [StoreChange] = []
    var isFlushPlanned = false
    /// What callers wait to see written.
    var commitRequests: [CommitRequest] = []
    var isCommitting = false
    var commitTimer: TimerToken?
    var journalWatchers: [Int: @Sendable () -> Void] = [:]
    var nextWatcher = 0

    // The queue: what is in memory of it, and what runs.
    var queue = TransferQueue()
    var running: [String: RunningTransfer] = [:]
    /// What the engine has said and nobody has looked at yet, with the download's id.
    nonisolated let transferNews = Guarded<[(String, TransferEvent)]>([])
    /// Downloads that are being removed: what was read of them before is not to be started.
    var leaving: Set<String> = []
    /// Downloads of which it is just being found out whether they can be cancelled, and who waits for that.
    var cancels: [String: [CheckedContinuation<Void, Never>]] = [:]
    /// Attempts that have ended, and of which not everything is done yet that follows.
    var settling = 0
    var isPumping = false
    var mustPumpAgain = false
    var retryTimer: (token: TimerToken, at: Duration)?
    var calendarWatch = CalendarWatch()
    /// Times that the queue was asked when the next retry is due.
    var retryPlans = 0
    /// When a running transfer may have to stop for one that waits; process clock.
    var sliceTimer: (token: TimerToken, at: Duration)?
    var connectivity = Connectivity()
    var proxies: ProxySettings
    var space = SpaceLook()
    /// Connections that hold a download in the foreground.
    var foregroundHolders: [String: Set<Int>] = [:]
    /// Downloads that are being brought to the class that their holders ask for.
    var classChanges: Set<String> = []
    /// Counts those that are done, so that who has waited for something can tell whether there was one meanwhile.
    var classChangeNumber = 0

    // Finished files: when the last one came, where they wait for their receivers, and the work of the disk for many of them.
    var lastGathered: Duration?
    var finishDelay = Duration.zero
    var vendedFolders = VendedFolders()
    let moves = Gathering<FileMove, SystemCallError?>(most: PolicyNumbers.movesMax) { await $0.move($1) }
    let looks = Gathering<FileLook, Bool>(most: PolicyNumbers.movesMax) { await $0.look($1) }

    // Messages, extensions, sessions.
    var rounds: [String: Round] = [:]
    /// Rounds that are open of each app.
    var openRounds: [String: Int] = [:]
    /// The round of each event that waits for an answer.
    var roundsOfEvents: [Int64: String] = [:]
    /// Messages that wait for their turn; and apps with some that are in the store only.
    var waiting = WaitingMessages()
    var hasMoreMessages: Set<String> = []
    /// Apps whose messages are being read, with those that were closed meanwhile.
    var messageReads: [String: Set<String>] = [:]
    var answerTimer: TimerToken?
    var extensionQueues: [String: ExtensionQueue] = [:]
    var extensionProcesses: [String: ExtensionProcessState] = [:]
    /// What each app's extension has used of its day.
    var runtimes: [String: RuntimeLedger] = [:]
    /// Apps whose containers hold more than they declare, and what is said of it.
    var oversized: [String: String] = [:]
    /// Apps whose containers are about to be looked at.
    var storageTimers: [String: TimerToken] = [:]
    /// Questions of servers that somebody is to answer, by download; then what is known of each download's questions, and
    /// of each app's servers. Never written.
    var challenges: [String: OpenChallenge] = [:]
    var challengeLives: [String: ChallengeLife] = [:]
    var credentials: [String: CredentialMemory] = [:]
    var sessions: [String: ManagerSession] = [:]
    var sessionOrder: [String] = []
    var controls: [String: SharedControl] = [:]
    var nextTicket: Int64 = 1
    var nextEventNumber: Int64 = 1

    // When extensions are asked what is new, and those that are being asked.
    var plans: [String: PeriodicPlan] = [:]
    var planTimer: (token: TimerToken, at: Duration)?
    var events: [String: ContentEvent] = [:]

    /// In process time.
    let startedAt: Duration
    var isStopping = false
    /// Told whenever the service may have become idle.
    var activityChanged: (@Sendable () -> Void)?

    package init(seams: ServiceSeams) {
        self.seams = seams
        proxies = ProxySettings(environment: seams.environment)
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
        !running.isEmpty || settling > 0 || !rounds.isEmpty || !challenges.isEmpty || !sessions.isEmpty || isPumping
            || installations.values.contains { !$0.life.isEnded || $0.isPerforming }
            || queue.hasWaiting || retryTimer != nil
            || extensionQueues.values.contains { $0.isActive } || !events.isEmpty
    }

    /// Calls `body` on the service's executor whenever the service may have become idle.
    package func observeActivity(_ body: @escaping @Sendable () -> Void) { activityChanged = body }
}
