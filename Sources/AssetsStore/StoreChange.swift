// What can be asked of the store, and what it answers beside the records of AssetsModel.
package import AssetsModel

/// One step of a transaction.
///
/// A step that changes a download fails with `missing` when there is none of that id; removing what is not there is
/// no error, so that recovery may repeat itself.
package enum StoreChange: Hashable, Sendable {
    case saveApp(AppRecord)
    /// Its downloads, plan and event go too, and what its extension used and was given up of its messages.
    case removeApp(String)
    case savePlan(app: String, PeriodicPlan)
    /// An app has one event at a time: another one is a `duplicate`.
    case openEvent(ContentEvent)
    case closeEvent(app: String)
    case saveInstallation(InstallationRecord)
    /// The downloads of its archive go too.
    case removeInstallation(String)
    /// The record's own `sequence` is ignored: the result tells which one it got.
    case insertDownload(DownloadRecord)
    case setDownloadState(id: String, DownloadRecord.State)
    case setDownloadClass(id: String, TransferClass)
    /// Foreground downloads go on in the background: nobody holds them any more.
    case demoteForegroundDownloads
    case setDownloadWait(
        id: String, notBefore: Duration?, reason: Reason, detail: String, retry: RetryHistory, attempts: Int)
    case setDownloadResume(id: String, ResumePoint?, received: Int64)
    /// Puts a download behind all others of its app and priority that are in the queue now.
    case stepBack(id: String)
    /// The extension died in the callback of a message; `notBefore` is of the calendar clock.
    case setMessageWait(id: String, deaths: Int, notBefore: Duration, detail: String)
    /// At most so many downloads that wait for one of these may start at once; their pauses begin anew, and the
    /// patience of background downloads that nothing but a missing network kept from being tried. `released` of the result
    /// tells how many they were.
    case releaseWaits([Reason], limit: Int)
    /// What is not to be done before a time may be done so much earlier: the calendar was set back.
    case setBackWaits(by: Duration)
    case removeDownload(id: String)
    /// Of an installed app; the oldest beyond those that are kept go. Nothing of an app that is not installed.
    case saveExtensionRun(ExtensionRun)
    /// The same for what an app's extension has used of its day.
    case saveRuntime(app: String, RuntimeLedger)
    /// Of an installed app; the oldest beyond those that are remembered go. Nothing of an app that is not installed.
    case saveGivenUp(GivenUpMessage)
    case removeGivenUp(id: String)
    /// nil forgets the setting.
    case setSetting(name: String, value: String?)
    /// Announces an effect outside the database; an open intent of that id is a `duplicate`.
    case openIntent(id: String, kind: String, payload: String)
    case closeIntent(id: String)
}

/// What a transaction gave out.
package struct ApplyResult: Hashable, Sendable {
    /// Sequences of the inserted downloads, in the order of their changes.
    package var sequences: [Int64] = []
    /// Numbers of the journal rows, in the order of their entries.
    package var journalNumbers: [Int64] = []
    /// Downloads that do not wait any more.
    package var released = 0
}

/// An effect that was announced and not closed.
package struct IntentRecord: Hashable, Sendable {
    package var id: String
    package var kind: String
    package var payload: String

    package init(id: String, kind: String, payload: String) {
        self.id = id
        self.kind = kind
        self.payload = payload
    }
}

/// A journal entry with its number: numbers grow by one and are never used twice.
package struct JournalRow: Hashable, Sendable {
    package var number: Int64
    package var entry: JournalEntry

    package init(number: Int64, entry: JournalEntry) {
        self.number = number
        self.entry = entry
    }
}

/// Live downloads in sum.
package struct DownloadCounts: Hashable, Sendable {
    package var count: Int
    /// Sum of the declared sizes, in bytes.
    package var size: Int64

    package init(count: Int = 0, size: Int64 = 0) {
        self.count = count
        self.size = size
    }
}
