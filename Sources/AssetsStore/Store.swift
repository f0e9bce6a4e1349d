// What must survive: apps, downloads, intents, settings and the journal of one device.
package import AssetsModel
package import AssetsOS

/// The device database. SQLite's calls block the executor it is given, each as long as a commit takes.
///
/// Every `apply` is one transaction and is on stable storage when it returns. Dropping the store without `close()`
/// loses nothing: it is as if the process had been killed.
package actor Store {
    /// Bytes of the largest row: a request's body and headers fit into one message of the wire.
    package static let rowSizeMax = 4 << 20
    /// Bytes of pages kept in memory.
    package static let cacheSizeMax = 2 << 20
    /// Bytes of the write-ahead log beyond which `apply` writes it back although nobody called `checkpoint`.
    package static let logSizeMax = 16 << 20
    /// Rows of a page, whatever limit the caller names.
    package static let pageMax = 1000
    /// Journal rows that are kept.
    package static let journalMax: Int64 = 100_000
    /// Journal rows beyond `journalMax` that may wait for an idle moment.
    package static let journalSlack: Int64 = 10_000
    /// Journal rows removed in one transaction.
    package static let journalTrimMax: Int64 = 1000
    /// Damaged databases kept beside the good one.
    package static let damagedCopiesMax = 16

    /// How far a checkpoint goes.
    package enum Checkpoint: Sendable {
        /// Writes the log back into the database.
        case passive
        /// Also cuts the log to nothing: before a long sleep.
        case truncate
    }

    private let executor: any LoopExecutor
    private let path: String
    private let vfs: String?
    private var database: Database?

    /// Where a damaged database was moved when the store was opened; nil when there was no damage.
    package private(set) var damagedCopy: String?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens the database at `path`, makes it when missing, and migrates it to today's schema.
    ///
    /// A damaged database is moved to `<path>.damaged-<n>` and a new one is made: see `damagedCopy`. With a `vfs` other
    /// than the default one damage is thrown instead.
    ///
    /// - Throws: `busy` when another process has it, `newerSchema` and `foreign` when it is not for us to touch.
    package init(path: String, vfs: String? = nil, on executor: any LoopExecutor) async throws(StoreError) {
        try await self.init(path: path, vfs: vfs, on: executor, schema: .current)
    }

    init(path: String, vfs: String?, on executor: any LoopExecutor, schema: Schema) async throws(StoreError) {
        self.executor = executor
        self.path = path
        self.vfs = vfs
        // From here on this runs on the executor.
        executor.checkIsolated()
        do throws(StoreError) {
            database = try Database(path: path, vfs: vfs, schema: schema)
        } catch {
            guard error.code == .corrupt, vfs == nil else { throw error }
            damagedCopy = try Database.setAside(path)
            database = try Database(path: path, vfs: vfs, schema: schema)
        }
    }

    // MARK: Ending

    /// Writes the log back and closes the database; later calls throw `closed`.
    package func close() throws(StoreError) {
        guard let database else { return }
        self.database = nil
        try database.checkpoint(.truncate)
    }

    /// Closes a database that turned out to be damaged and moves it aside, so that the next start begins anew.
    ///
    /// - Returns: where it is now.
    package func setAside() throws(StoreError) -> String {
        guard vfs == nil else { throw StoreError(.other, "set \(path) aside: it is not on the default file system") }
        database = nil
        return try Database.setAside(path)
    }

    // MARK: Upkeep

    /// Writes the log back: call it when idle.
    package func checkpoint(_ mode: Checkpoint) throws(StoreError) {
        try opened().checkpoint(mode == .passive ? .passive : .truncate)
    }

    /// Removes one batch of journal rows beyond `journalMax`: call it when idle.
    ///
    /// - Returns: true while more are left.
    package func trimJournal() throws(StoreError) -> Bool {
        let database = try opened()
        guard database.counters.journalCount > Self.journalMax else { return false }
        try database.transaction { () throws(StoreError) in try database.trimJournal() }
        return database.counters.journalCount > Self.journalMax
    }

    /// Bytes in the write-ahead log.
    package func logSize() throws(StoreError) -> Int { try opened().logSize }

    // MARK: Changing

    /// Makes all changes and writes all journal rows in one transaction, or does nothing and throws.
    ///
    /// After `io` the transaction is undone for this run; a power cut right then may yet bring it back, whole.
    package func apply(_ changes: [StoreChange], journal: [JournalEntry] = []) throws(StoreError) -> ApplyResult {
        let database = try opened()
        if changes.isEmpty && journal.isEmpty { return ApplyResult() }
        let result = try database.transaction { () throws(StoreError) in
            var result = ApplyResult()
            for change in changes { try database.perform(change, &result) }
            for entry in journal { result.journalNumbers.append(try database.insert(entry)) }
            if database.counters.journalCount > Self.journalMax + Self.journalSlack { try database.trimJournal() }
            return result
        }
        // The transaction stands whatever becomes of this: what fails here fails again at the next checkpoint.
        if database.logSize > Self.logSizeMax { try? database.checkpoint(.passive) }
        return result
    }

    // MARK: Without a job of its own where the caller runs on the store's executor

    /// As `apply`.
    package nonisolated func applyHere(
        _ changes: [StoreChange], journal: [JournalEntry] = []
    ) async throws(StoreError) -> ApplyResult {
        try await here { store in
            Result { () throws(StoreError) in try store.apply(changes, journal: journal) }
        }.get()
    }

    /// As `download(id:)`.
    package nonisolated func downloadHere(id: String) async throws(StoreError) -> DownloadRecord? {
        try await here { store in Result { () throws(StoreError) in try store.download(id: id) } }.get()
    }

    private nonisolated func here<Value: Sendable>(
        _ body: @Sendable (isolated Store) -> Result<Value, StoreError>
    ) async -> Result<Value, StoreError> {
        if let outcome = performNow(body) { return outcome }
        return await perform(body)
    }

    /// nil where the caller runs on another executor.
    private nonisolated func performNow<Value: Sendable>(
        _ body: @Sendable (isolated Store) -> Result<Value, StoreError>
    ) -> Result<Value, StoreError>? {
        executor.isIsolatingCurrentContext() == true ? assumeIsolated(body) : nil
    }

    private func perform<Value: Sendable>(
        _ body: @Sendable (isolated Store) -> Result<Value, StoreError>
    ) -> Result<Value, StoreError> { body(self) }

    func opened() throws(StoreError) -> Database {
        guard let database else { throw StoreError(.closed, "use \(path): the store is closed") }
        return database
    }
}
