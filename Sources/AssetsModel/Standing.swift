// How something of an app stands: the one rule that holds it now, and what would release it. It is what `why` answers.

/// Something of an app as it stands now.
package struct Standing: Hashable, Sendable {
    package enum Subject: String, Hashable, Sendable, CaseIterable {
        case gate
        case `extension`
        case control
        /// The next periodic check, or the occasion on which the extension is being asked.
        case check
        case download
        /// A download has ended, and nobody has handled its message.
        case message
        /// A message was given up, and its file is kept.
        case keptFile = "kept-file"
    }

    package var subject: Subject
    /// Of a download; empty where it is about none.
    package var identifier: String
    /// Unique identifier of a download; empty where it is about none.
    package var download: String
    /// The rule that holds it; nil where nothing does.
    package var reason: Reason?
    /// How it is, or what holds it: a sentence for people.
    package var detail: String
    /// What releases it, to be read after "released when"; empty where nothing holds it.
    package var release: String
    /// When it goes on at the latest, by the calendar clock; nil where that is no matter of time.
    package var latest: Duration?

    package var isHeld: Bool { reason != nil }

    /// Something that nothing holds.
    package init(free subject: Subject, _ detail: String, latest: Duration? = nil) {
        self.init(subject, nil, detail, release: "", latest: latest)
    }

    /// Something that a rule holds.
    package init(
        _ subject: Subject, heldBy reason: Reason, _ detail: String, release: String, latest: Duration? = nil
    ) {
        self.init(subject, reason, detail, release: release, latest: latest)
    }

    private init(_ subject: Subject, _ reason: Reason?, _ detail: String, release: String, latest: Duration?) {
        self.subject = subject
        identifier = ""
        download = ""
        self.reason = reason
        self.detail = detail
        self.release = release
        self.latest = latest
    }

    /// The same, of that download.
    package func of(_ record: DownloadRecord) -> Standing {
        var result = self
        (result.identifier, result.download) = (record.request.identifier, record.id)
        return result
    }
}

extension Duration {
    /// "12 s" or "350 ms".
    package var shown: String {
        let (seconds, attoseconds) = components
        return seconds >= 1 ? "\(seconds) s" : "\(attoseconds / 1_000_000_000_000_000) ms"
    }
}
