// When an attempt's bytes are on stable storage, and what it means when they cannot be written.
internal import AssetsModel
internal import AssetsOS
internal import Glibc

extension TransferRun {
    func sync() {
        guard !isSyncing, let file else { return }
        unsyncedSince = nil
        // It came in one piece, and the write of that was a sync as well. Asked only when no write is under way any more.
        if isComplete, let fresh = file as? FreshFile, fresh.isSynced { return synced(upTo: length, nil) }
        isSyncing = true
        engine.syncLater(
            number, file, upTo: length, folder: isNameDurable || isComplete ? nil : folder,
            isDiscretionary: isDiscretionary)
        isNameDurable = true
    }

    /// A file that is all there gets another name at once, which is then made durable.
    private var isComplete: Bool {
        if case .closing(.received) = phase { true } else { false }
    }

    private var folder: String? {
        spec.partialPath.lastIndex(of: "/").map { String(spec.partialPath[..<$0]) } ?? "."
    }

    /// The sync that was asked for is done.
    func synced(upTo offset: Int64, _ failure: SystemCallError?) {
        isSyncing = false
        if let failure, !isOver {
            // The kernel may have dropped what it could not write: only what was synced before is surely there.
            stopListening()
            return drain { run in
                run.writes = nil
                run.keepSynced()
                run.end(.interrupted(run.storageInterruption(failure)))
            }
        }
        if isSyncStale {
            isSyncStale = false
            if case .closing = phase { sync() }
            return
        }
        syncedOffset = offset
        // The row of a complete file says more.
        if !isComplete { reportCheckpoint() }
        switch phase {
        case .closing(let outcome):
            if length > syncedOffset { sync() } else { end(outcome) }
        case .running:
            if let lacking = try? roomLacks() {
                stopListening()
                return drain { $0.close(.interrupted(lacking)) }
            }
            // What came meanwhile is covered by the next sync; its time is counted from now.
            if length > syncedOffset, unsyncedSince == nil {
                unsyncedSince = clock.now
                if timer == nil { arm(at: clock.now + PolicyNumbers.syncTime) }
            }
        case .draining, .checking, .ended:
            break
        }
    }

    /// Cuts the file to what was synced before, and puts its note back, which the failed sync has taken away.
    private func keepSynced() {
        let kept = note
        note = nil
        guard (try? cut(to: syncedOffset)) != nil, let kept else { return }
        try? setNote(kept)
    }

    /// Ends once all bytes are on stable storage.
    func close(_ outcome: TransferOutcome) {
        phase = .closing(outcome)
        reportProgress()
        // A file received anew may be as long as what was synced of another version: it is always synced.
        if !isComplete, length <= syncedOffset, !isSyncing { return end(outcome) }
        sync()
    }

    func reportCheckpoint() {
        guard let point = plan?.resumePoint(syncedOffset: syncedOffset) else { return }
        report(.checkpoint(point))
    }
}
