// What the store answers. Lists come in pages: ask again after the last sequence or number of the page before.
package import AssetsModel

extension Store {
    // MARK: Apps and installations

    /// All apps, by bundle id.
    package func apps() throws(StoreError) -> [AppRecord] {
        try opened().rows(.apps) { row throws(StoreError) in try row.app() }
    }

    package func app(_ id: String) throws(StoreError) -> AppRecord? {
        try opened().row(.app) { row throws(StoreError) in
            try row.bind(id, at: 1)
        } read: { row throws(StoreError) in
            try row.app()
        }
    }

    /// All installations, oldest first.
    package func installations() throws(StoreError) -> [InstallationRecord] {
        try opened().rows(.installations) { row throws(StoreError) in try row.installation() }
    }

    // MARK: Downloads

    /// Downloads in any state, of one app or of all, by sequence.
    package func downloads(app: String? = nil, after sequence: Int64 = 0, limit: Int) throws(StoreError)
        -> [DownloadRecord]
    {
        try page(app == nil ? .downloads : .downloadsOfApp, app, sequence, limit)
    }

    /// Downloads that wait or are being finished, by sequence.
    package func liveDownloads(app: String? = nil, after sequence: Int64 = 0, limit: Int) throws(StoreError)
        -> [DownloadRecord]
    {
        try page(app == nil ? .live : .liveOfApp, app, sequence, limit)
    }

    /// Downloads whose move to their place was announced and not closed, by sequence.
    package func finishing(after sequence: Int64 = 0, limit: Int) throws(StoreError) -> [DownloadRecord] {
        try page(.finishing, nil, sequence, limit)
    }

    /// Downloads that finished or failed and whose message was not handled yet, by sequence.
    package func messages(app: String? = nil, after sequence: Int64 = 0, limit: Int) throws(StoreError)
        -> [DownloadRecord]
    {
        try page(app == nil ? .messages : .messagesOfApp, app, sequence, limit)
    }

    /// The download of that unique identifier, in whatever state.
    package func download(id: String) throws(StoreError) -> DownloadRecord? {
        try opened().row(.downloadByID) { row throws(StoreError) in
            try row.bind(id, at: 1)
        } read: { row throws(StoreError) in
            try row.download()
        }
    }

    /// The live download of that app and identifier.
    package func download(app: String, identifier: String) throws(StoreError) -> DownloadRecord? {
        try opened().row(.liveDownload) { row throws(StoreError) in
            try row.bind(app, at: 1)
            try row.bind(identifier, at: 2)
        } read: { row throws(StoreError) in
            try row.download()
        }
    }

    /// Count and sizes of an app's live downloads of one class.
    package func counts(app: String, _ transferClass: TransferClass) throws(StoreError) -> DownloadCounts {
        let counts = try opened().row(.counts) { row throws(StoreError) in
            try row.bind(app, at: 1)
            try row.bind(Int64(transferClass.rawValue), at: 2)
        } read: { row throws(StoreError) in
            DownloadCounts(count: Int(row.int64(at: 0)), size: row.int64(at: 1))
        }
        return counts ?? DownloadCounts()
    }

    // MARK: Queue

    /// Apps that have something of a class in the queue, by the bytes of their ids; also what may not start yet counts.
    package func queuedApps(_ transferClass: TransferClass) throws(StoreError) -> [String] {
        let database = try opened()
        var apps: [String] = []
        while let app = try database.queuedApp(transferClass, after: apps.last ?? "") { apps.append(app) }
        return apps
    }

    /// An app's waiting downloads of a class that may start, best first: by priority, then by place.
    ///
    /// - Parameter now: Calendar clock; downloads that are not to be started before a later time are left out.
    package func queue(
        _ transferClass: TransferClass, app: String, at now: Duration, limit: Int
    ) throws(StoreError) -> [QueueEntry] {
        try opened().rows(.queueOfApp) { row throws(StoreError) in
            try row.bind(Int64(transferClass.rawValue), at: 1)
            try row.bind(app, at: 2)
            try row.bind(now.wholeMicroseconds, at: 3)
            try row.bind(Int64(Self.clamp(limit)), at: 4)
        } read: { row throws(StoreError) in
            QueueEntry(
                id: row.text(at: 0), app: app, url: row.text(at: 1), transferClass: transferClass,
                priority: Int(row.int64(at: 2)), place: row.int64(at: 3), size: row.int64(at: 4),
                received: row.int64(at: 5))
        }
    }

    /// When the next download of a class may start that may not yet at `time`; nil when none waits for a time.
    package func earliestNotBefore(_ transferClass: TransferClass, after time: Duration) throws(StoreError) -> Duration?
    {
        let found = try opened().row(.earliestNotBefore) { row throws(StoreError) in
            try row.bind(Int64(transferClass.rawValue), at: 1)
            try row.bind(time.wholeMicroseconds, at: 2)
        } read: { row throws(StoreError) in
            row.optionalInt64(at: 0)
        }
        return found.flatMap { $0 }.map { .microseconds($0) }
    }

    // MARK: Intents, settings, journal

    /// Open intents, oldest first.
    package func intents() throws(StoreError) -> [IntentRecord] {
        try opened().rows(.intents) { row throws(StoreError) in
            IntentRecord(id: row.text(at: 0), kind: row.text(at: 1), payload: row.text(at: 2))
        }
    }

    package func settings() throws(StoreError) -> [String: String] {
        let pairs = try opened().rows(.settings) { row throws(StoreError) in (row.text(at: 0), row.text(at: 1)) }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    /// Journal rows after `number`, of one app or of all.
    package func journal(app: String? = nil, after number: Int64 = 0, limit: Int) throws(StoreError) -> [JournalRow] {
        let query = app == nil ? Query.journal : .journalOfApp
        return try opened().rows(query) { row throws(StoreError) in
            if let app { try row.bind(app, at: 1) }
            try row.bind(number, at: 2)
            try row.bind(Int64(Self.clamp(limit)), at: 3)
        } read: { row throws(StoreError) in
            row.journalRow()
        }
    }

    /// The calendar as it was at the newest row of the journal.
    package func lastJournalTime() throws(StoreError) -> Duration? {
        try opened().row(.lastJournalTime) { _ throws(StoreError) in
        } read: { row throws(StoreError) in
            .microseconds(row.int64(at: 0))
        }
    }

    // MARK: Helpers

    private func page(_ query: Query, _ app: String?, _ sequence: Int64, _ limit: Int) throws(StoreError)
        -> [DownloadRecord]
    {
        try opened().rows(query) { row throws(StoreError) in
            if let app { try row.bind(app, at: 1) }
            try row.bind(sequence, at: 2)
            try row.bind(Int64(Self.clamp(limit)), at: 3)
        } read: { row throws(StoreError) in
            try row.download()
        }
    }

    private static func clamp(_ limit: Int) -> Int { max(0, min(limit, pageMax)) }
}

extension Database {
    /// The first app after `app`, by the bytes of its id, that has something of the class in the queue.
    fileprivate func queuedApp(_ transferClass: TransferClass, after app: String) throws(StoreError) -> String? {
        let found = try row(.nextQueuedApp) { row throws(StoreError) in
            try row.bind(Int64(transferClass.rawValue), at: 1)
            try row.bind(app, at: 2)
        } read: { row throws(StoreError) in
            row.optionalText(at: 0)
        }
        return found.flatMap { $0 }
    }
}

extension Statement {
    /// The app in the current row.
    fileprivate borrowing func app() throws(StoreError) -> AppRecord {
        guard let description = DescriptionCoding.decode(text(at: 1)),
            let source = InstallSource(rawValue: text(at: 3)), let gate = AppRecord.Gate(rawValue: text(at: 4))
        else { throw StoreError(.corrupt, "read app \(text(at: 0)): a value cannot be read") }
        return AppRecord(
            description: description, buildFolder: text(at: 2), source: source, gate: gate,
            installedAt: .microseconds(int64(at: 5)), launchedAt: optionalInt64(at: 6).map { .microseconds($0) },
            ledger: AllowanceLedger(essential: int64(at: 7), nonEssential: int64(at: 8)))
    }

    /// The installation in the current row.
    fileprivate borrowing func installation() throws(StoreError) -> InstallationRecord {
        guard let kind = InstallSource(rawValue: text(at: 2)), let phase = InstallPhase(rawValue: text(at: 3)) else {
            throw StoreError(.corrupt, "read installation \(text(at: 0)): a value cannot be read")
        }
        let error = optionalInt64(at: 7).map { number in
            AssetsError(.init(rawValue: Int(number)) ?? .internal, text(at: 8), remedy: text(at: 9))
        }
        return InstallationRecord(
            id: text(at: 0), source: text(at: 1), kind: kind, phase: phase, app: text(at: 4), buildFolder: text(at: 5),
            startedAt: .microseconds(int64(at: 6)), error: error)
    }

    /// The journal row in the current row; words of another version are no reason to hide it.
    fileprivate borrowing func journalRow() -> JournalRow {
        let entry = JournalEntry(
            time: .microseconds(int64(at: 1)), event: JournalEvent(rawValue: text(at: 2)) ?? .warning,
            reason: Reason(rawValue: text(at: 3)) ?? .none, app: text(at: 4), download: text(at: 5),
            detail: text(at: 6))
        return JournalRow(number: int64(at: 0), entry: entry)
    }
}
