// Why something waits, was refused, killed, purged or failed: one word for machines, one sentence for people.

/// The machine-readable reason of a journal row.
package enum Reason: String, Hashable, Sendable, CaseIterable, Codable {
    case none
    case requested
    case gate
    case essentialFirst = "essential-first"
    case concurrency
    case backoff
    case offline
    case http
    case network
    case stall
    case size
    case digest
    case domain
    case allowance
    case space
    case policy
    case budget
    case memory
    case crash
    case timeout
    case duplicate
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
}

/// What a journal row tells of.
package enum JournalEvent: String, Hashable, Sendable, CaseIterable, Codable {
    case serviceStarted = "service-started"
    case serviceStopped = "service-stopped"
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
    case extensionLaunched = "extension-launched"
    case extensionCalled = "extension-called"
    case extensionAnswered = "extension-answered"
    case extensionEnded = "extension-ended"
    case extensionRefused = "extension-refused"
    case extensionOutput = "extension-output"
    case downloadQueued = "download-queued"
    case downloadRefused = "download-refused"
    case downloadBegan = "download-began"
    case downloadPaused = "download-paused"
    case downloadPromoted = "download-promoted"
    case downloadDemoted = "download-demoted"
    case downloadWaits = "download-waits"
    case downloadFinished = "download-finished"
    case downloadFailed = "download-failed"
    case downloadCancelled = "download-cancelled"
    case messageDelivered = "message-delivered"
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
    case settingChanged = "setting-changed"
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
