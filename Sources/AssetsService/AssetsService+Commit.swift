// Everything that must survive goes through `commit`: one transaction, with the journal rows that tell of it.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

/// What one caller wants written. Used on the service's executor only.
final class CommitRequest {
    let changes: [StoreChange]
    private var outcome: Result<[Int64], StoreError>?
    private var waiter: CheckedContinuation<Void, Never>?

    init(_ changes: [StoreChange]) { self.changes = changes }

    func end(_ outcome: Result<[Int64], StoreError>) {
        self.outcome = outcome
        waiter?.resume()
        waiter = nil
    }

    /// The sequences of the downloads it inserted, once all of it is on stable storage.
    func wait(_ service: isolated AssetsService) async throws(StoreError) -> [Int64] {
        await withCheckedContinuation { continuation in
            // Asked in here, because this body may run as a job of its own, after others.
            if outcome == nil { waiter = continuation } else { continuation.resume() }
        }
        guard let outcome else { preconditionFailure("a commit without an outcome") }
        return try outcome.get()
    }
}

extension AssetsService {
    /// Writes changes, pending journal rows and what else nobody waits for in one transaction, together with what others want written
    /// at this moment. Returns the sequences of inserted downloads.
    ///
    /// A disk takes one transaction of a hundred downloads in little more time than one of a single download.
    ///
    /// - Parameter delay: How long it may wait for what others want written.
    @discardableResult
    func commit(_ changes: [StoreChange], waiting delay: Duration = .zero) async throws(AssetsError) -> [Int64] {
        guard !changes.isEmpty || !pendingJournal.isEmpty || !pendingChanges.isEmpty else { return [] }
        let request = CommitRequest(changes)
        commitRequests.append(request)
        if delay == .zero || commitRequests.count >= PolicyNumbers.movesMax {
            beginCommit()
        } else if commitTimer == nil, !isCommitting {
            commitTimer = seams.loop.schedule(after: delay) { self.assumeIsolated { $0.beginCommit() } }
        }
        do throws(StoreError) { return try await request.wait(self) } catch { throw AssetsError(error) }
    }

    private func beginCommit() {
        if let timer = commitTimer { seams.loop.cancel(timer) }
        commitTimer = nil
        guard !isCommitting else { return }
        isCommitting = true
        // A job of its own, behind those that are ready: what they want written comes with it.
        launch { service in await service.commitRequested() }
    }

    private func commitRequested() async {
        while !commitRequests.isEmpty {
            let requests = commitRequests
            commitRequests = []
            do throws(StoreError) {
                try await write(requests)
            } catch {
                guard requests.count > 1 else {
                    requests[0].end(.failure(error))
                    continue
                }
                // What one of them may not do must not keep the others from theirs.
                for request in requests {
                    do throws(StoreError) { try await write([request]) } catch { request.end(.failure(error)) }
                }
            }
        }
        isCommitting = false
    }

    /// One transaction. When it fails, what waited for company waits on.
    private func write(_ requests: [CommitRequest]) async throws(StoreError) {
        let entries = pendingJournal
        let others = pendingChanges
        pendingJournal = []
        pendingChanges = []
        var sequences: ArraySlice<Int64>
        do throws(StoreError) {
            let changes = requests.flatMap(\.changes) + others
            sequences = try await seams.store.applyHere(changes, journal: entries).sequences[...]
        } catch {
            pendingJournal = entries + pendingJournal
            pendingChanges = others + pendingChanges
            throw error
        }
        if !entries.isEmpty { tellJournalWatchers() }
        for request in requests {
            let count = request.changes.reduce(0) { if case .insertDownload = $1 { $0 + 1 } else { $0 } }
            request.end(.success(Array(sequences.prefix(count))))
            sequences = sequences.dropFirst(count)
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
