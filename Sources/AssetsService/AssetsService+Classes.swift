// Promotion and demotion: a download goes on as one of another class, at the same byte.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer

extension AssetsService {
    /// A connection of an app closed: what it held in the foreground goes on in the background.
    package func foregroundConnectionEnded(_ connection: Int) async {
        for id in foregroundHolders.keys.sorted() where foregroundHolders[id]?.contains(connection) == true {
            foregroundHolders[id]?.remove(connection)
            guard foregroundHolders[id]?.isEmpty == true else { continue }
            foregroundHolders[id] = nil
            guard let record = try? await downloadRecord(id: id), record.isLive, record.transferClass == .foreground
            else { continue }
            _ = try? await change(record, to: .background, .downloadDemoted)
        }
    }

    /// A transfer that runs is paused, its row changed, and goes on on the same connection; any other starts as soon as
    /// its new class has room, also one that was to wait.
    func change(_ record: DownloadRecord, to transferClass: TransferClass, _ event: JournalEvent)
        async throws(AssetsError) -> DownloadRecord
    {
        var record = record
        let before = record.transferClass
        await pauseForChange(record)
        // Who looks at it now has waited for nothing yet.
        if transferClass != .background { record.retry = RetryHistory() }
        journal(
            event, event == .downloadPromoted ? .requested : .disconnected, app: record.app, download: record.id,
            "\(before) to \(transferClass)")
        var changes: [StoreChange] = [.setDownloadClass(id: record.id, transferClass)]
        if record.notBefore != nil || transferClass != .background {
            changes.append(
                .setDownloadWait(
                    id: record.id, notBefore: nil, reason: .none, detail: "", retry: record.retry,
                    attempts: record.attempts))
        }
        do throws(AssetsError) { try await commit(changes) } catch {
            seams.transfers.resume(record.id, as: before)
            throw error
        }
        record.transferClass = transferClass
        record.notBefore = nil
        if let transfer = running[record.id] {
            transfer.record.transferClass = transferClass
            queue.change(record.id, to: transferClass, at: seams.loop.now)
            seams.transfers.resume(record.id, as: transferClass)
            // Its place in the old class is free.
            pumpSoon()
        } else {
            queue.remove(id: record.id, app: record.app)
            enqueue(record)
        }
        return record
    }

    private func pauseForChange(_ record: DownloadRecord) async {
        guard let transfer = running[record.id] else { return }
        transfer.isChangingClass = true
        transfer.changedClassAt = seams.loop.now
        await seams.transfers.pause(record.id)
        if running[record.id] != nil { tellDelegates(of: record.app, .paused(record)) }
    }
}
