// Promotion and demotion: a download goes on as one of another class, at the same byte.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer

extension AssetsService {
    /// A connection of an app closed: what it held in the foreground goes on in the background.
    package func foregroundConnectionEnded(_ connection: Int) async {
        let held = foregroundHolders.filter { $0.value.contains(connection) }.keys.sorted()
        for id in held { letGo(of: id, connection) }
        for id in held { await followHoldersSurely(of: id) }
    }

    /// Until store and disk take it.
    func followHoldersSurely(of id: String) async {
        _ = await retryingStore { () async throws(AssetsError) in
            try await self.followHolders(of: id)
        }
    }

    /// Whether no change of class has come between what is known of a download and now.
    func isOfItsClass(_ record: DownloadRecord, since number: Int) -> Bool {
        classChangeNumber == number && !classChanges.contains(record.id)
    }

    /// Has a connection hold a download in the foreground; `followHolders` does what follows from it.
    func hold(_ id: String, _ connection: Int) { foregroundHolders[id, default: []].insert(connection) }

    func letGo(of id: String, _ connection: Int) {
        foregroundHolders[id]?.remove(connection)
        if foregroundHolders[id]?.isEmpty == true { foregroundHolders[id] = nil }
    }

    /// Brings a download to the class that those who hold it ask for. They may come and go while it is being changed:
    /// whoever changes it looks again, and others leave it to that one.
    func followHolders(of id: String) async throws(AssetsError) {
        guard classChanges.insert(id).inserted else { return }
        defer { classChanges.remove(id) }
        while !isStopping, let record = try await downloadRecord(id: id), record.isLive {
            let wanted: TransferClass = foregroundHolders[id] == nil ? .background : .foreground
            guard record.transferClass != .essential, record.transferClass != wanted else { return }
            try await change(record, to: wanted, wanted == .foreground ? .downloadPromoted : .downloadDemoted)
            classChangeNumber += 1
        }
    }

    /// A transfer that runs is paused, its row changed, and goes on on the same connection; any other starts as soon as
    /// its new class has room, for a user who looks at it also one that was to wait.
    private func change(_ record: DownloadRecord, to transferClass: TransferClass, _ event: JournalEvent)
        async throws(AssetsError)
    {
        var record = record
        let before = record.transferClass
        await pauseForChange(record)
        journal(
            event, event == .downloadPromoted ? .requested : .disconnected, app: record.app, download: record.id,
            "\(before) to \(transferClass)")
        var changes: [StoreChange] = [.setDownloadClass(id: record.id, transferClass)]
        if transferClass != .background {
            // Who looks at it now has waited for nothing yet.
            record.retry = RetryHistory()
            record.notBefore = nil
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
        if let transfer = running[record.id] {
            transfer.record.transferClass = transferClass
            if transferClass != .background { transfer.record.retry = record.retry }
            queue.change(record.id, to: transferClass, at: seams.loop.now)
            seams.transfers.resume(record.id, as: transferClass)
            // Its place in the old class is free.
            pumpSoon()
        } else {
            queue.remove(id: record.id, app: record.app)
            enqueue(record)
        }
    }

    private func pauseForChange(_ record: DownloadRecord) async {
        guard let transfer = running[record.id] else { return }
        transfer.isChangingClass = true
        transfer.changedClassAt = seams.loop.now
        await seams.transfers.pause(record.id)
        if running[record.id] != nil { tellDelegates(of: record.app, .paused(record)) }
    }
}
