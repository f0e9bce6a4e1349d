// Why something waits, was refused, killed, purged or failed: one word for machines, one sentence for people.

/// The machine-readable reason of a journal row.
package enum Reason: String, Hashable, Sendable, CaseIterable, Codable {
    case none
    case requested
    case gate
    case essentialFirst = "essential-first"
    case concurrency
    /// It has run for a while and stopped for others.
    case timeSlice = "time-slice"
    case backoff
    case offline
    case http
    case network
    /// The server could not prove who it is: a network that asks to sign in first, a wrong clock, or a wrong server.
    case certificate
    /// The proxy cannot be reached, or does not let the request through.
    case proxy
    case stall
    /// The network answers itself, with a page to sign in.
    case portal
    case size
    case digest
    case domain
    case allowance
    case space
    case policy
    case budget
    case memory
    /// A file lock was held when the process was to be stopped.
    case lock
    case crash
    case timeout
    case duplicate
    /// Who has its message has not answered yet.
    case answer
    case notHandled = "not-handled"
    case notImplemented = "not-implemented"
    case unmoved
    case restart
    case cancelled
    case disconnected
    case bundle
    case archive
    case manifest
    case developerMode = "developer-mode"
    case declared
    case invalid
    case volume
    /// Another process of the app has exclusive control, or had it.
    case control
    /// A server asks who it is, or was not satisfied.
    case challenge
    /// The time for it has not come, or has.
    case interval

    /// What waits for one of these is tried again when the network changes.
    package static let ofNetwork: [Reason] = [.offline, .network, .certificate, .proxy, .portal]
}

/// What a journal row tells of.
package enum JournalEvent: String, Hashable, Sendable, CaseIterable, Codable {
    case serviceStarted = "service-started"
    case serviceStopped = "service-stopped"
    /// What this machine and its libcurl let transfers do.
    case transfersReady = "transfers-ready"
    /// What this machine closes extensions off with.
    case sandboxReady = "sandbox-ready"
    /// What this machine lets the service do about extensions.
    case extensionsReady = "extensions-ready"
    case recovered
    case installStarted = "install-started"
    case installStaged = "install-staged"
    case installFailed = "install-failed"
    case installCancelled = "install-cancelled"
    case gateShut = "gate-shut"
    case gateOpened = "gate-opened"
    case launchRefused = "launch-refused"
    case launched
    case uninstalled
    case manifestFetched = "manifest-fetched"
    /// When the extension is to be asked next, and why then.
    case eventPlanned = "event-planned"
    /// An occasion on which the extension of an installed app is asked what to download.
    case eventBegan = "event-began"
    case eventEnded = "event-ended"
    case eventRefused = "event-refused"
    case extensionLaunched = "extension-launched"
    case extensionCalled = "extension-called"
    case extensionAnswered = "extension-answered"
    case extensionEnded = "extension-ended"
    /// It has answered and nothing else is to be said to it.
    case extensionSuspended = "extension-suspended"
    case extensionRefused = "extension-refused"
    case extensionOutput = "extension-output"
    case downloadQueued = "download-queued"
    case downloadRefused = "download-refused"
    case downloadBegan = "download-began"
    /// Bytes that were there are fetched again.
    case downloadStartedOver = "download-started-over"
    case downloadPaused = "download-paused"
    case downloadPromoted = "download-promoted"
    case downloadDemoted = "download-demoted"
    case downloadWaits = "download-waits"
    case downloadFinished = "download-finished"
    case downloadFailed = "download-failed"
    case downloadCancelled = "download-cancelled"
    case messageDelivered = "message-delivered"
    /// The extension died in its callback, and gets it again later.
    case messageWaits = "message-waits"
    case messageHandled = "message-handled"
    case messageClosed = "message-closed"
    case fileDeleted = "file-deleted"
    case challengeAsked = "challenge-asked"
    case challengeAnswered = "challenge-answered"
    case challengeTimedOut = "challenge-timed-out"
    case clientConnected = "client-connected"
    case clientRefused = "client-refused"
    case clientCutOff = "client-cut-off"
    /// Somebody else has exclusive control. Who gets it at once, and who gives it back, leaves no row: apps do that
    /// thousands of times a second.
    case controlWaits = "control-waits"
    case controlAcquired = "control-acquired"
    case controlRefused = "control-refused"
    /// Others wait for somebody who has not given it back for long.
    case controlHeld = "control-held"
    case settingChanged = "setting-changed"
    case networkChanged = "network-changed"
    case warning
}

/// One line of the device's journal, before it got its number.
package struct JournalEntry: Hashable, Sendable {
    /// Calendar clock, since 1970.
    package var time: Duration
    package var event: JournalEvent
    package var reason: Reason
    /// Bundle id; empty for the device itself.
    package var app: String
    /// Unique identifier of a download; empty where none is meant.
    package var download: String
    /// A sentence for people.
    package var detail: String

    package init(
        time: Duration, event: JournalEvent, reason: Reason = .none, app: String = "", download: String = "",
        detail: String = ""
    ) {
        self.time = time
        self.event = event
        self.reason = reason
        self.app = app
        self.download = download
        self.detail = detail
    }
}
