// A download as the store keeps it: what survives a kill at any instruction.

/// One row of the queue, from scheduling until its message was handled.
package struct DownloadRecord: Hashable, Sendable {
    /// Order of scheduling; given by the store.
    package var sequence: Int64
    /// Order of those with the same priority: its sequence, until it has stepped back for others. Given by the store.
    package var place: Int64
    /// Bundle id of the app; for an archive, the installation's id.
    package var app: String
    @Shared package var request: DownloadRequest
    package var transferClass: TransferClass
    package var state: State
    /// Transfers begun so far.
    package var attempts: Int
    package var retry: RetryHistory
    /// Calendar clock; not to be started before. After a death in the callback of its message: not to be told again before.
    package var notBefore: Duration?
    /// Why it waits.
    package var reason: Reason
    package var detail: String
    package var resume: ResumePoint?
    /// Bytes received when the row was last written: for display only.
    package var received: Int64
    /// Times that the extension died in the callback of its message.
    package var deaths: Int

    package enum State: Hashable, Sendable {
        /// Queued or running; which of them only the running service knows.
        case waiting
        /// All bytes are there and synced; the move to `target` was announced.
        case finishing(FinishIntent)
        /// The file is at its place and its message waits for somebody to handle it.
        case finished(FinishIntent)
        /// Ended without a file; the message waits.
        case failed(DownloadFailure)
    }

    package init(
        sequence: Int64 = 0, place: Int64? = nil, app: String, request: DownloadRequest, transferClass: TransferClass,
        state: State = .waiting, attempts: Int = 0, retry: RetryHistory = RetryHistory(), notBefore: Duration? = nil,
        reason: Reason = .none, detail: String = "", resume: ResumePoint? = nil, received: Int64 = 0,
        deaths: Int = 0
    ) {
        self.sequence = sequence
        self.place = place ?? sequence
        self.app = app
        self.request = request
        self.transferClass = transferClass
        self.state = state
        self.attempts = attempts
        self.retry = retry
        self.notBefore = notBefore
        self.reason = reason
        self.detail = detail
        self.resume = resume
        self.received = received
        self.deaths = deaths
    }

    package var id: String { request.uniqueIdentifier }

    /// The store has put it at the end of the queue.
    package mutating func queued(as sequence: Int64) {
        self.sequence = sequence
        place = sequence
    }
}

/// Everything about the move of a finished file that must be known to complete it after a crash.
package struct FinishIntent: Hashable, Sendable {
    /// Where the file goes, below the device directory.
    package var target: String
    package var inode: UInt64
    /// Bytes.
    package var length: Int64
    /// What the bytes were found to come to before this was written; nil where nobody had said what they should.
    package var digest: ContentDigest?

    package init(target: String, inode: UInt64, length: Int64, digest: ContentDigest? = nil) {
        self.target = target
        self.inode = inode
        self.length = length
        self.digest = digest
    }
}

/// What the retry rule remembers of earlier attempts; calendar clock.
package struct RetryHistory: Hashable, Sendable, Codable {
    /// Failures since the last byte.
    package var failures: Int
    /// The first failure since the last byte.
    package var firstFailure: Duration?

    package init(failures: Int = 0, firstFailure: Duration? = nil) {
        self.failures = failures
        self.firstFailure = firstFailure
    }
}
