// Every number of policy, with its reason.

/// The device's policy in numbers.
package enum PolicyNumbers {
    // MARK: Launch gate

    /// The gate opens by itself this long after the last progress: nobody waits for ever for a server.
    package static let gatePatience = Duration.seconds(120)
    /// What counts as progress: less could be kept up for ever by a server that drips.
    package static let gateProgressBytes: Int64 = 64 << 10
    /// Wall time of the install and update request: the user watches a bar that stands still.
    package static let contentRequestLimit = Duration.seconds(60)

    // MARK: Messages

    /// A delegate that has not answered counts as one that does not handle the message.
    package static let answerLimit = Duration.seconds(60)
    /// Messages of one app that are on their way at a time; the others wait in the store.
    package static let openRoundsMax = 128
    /// Messages that are read from the store at a time: more than are open, and still only milliseconds.
    package static let messagePageMax = 256
    /// Messages of all apps that wait in memory until others were answered; beyond, in the store only. One takes some
    /// 600 bytes.
    package static let waitingMessagesMax = 1024
    /// Times that an extension may die in the callback of one message before it is given up: some two hours in which
    /// whatever was short, memory or room or a server's patience, may have come back.
    package static let deliveriesMax = 8
    /// Messages of one app that were given up and are remembered for `why`.
    package static let givenUpMessagesMax = 100
    /// After the first death in a callback: what another process disturbed is over by then.
    package static let redeliveryPauseMin = Duration.seconds(2)
    /// By so much each pause is longer than the one before.
    package static let redeliveryFactor = 4
    /// Whoever looks for the file has it within this.
    package static let redeliveryPauseMax = Duration.seconds(3600)

    /// The pause after so many deaths in the callback of one message.
    package static func redeliveryPause(afterDeaths deaths: Int) -> Duration {
        var pause = redeliveryPauseMin
        for _ in 1..<max(deaths, 1) where pause < redeliveryPauseMax { pause *= redeliveryFactor }
        return min(pause, redeliveryPauseMax)
    }

    // MARK: Challenges

    /// Apps that run need a moment to connect to a service that was started again.
    package static let reconnectTime = Duration.seconds(2)
    /// A challenge that nobody has answered so long after it was delivered: the server has given up by then as well.
    package static let challengeLimit = Duration.seconds(30)
    /// Times that an extension may die in the callback of one challenge, and the pause after the first death, which doubles
    /// each time: a download waits for it.
    package static let challengeCallsMax = 5
    package static let challengePause = Duration.seconds(2)
    /// Credentials that one download may have refused before it fails: an answer that is always the same would go on
    /// for ever.
    package static let refusedCredentialsMax = 16
    /// Downloads of one app whose challenges are open at a time; the others are not started meanwhile.
    package static let openChallengesMax = 8
    /// Bytes of a name, and of a password.
    package static let credentialMax = 4 << 10
    /// Protection spaces of one app whose credentials are remembered; the oldest goes.
    package static let rememberedCredentialsMax = 64
    /// Bytes of one WWW-Authenticate field that is read, schemes in all of them, parameters of one scheme: tokens of
    /// single sign-on are larger, but nobody here understands them.
    package static let authenticateFieldMax = 8 << 10
    package static let authenticationOffersMax = 8
    package static let authenticationParametersMax = 32
    /// Bytes of a realm: it is shown to people.
    package static let realmMax = 1 << 10
    /// Nonces in a row that a server may call out of date before the credential counts as refused.
    package static let staleNoncesMax = 2

    // MARK: Extension

    /// A stopped extension is ended after this long: until then the next message finds it, later a launch costs less than
    /// what it keeps.
    package static let extensionGrace = Duration.seconds(10)
    /// Between asking an extension to end and killing it.
    package static let terminationGrace = Duration.milliseconds(500)
    /// A file lock that is held when the last entry point has returned is let go within this, or the process is ended: stopped
    /// with it, it would stop whoever wants the lock.
    package static let lockGrace = Duration.seconds(1)
    /// Between two looks at a lock that is held.
    package static let lockLook = Duration.milliseconds(50)

    /// Memory of its own that an extension may have, in bytes: a few megabytes beyond what Foundation takes itself.
    #if SANITIZED
        // A sanitizer's own tables are memory of the process too.
        package static let extensionMemoryMax: Int64 = 4 << 30
    #else
        package static let extensionMemoryMax: Int64 = 12 << 20
    #endif
    /// Between two looks at it: who fills pages in a loop gets some megabytes further meanwhile, to the limits below.
    package static let memoryLook = Duration.milliseconds(5)
    /// RLIMIT_STACK, in bytes: also the size of each thread's stack, of which 48 MiB of data hold many.
    package static let extensionStackMax: Int64 = 1 << 20
    /// RLIMIT_DATA, in bytes: stops what fills memory faster than it is looked at. Four times what an extension may have is
    /// room for what is reserved and not used.
    package static let extensionDataMax: Int64 = 48 << 20
    /// The memory limit of its control group, in bytes. Pages of files are in it, so it is wide: they are taken away first.
    package static let extensionGroupMemoryMax: Int64 = 128 << 20

    /// Runtime in a day of an app of which nothing is known yet, of one that is opened every day, and of one that nobody
    /// opened for `usageDays`.
    package static let runtimeOfNewApp = Duration.seconds(300)
    package static let runtimeOfDailyApp = Duration.seconds(600)
    package static let runtimeOfUnusedApp = Duration.seconds(30)
    package static let usageDays = 30
    /// The day of runtime: it has no beginning, so there is no hour at which all apps run.
    package static let runtimeWindow = Duration.seconds(86_400)
    /// Runtime is forgotten in pieces of this length, so that a day of it is a short list.
    package static let runtimeStep = Duration.seconds(600)
    /// Between two times that the runtime of a long entry point is written down.
    package static let runtimeSaveTime = Duration.seconds(10)

    /// Runs of an app's extension that are kept for its developer.
    package static let extensionRunsMax = 100
    /// Files and folders that an extension's containers may have: each costs the disk more than its bytes.
    package static let extensionFilesMax: Int64 = 200_000
    /// From a call to the look at what its extension has written: one look does for all calls of a batch that end meanwhile.
    package static let storageLookDelay = Duration.seconds(2)
    /// Until the containers of an app that has written too much are looked at again.
    package static let storageLook = Duration.seconds(30)

    /// An extension that nobody waits for: a third of the processor beside one busy program, and what it is asked to do
    /// still ends.
    package static let backgroundNice: Int32 = 5
    /// As much as that among control groups.
    package static let backgroundProcessorWeight = 33
    /// What every control group weighs of which nobody says otherwise.
    package static let processorWeight = 100
    /// Its files come after everybody's, but they come.
    package static let backgroundDiskLevel: Int32 = 7
    /// What pipes hold is counted for nobody: with so few descriptors it is 8 MiB. Programs on macOS begin with as many.
    package static let extensionDescriptorsMax: Int64 = 256
    /// Of a file that an extension writes itself; downloads come by moving.
    package static let extensionFileMax: Int64 = 4 << 30
    /// The extension of a service that was killed dies with it; longer than this it cannot take.
    package static let containerLockPatience = Duration.seconds(5)
    /// Between two looks whether it is gone.
    package static let containerLockLook = Duration.milliseconds(5)

    /// When others have waited so long for exclusive control, the journal says who has it: visits to files that two
    /// processes share take milliseconds.
    package static let controlPatience = Duration.seconds(30)

    // MARK: Periodic checks

    /// An app that was launched within the last day counts as used daily; so do those of a week and of a month.
    package static let dailyUse = Duration.seconds(24 * 3600)
    package static let weeklyUse = Duration.seconds(7 * 86_400)
    package static let monthlyUse = Duration.seconds(30 * 86_400)
    /// Who looks every day finds in the evening what was published in the morning.
    package static let checkIntervalDaily = Duration.seconds(6 * 3600)
    package static let checkIntervalWeekly = Duration.seconds(24 * 3600)
    package static let checkIntervalMonthly = Duration.seconds(3 * 86_400)
    /// Often enough that the app is not years behind when it is opened again.
    package static let checkIntervalUnused = Duration.seconds(14 * 86_400)
    /// Percent by which an interval is longer or shorter.
    package static let checkSpread = 20
    /// Launches within this count as one: each that counts is written down.
    package static let useResolution = Duration.seconds(3600)
    /// No check comes sooner after a launch: the app is starting, and its user is waiting.
    package static let checkAfterUse = Duration.seconds(15 * 60)
    /// The plans are looked at within this: a machine may have slept, and calendars are set.
    package static let planLookMax = Duration.seconds(15 * 60)
    /// A calendar that is set back by less was corrected; by more, what waits until a time waits less long.
    package static let calendarCorrectionMax = Duration.seconds(60)

    // MARK: Transfers at once

    package static let foregroundTransfersMax = 12
    /// Discretionary work leaves the device to its user.
    package static let backgroundTransfersMax = 3
    /// Fairness between apps and politeness to servers. Small transfers count half.
    package static let transfersPerAppAndHostMax = 6
    /// A transfer of so few bytes is over within a few round trips, and its connection waits for most of that time.
    package static let smallTransferMax: Int64 = 64 << 10
    package static let transfersPerHostMax = 12
    /// What a transfer takes of memory apart from its bytes: about so much.
    package static let transferMemory: Int64 = 16 << 10
    /// Memory of transfers whose bytes have all come, and whose places others have already while the disk takes them: enough
    /// that many small files keep a disk busy, and little enough for a disk that is slower than the network.
    package static let unwrittenMax: Int64 = 4 << 20
    /// A transfer that others wait for stops after this long. A new connection and its slow start cost less than a tenth
    /// of it, and nobody waits noticeably for a small file.
    package static let transferSlice = Duration.seconds(10)
    /// Queue entries of each app and class held in memory; the queue itself lives in the store. Reading so many takes less
    /// time than one of their transfers.
    package static let queueWindowMax = 64
    /// Downloads that one transaction lets go on when what they waited for is there: some milliseconds of the store.
    package static let releasedAtOnceMax = 1000
    /// Queue entries of all apps held in memory, with some 300 bytes each.
    package static let queueEntriesMax = 4096

    // MARK: Background

    /// Bytes a second that background transfers may be limited to, all together. With less the pauses between the pieces
    /// of three transfers get so long that servers hang up.
    package static let backgroundRateMin: Int64 = 64 << 10
    /// Time whose bytes may come at once under such a limit.
    package static let rateSlack = Duration.milliseconds(100)

    // MARK: Connections

    /// Far above the fifteen places of the queue, because transfers that cannot resume keep running in the class they are
    /// demoted to, again and again; with a file each they take half of the descriptors that a process usually has.
    package static let connectionsMax = 256
    /// A transfer that is paused for longer gives back its connection, if it can go on with another one: servers hang up on
    /// who does not read.
    package static let pausedConnectionMax = Duration.seconds(5)
    /// A connection that breaks so soon after a pause broke because of it. What the kernel had received by then, a few
    /// megabytes, comes before the end is seen.
    package static let pauseBlameMax = Duration.seconds(5)
    /// When no transfer has run for so long, the connections are closed: what follows from a download that ended comes
    /// earlier, and servers close theirs about as soon.
    package static let idleConnectionMax = Duration.seconds(10)

    /// Until a secure connection stands: three lost packets and their retransmissions fit in.
    package static let connectLimit = Duration.seconds(15)
    /// Below this many bytes a second for `stallTime` a transfer gives its place to another.
    package static let stallRate: Int64 = 1 << 10
    package static let stallTime = Duration.seconds(10)
    /// As browsers do: more in a row is a loop.
    package static let redirectsMax = 10
    /// Bytes of a redirect's body that are taken so that its connection can be used again.
    package static let redirectBodyMax: Int64 = 16 << 10

    /// Bytes of a proxy's URL.
    package static let proxyMax = 1 << 10

    // MARK: Retry

    /// The first pause; the range that the next is drawn from doubles each time.
    package static let retryPauseMin = Duration.seconds(1)
    /// A server that comes back is noticed within this. What a server asks for is bounded by it where somebody waits.
    package static let retryPauseMax = Duration.seconds(300)
    /// A busy server may ask a background download for more; longer would keep news from the device.
    package static let retryAfterMax = Duration.seconds(3600)
    /// What a server asks for is lengthened by up to a tenth, so that its clients do not come back all at once.
    package static let retryAfterSpread = 10
    /// A download that got no byte for this long is given up: its server is gone, not down.
    package static let givesUpAfter = Duration.seconds(24 * 3600)
    /// And not before it was asked for so often, or as often as its patience has room for at the longest pauses: a machine
    /// that slept for a day, or was set to another one, has not been trying all day.
    package static let unreachableTriesMin = 6
    /// Somebody looks at a foreground download: without network it fails almost at once.
    package static let foregroundOfflineLimit = Duration.seconds(3)
    /// An installation waits a few seconds for the network, then the app becomes launchable without its asset.
    package static let essentialOfflineLimit = Duration.seconds(5)
    /// Devices that get their network back together come to a server apart; more would not be "at once".
    package static let networkSpread = Duration.milliseconds(500)
    /// Between two such occasions; doubled each time, because a network that comes and goes must not replace the pauses
    /// between attempts,
    package static let networkRestMin = Duration.seconds(1)
    package static let networkRestMax = Duration.seconds(30)
    /// until the network was quiet for so long.
    package static let networkCalm = Duration.seconds(60)
    /// News of the kernel about a network are gathered this long: an address and its route come one after the other.
    package static let networkSettleTime = Duration.milliseconds(100)
    /// A machine that wakes from sleep, or has just begun, has this long to find its network before a background
    /// download whose time is up is given up.
    package static let networkWakeTime = Duration.seconds(60)
    /// An installation rides out the hiccup of a server, not its outage.
    package static let essentialServerLimit = Duration.seconds(30)

    /// What the setting `patience` may be: less is no retry at all, more no news at all.
    package static let patienceMin = Duration.seconds(1)
    package static let patienceMax = Duration.seconds(30 * 86_400)

    // MARK: Space

    /// Background downloads leave a twentieth of the disk free,
    package static let spaceFloorShare: Int64 = 20
    /// at least what a desktop needs to go on without trouble,
    package static let spaceFloorMin: Int64 = 1 << 30
    /// but no more than helps anybody,
    package static let spaceFloorMax: Int64 = 10 << 30
    /// and never more than a quarter: else nothing could be fetched to a small disk.
    package static let spaceFloorShareMax: Int64 = 4
    /// Room that a download of unknown size must have, to begin and after each sync: what is in memory on its way.
    package static let unknownSizeRoom: Int64 = 1 << 20
    /// A smaller file is on the disk as soon as its room could be set aside.
    package static let reservedSizeMin: Int64 = 1 << 20
    /// After so many looks in vain, some ten minutes, whatever waits for room is weighed anew.
    package static let spaceLooksMax = 14
    /// A look at the file system holds so long for the downloads that start; what they take is counted.
    package static let spaceViewTime = Duration.seconds(1)

    // MARK: Partial files

    /// Bytes received between two syncs: what a power cut may cost.
    package static let syncBytes: Int64 = 16 << 20
    /// Time between two syncs while bytes arrive.
    package static let syncTime = Duration.seconds(2)
    /// Bytes of a file that are read and hashed in one go: short enough that transfers take turns.
    package static let digestReadMax: Int64 = 4 << 20
    /// Bytes of a body's beginning that are looked at to see whether it is a web page.
    package static let pageBeginningMax = 64
    /// Between two progress reports of one transfer.
    package static let progressTime = Duration.milliseconds(100)
    /// What nobody answers, begin, pause and progress, reaches a process at most so late after the last that it was told:
    /// hundreds of small files a second then wake it only now and then.
    package static let reportTime = Duration.milliseconds(4)

    // MARK: Finished files

    /// Where files finish so soon after each other, one waits so long for the next: what the disk does for one it then does
    /// for all of them.
    package static let gatheringTime = Duration.milliseconds(10)
    /// Files that one job of the disk moves: their folders are synced together. With more the first would wait for the
    /// last for no gain: by then a sync is a small part.
    package static let movesMax = 256
    /// Files that one folder takes until they are handed over: a few blocks of names.
    package static let vendedFilesMax = 1024

    // MARK: Requests

    /// Bytes of an identifier.
    package static let identifierMax = 1 << 10
    /// Bytes of a URL: what servers commonly accept.
    package static let urlMax = 8 << 10
    /// Bytes of a request body: it is kept in the store.
    package static let requestBodyMax = 64 << 10
    /// Header fields of one request, and bytes of all of them.
    package static let headerFieldsMax = 64
    package static let headerBytesMax = 16 << 10
    package static let priorityMin = -1000
    package static let priorityMax = 1000
    /// Downloads that one content request may answer.
    package static let answerDownloadsMax = 100_000
    /// Bytes of such an answer as the extension sends it: all of it is in memory until it was checked. Six hundred for each
    /// download of the longest answer.
    package static let answerBytesMax = 64 << 20
    /// Bytes of a manifest when no allowance bounds it.
    package static let manifestMax: Int64 = 256 << 20

    // MARK: Service

    /// Before the second try of what the store or the disk did not take and nothing can go on without.
    package static let storagePauseMin = Duration.seconds(2)
    /// Room on a full disk is noticed within this; each try writes a journal row.
    package static let storagePauseMax = Duration.seconds(60)

    /// The pause after so many tries of such work in a row: it doubles from the shortest to the longest.
    package static func storagePause(afterTries tries: Int) -> Duration {
        var pause = storagePauseMin
        for _ in 1..<max(tries, 1) where pause < storagePauseMax { pause *= 2 }
        return min(pause, storagePauseMax)
    }

    /// A service that nobody needs exits after this long.
    package static let idleExit = Duration.seconds(60)
    /// An installation that ended stays known for those who still follow it.
    package static let installationMemory = Duration.seconds(600)
}
