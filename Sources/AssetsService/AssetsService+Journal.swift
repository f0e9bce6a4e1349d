// The journal: rows wait for the next commit, and who follows it is told.
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
    func closeSoon(intent id: String) { saveSoon(.closeIntent(id: id)) }

    /// Writes what nobody waits for with the next commit, soon at the latest.
    func saveSoon(_ change: StoreChange) {
        pendingChanges.append(change)
        planFlush()
    }

    private func planFlush() {
        guard !isFlushPlanned else { return }
        isFlushPlanned = true
        _ = seams.loop.schedule(after: Self.journalDelay) { self.assumeIsolated { $0.flushJournal() } }
    }

    private func flushJournal() {
        isFlushPlanned = false
        guard !pendingJournal.isEmpty || !pendingChanges.isEmpty else { return }
        launch { service in _ = try? await service.commit([]) }
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
