// Everything that must survive goes through `commit`: one transaction, with the journal rows that tell of it.
package import AssetsModel
internal import AssetsOS
package import AssetsStore

extension AssetsService {
    /// How long a row that nothing depends on may wait for company.
    private static let journalDelay = Duration.milliseconds(100)

    /// Notes a journal row; it is written with the next commit, soon at the latest.
    func journal(
        _ event: JournalEvent, _ reason: Reason = .none, app: String = "", download: String = "", _ detail: String = ""
    ) {
        pendingJournal.append(
            JournalEntry(
                time: calendarNow, event: event, reason: reason, app: app, download: download, detail: detail))
        planFlush()
    }

    /// Closes an intent whose effect is on stable storage with the next commit, soon at the latest.
    func closeSoon(intent id: String) {
        pendingClosures.append(.closeIntent(id: id))
        planFlush()
    }

    private func planFlush() {
        guard !isFlushPlanned else { return }
        isFlushPlanned = true
        _ = seams.loop.schedule(after: Self.journalDelay) { self.assumeIsolated { $0.flushJournal() } }
    }

    private func flushJournal() {
        isFlushPlanned = false
        guard !pendingJournal.isEmpty || !pendingClosures.isEmpty else { return }
        launch { service in _ = try? await service.commit([]) }
    }

    /// Writes changes, pending journal rows and closed intents in one transaction. Returns the sequences of inserted
    /// downloads.
    @discardableResult
    func commit(_ changes: [StoreChange]) async throws(AssetsError) -> [Int64] {
        let entries = pendingJournal
        let closures = pendingClosures
        guard !changes.isEmpty || !entries.isEmpty || !closures.isEmpty else { return [] }
        pendingJournal = []
        pendingClosures = []
        do throws(StoreError) {
            let result = try await seams.store.apply(changes + closures, journal: entries)
            if !entries.isEmpty { tellJournalWatchers() }
            return result.sequences
        } catch {
            pendingJournal = entries + pendingJournal
            pendingClosures = closures + pendingClosures
            throw AssetsError(error)
        }
    }

    /// Repeats work that nothing can go on without until store and disk take it. False when the service stops before
    /// they did: then nothing that builds on it may be done.
    func retryingStore(_ body: () async throws(AssetsError) -> Void) async -> Bool {
        var tries = 0
        while true {
            do throws(AssetsError) {
                try await body()
                return true
            } catch { journal(.warning, .space, error.description) }
            guard !isStopping else { return false }
            tries += 1
            await seams.loop.pause(for: PolicyNumbers.storagePause(afterTries: tries))
        }
    }

    func tellJournalWatchers() {
        for number in journalWatchers.keys.sorted() { journalWatchers[number]?() }
    }

    /// Calls `body` on the service's executor after journal rows were written, until `unwatchJournal`.
    package func watchJournal(_ body: @escaping @Sendable () -> Void) -> Int {
        nextWatcher += 1
        journalWatchers[nextWatcher] = body
        return nextWatcher
    }

    package func unwatchJournal(_ number: Int) { journalWatchers[number] = nil }

    /// Journal rows after `number`, oldest first.
    package func journalRows(app: String?, after number: Int64, limit: Int) async throws(AssetsError)
        -> [JournalRow]
    {
        try await commit([])
        do throws(StoreError) {
            return try await seams.store.journal(app: app, after: number, limit: limit)
        } catch { throw AssetsError(error) }
    }
}

extension AssetsError {
    /// A failed store call, as clients get it.
    init(_ error: StoreError) {
        switch error.code {
        case .duplicate:
            self.init(
                .downloadAlreadyScheduled, "a download with this identifier is already scheduled",
                remedy: "wait for it, cancel it or promote it")
        case .missing: self.init(.downloadNotScheduled, "no such download is queued or running")
        case .full:
            self.init(
                .storageFull, "the device's database cannot grow: the disk is full",
                remedy: "free some space and try again")
        default:
            self.init(.storageFailed, "the device's database failed: \(error)", remedy: "see the journal of the system")
        }
    }
}
