// What comes of a content request: the answer is admitted as a whole and queued, and the manifest goes.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

/// What an extension wants, as far as the rules let it.
private struct AdmittedAnswer {
    var records: [DownloadRecord] = []
    /// What was charged for them, without the manifest.
    var charge = AllowanceLedger()
    /// False when the extension died.
    var isAnswered = true

    var essentials: [DownloadRequest] { records.map(\.request).filter(\.isEssential) }
}

extension AssetsService {
    /// The extension answered a content request, or did not: queue what it wants and forget the manifest.
    func contentRequestEnded(
        _ appID: String, _ request: ContentRequest, manifest id: String, _ outcome: EntryPointOutcome
    ) async {
        let row = try? await downloadRecord(id: id)
        let queued = await queuedIdentifiers(among: outcome, of: appID)
        // An extension that was interrupted by the service's own end has not answered: manifest and phase stay.
        guard !isStopping, apps[appID] != nil else { return }
        let event = events[appID]?.manifest == id ? events[appID] : nil
        let install = event == nil ? runningInstallation(of: appID) : nil
        guard event != nil || install != nil else { return }
        guard let row, case .finished(let intent) = row.state else {
            if let event { return await endEvent(event, .manifest, "its manifest is gone") }
            if let install { installationEvent(.extensionFailed, of: install) }
            return
        }
        var answer = admit(outcome, to: request, manifest: row, of: appID, queued: queued)
        if let install {
            installations[install]?.progress.asked(essentialBytes: answer.essentials.reduce(0) { $0 + $1.size })
            installations[install]?.essentialRemaining = answer.essentials.count
        }
        guard await save(&answer, to: request, manifest: row, of: appID, event, install) else { return }
        if await removeFolders([intent.target.parentPath]) { closeSoon(intent: id) }
        queue.invalidate()
        if let event { ended(event) }
        if let install {
            installationEvent(
                answer.isAnswered ? .answered(essentials: answer.essentials.count) : .extensionFailed, of: install)
        }
        pumpSoon()
    }

    /// Those of an answer whose identifier is taken.
    private func queuedIdentifiers(among outcome: EntryPointOutcome, of app: String) async -> Set<String> {
        guard case .downloads(let downloads) = outcome,
            let first = try? await seams.store.liveDownloads(app: app, limit: 1), !first.isEmpty
        else { return [] }
        var queued: Set<String> = []
        for download in downloads {
            let known = try? await seams.store.download(app: app, identifier: download.identifier)
            if known != nil { queued.insert(download.identifier) }
        }
        return queued
    }

    /// Asks the rule, and charges the app's ledger with the manifest and what was admitted.
    private func admit(
        _ outcome: EntryPointOutcome, to request: ContentRequest, manifest: DownloadRecord, of appID: String,
        queued: Set<String>
    ) -> AdmittedAnswer {
        var answer = AdmittedAnswer()
        guard let app = apps[appID] else { return answer }
        var admission = admission(for: app, manifest: manifest)
        let before = admission.ledger
        switch outcome {
        case .downloads(let downloads):
            let wanted = downloads.map(normalized)
            do throws(AssetsError) {
                try admission.answer(wanted, to: request, queued: queued)
                // A stable order, so that equal priorities start in the same order on every device.
                answer.records = wanted.sorted { $0.identifier < $1.identifier }.map {
                    DownloadRecord(app: appID, request: $0, transferClass: $0.isEssential ? .essential : .background)
                }
                answer.charge = admission.ledger
                answer.charge.giveBack(before)
            } catch {
                journal(
                    .downloadRefused, reason(of: error), app: appID,
                    "all \(wanted.count) of the answer, code \(error.code.rawValue): \(error.description)")
            }
        case .handled, .answered, .notImplemented: break
        case .died: answer.isAnswered = false
        }
        apps[appID]?.ledger = admission.ledger
        return answer
    }

    /// Writes the answer, the end of the manifest and the next step in one transaction. False when the service stops.
    private func save(
        _ answer: inout AdmittedAnswer, to request: ContentRequest, manifest: DownloadRecord, of appID: String,
        _ event: ContentEvent?, _ install: String?
    ) async -> Bool {
        var ending: [StoreChange] = [.removeDownload(id: manifest.id)]
        if case .finished(let intent) = manifest.state {
            ending.append(.openIntent(id: manifest.id, kind: "delete", payload: intent.target.parentPath))
        }
        if let event {
            let isAnswered = answer.isAnswered
            ending += closing(
                event, isAnswered ? .none : .crash,
                isAnswered ? "\(answer.records.count) downloads queued" : "the extension did not answer")
        }
        var changes = ending + answer.records.map { .insertDownload($0) }
        // Also without essentials: what is left to do after a restart is to open the gate, not to ask again.
        if let install, var record = installations[install]?.record, answer.isAnswered, apps[appID]?.gate == .shut {
            record.phase = .essential
            installations[install]?.record = record
            changes.append(.saveInstallation(record))
        }
        for record in answer.records {
            journal(.downloadQueued, .requested, app: appID, download: record.id, record.request.identifier)
        }
        let saved = changes
        var isDuplicate = false
        let isSaved = await retryingStore { () async throws(AssetsError) in
            do throws(AssetsError) { try await self.commit(saved + self.savedLedger(of: appID)) } catch {
                guard error.code == .downloadAlreadyScheduled else { throw error }
                isDuplicate = true
            }
        }
        guard isSaved, isDuplicate else { return isSaved }
        // Somebody was faster: one of them is in the queue by now, so none is taken.
        let why = "all \(answer.records.count) of the answer: one of them is scheduled already"
        journal(.downloadRefused, .duplicate, app: appID, why)
        apps[appID]?.ledger.giveBack(answer.charge)
        answer.records = []
        answer.isAnswered = install == nil
        return await retryingStore { () async throws(AssetsError) in
            try await self.commit(ending + self.savedLedger(of: appID))
        }
    }

    /// The app's ledger as it is by now: others may have charged it meanwhile.
    private func savedLedger(of app: String) -> [StoreChange] { apps[app].map { [.saveApp($0)] } ?? [] }
}
