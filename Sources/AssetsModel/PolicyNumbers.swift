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
    package static let openRoundsMax = 64
    /// Times that an extension may die in the callback of one message before it is given up.
    package static let deliveriesMax = 5
    /// Pause after the first death in a callback; it doubles each time.
    package static let redeliveryPause = Duration.seconds(2)

    // MARK: Challenges

    /// Apps that run need a moment to connect to a service that was started again.
    package static let reconnectTime = Duration.seconds(2)
    /// A challenge that nobody has answered so long after it was delivered: the server has given up by then as well.
    package static let challengeLimit = Duration.seconds(30)
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

    /// An idle extension is ended this long after its last entry point returned.
    package static let extensionGrace = Duration.seconds(10)
    /// Between asking an extension to end and killing it.
    package static let terminationGrace = Duration.milliseconds(500)

    // MARK: Transfers at once

    package static let foregroundTransfersMax = 12
    /// Discretionary work leaves the device to its user.
    package static let backgroundTransfersMax = 3
    /// Fairness between apps and politeness to servers.
    package static let transfersPerAppAndHostMax = 6
    package static let transfersPerHostMax = 12
    /// Queue entries of each class held in memory; the queue itself lives in the store.
    package static let queueWindowMax = 64

    // MARK: Connections

    /// Until a secure connection stands: three lost packets and their retransmissions fit in.
    package static let connectLimit = Duration.seconds(15)
    /// Below this many bytes a second for `stallTime` a transfer gives its place to another.
    package static let stallRate: Int64 = 1 << 10
    package static let stallTime = Duration.seconds(10)
    /// As browsers do: more in a row is a loop.
    package static let redirectsMax = 10
    /// Bytes of a redirect's body that are taken so that its connection can be used again.
    package static let redirectBodyMax: Int64 = 16 << 10

    // MARK: Retry

    /// The first pause; the range that the next is drawn from doubles each time.
    package static let retryPauseMin = Duration.seconds(1)
    /// A server that comes back is noticed within this, and it bounds what a server may ask for.
    package static let retryPauseMax = Duration.seconds(300)
    /// A download that got no byte for this long is given up: its server is gone, not down.
    package static let givesUpAfter = Duration.seconds(24 * 3600)
    /// Somebody looks at a foreground download: without network it fails almost at once.
    package static let foregroundOfflineLimit = Duration.seconds(3)
    /// An installation waits a few seconds for the network, then the app becomes launchable without its asset.
    package static let essentialOfflineLimit = Duration.seconds(5)
    /// An installation rides out the hiccup of a server, not its outage.
    package static let essentialServerLimit = Duration.seconds(30)

    // MARK: Partial files

    /// Bytes received between two syncs: what a power cut may cost.
    package static let syncBytes: Int64 = 16 << 20
    /// Time between two syncs while bytes arrive.
    package static let syncTime = Duration.seconds(2)
    /// Between two progress reports of one transfer.
    package static let progressTime = Duration.milliseconds(100)

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
    package static let priorityDefault = 0
    package static let priorityMax = 1000
    /// Downloads of one app in the queue.
    package static let queuedDownloadsMax = 200_000
    /// Downloads that one content request may answer.
    package static let answerDownloadsMax = 100_000
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
