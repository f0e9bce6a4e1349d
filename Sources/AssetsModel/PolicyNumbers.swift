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

    /// A service that nobody needs exits after this long.
    package static let idleExit = Duration.seconds(60)
    /// An installation that ended stays known for those who still follow it.
    package static let installationMemory = Duration.seconds(600)
}
