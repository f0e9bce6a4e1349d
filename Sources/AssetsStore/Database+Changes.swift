// The changes of a transaction, one by one.
internal import AssetsModel
internal import FoundationEssentials

extension Database {
    /// Makes one change inside the transaction that is open.
    func perform(_ change: StoreChange, _ result: inout ApplyResult) throws(StoreError) {
        switch change {
        case .saveApp(let record): try save(record)
        case .removeApp(let id):
            try removeDownloads(of: id)
            for query in [Query.removeRuns, .removeRuntime, .removeGivenUpOfApp, .removePlan, .closeEvent, .removeApp] {
                try run(query) { row throws(StoreError) in try row.bind(id, at: 1) }
            }
        case .savePlan(let app, let plan): try save(plan, of: app)
        case .openEvent(let event): try open(event)
        case .closeEvent(let app): try run(.closeEvent) { row throws(StoreError) in try row.bind(app, at: 1) }
        case .saveInstallation(let record): try save(record)
        case .removeInstallation(let id):
            try removeDownloads(of: id)
            try run(.removeInstallation) { row throws(StoreError) in try row.bind(id, at: 1) }
        case .insertDownload(let record): result.sequences.append(try insert(record))
        case .setDownloadState, .setDownloadClass, .setDownloadWait, .setDownloadResume, .stepBack,
            .setMessageWait:
            try update(change)
        case .demoteForegroundDownloads: try run(.demoteForeground) { _ throws(StoreError) in }
        case .releaseWaits(let reasons, let limit):
            for reason in reasons where result.released < limit {
                result.released += try run(.releaseWaits) { row throws(StoreError) in
                    try row.bind(reason.rawValue, at: 1)
                    try row.bind(Int64(limit - result.released), at: 2)
                }
            }
        case .setBackWaits(let time):
            try run(.setBackWaits) { row throws(StoreError) in try row.bind(time.wholeMicroseconds, at: 1) }
        case .removeDownload(let id): try run(.removeDownload) { row throws(StoreError) in try row.bind(id, at: 1) }
        case .saveExtensionRun(let record): try save(record)
        case .saveRuntime(let app, let ledger): try save(ledger, of: app)
        case .saveGivenUp(let message): try save(message)
        case .removeGivenUp(let id): try run(.removeGivenUp) { row throws(StoreError) in try row.bind(id, at: 1) }
        case .setSetting(let name, let value?):
            try run(.setSetting) { row throws(StoreError) in
                try row.bind(name, at: 1)
                try row.bind(value, at: 2)
            }
        case .setSetting(let name, nil): try run(.removeSetting) { row throws(StoreError) in try row.bind(name, at: 1) }
        case .openIntent(let id, let kind, let payload):
            try naming("open intent \(id)") { () throws(StoreError) in
                try run(.openIntent) { row throws(StoreError) in
                    try row.bind(id, at: 1)
                    try row.bind(kind, at: 2)
                    try row.bind(payload, at: 3)
                }
            }
        case .closeIntent(let id): try run(.closeIntent) { row throws(StoreError) in try row.bind(id, at: 1) }
        }
    }

    // MARK: Downloads

    private func insert(_ record: DownloadRecord) throws(StoreError) -> Int64 {
        let sequence = counters.nextSequence
        try naming("insert download \(record.request.identifier) (\(record.id)) of \(record.app)") {
            () throws(StoreError) in
            try run(.insertDownload) { row throws(StoreError) in try row.bind(record, sequence: sequence) }
        }
        counters.nextSequence = sequence + 1
        return sequence
    }

    private func removeDownloads(of owner: String) throws(StoreError) {
        try run(.removeLiveOfApp) { row throws(StoreError) in try row.bind(owner, at: 1) }
        try run(.removeMessagesOfApp) { row throws(StoreError) in try row.bind(owner, at: 1) }
    }

    private func update(_ change: StoreChange) throws(StoreError) {
        switch change {
        case .setDownloadState(let id, let state):
            try update(id, .setState) { row throws(StoreError) in try row.bind(state, first: 2) }
        case .setDownloadClass(let id, let transferClass):
            try update(id, .setClass) { row throws(StoreError) in try row.bind(Int64(transferClass.rawValue), at: 2) }
        case .setDownloadWait(let id, let notBefore, let reason, let detail, let retry, let attempts):
            try update(id, .setWait) { row throws(StoreError) in
                try row.bind(notBefore?.wholeMicroseconds, at: 2)
                try row.bind(reason.rawValue, at: 3)
                try row.bind(detail, at: 4)
                try row.bind(Int64(retry.failures), at: 5)
                try row.bind(retry.firstFailure?.wholeMicroseconds, at: 6)
                try row.bind(Int64(attempts), at: 7)
            }
        case .setDownloadResume(let id, let resume, let received):
            try update(id, .setResume) { row throws(StoreError) in
                try row.bind(resume, first: 2)
                try row.bind(received, at: 9)
            }
        case .stepBack(let id):
            // The place of a download that is never inserted: behind all, and nobody else's.
            let place = counters.nextSequence
            try update(id, .stepBack) { row throws(StoreError) in try row.bind(place, at: 2) }
            counters.nextSequence = place + 1
        case .setMessageWait(let id, let deaths, let notBefore, let detail):
            try update(id, .setMessageWait) { row throws(StoreError) in
                try row.bind(Int64(deaths), at: 2)
                try row.bind(notBefore.wholeMicroseconds, at: 3)
                try row.bind(detail, at: 4)
            }
        case .saveApp, .removeApp, .savePlan, .openEvent, .closeEvent, .saveInstallation, .removeInstallation,
            .insertDownload, .removeDownload, .demoteForegroundDownloads, .releaseWaits, .setBackWaits, .setSetting,
            .openIntent, .closeIntent, .saveExtensionRun, .saveRuntime, .saveGivenUp, .removeGivenUp:
            preconditionFailure("\(change) does not update a download")
        }
    }

    private func update(
        _ id: String, _ query: Query, _ bind: (borrowing Statement) throws(StoreError) -> Void
    ) throws(StoreError) {
        let changed = try naming("\(query) of download \(id)") { () throws(StoreError) in
            try run(query) { row throws(StoreError) in
                try row.bind(id, at: 1)
                try bind(row)
            }
        }
        if changed == 0 { throw StoreError(.missing, "\(query) of download \(id): there is none") }
    }

    /// Says in an error what it was about.
    @discardableResult
    private func naming<R>(
        _ context: @autoclosure () -> String, _ body: () throws(StoreError) -> R
    ) throws(StoreError) -> R {
        do throws(StoreError) {
            return try body()
        } catch {
            throw StoreError(error.code, context(), cause: error.cause)
        }
    }

    // MARK: Apps and installations

    private func save(_ record: AppRecord) throws(StoreError) {
        try run(.saveApp) { row throws(StoreError) in
            try row.bind(record.id, at: 1)
            try row.bind(DescriptionCoding.encode(record.description), at: 2)
            try row.bind(record.buildFolder, at: 3)
            try row.bind(record.source.rawValue, at: 4)
            try row.bind(record.gate.rawValue, at: 5)
            try row.bind(record.installedAt.wholeMicroseconds, at: 6)
            try row.bind(record.launchedAt?.wholeMicroseconds, at: 7)
            try row.bind(record.ledger.essential, at: 8)
            try row.bind(record.ledger.nonEssential, at: 9)
        }
    }

    private func save(_ record: InstallationRecord) throws(StoreError) {
        try run(.saveInstallation) { row throws(StoreError) in
            try row.bind(record.id, at: 1)
            try row.bind(record.source, at: 2)
            try row.bind(record.kind.rawValue, at: 3)
            try row.bind(record.phase.rawValue, at: 4)
            try row.bind(record.app, at: 5)
            try row.bind(record.buildFolder, at: 6)
            try row.bind(record.startedAt.wholeMicroseconds, at: 7)
            try row.bind(record.error.map { Int64($0.code.rawValue) }, at: 8)
            try row.bind(record.error?.reason, at: 9)
            try row.bind(record.error?.remedy, at: 10)
        }
    }

    // MARK: Journal

    /// Writes one journal row inside the transaction that is open; returns its number.
    func insert(_ entry: JournalEntry) throws(StoreError) -> Int64 {
        let number = counters.nextJournal
        try run(.insertJournal) { row throws(StoreError) in
            try row.bind(number, at: 1)
            try row.bind(entry.time.wholeMicroseconds, at: 2)
            try row.bind(entry.event.rawValue, at: 3)
            try row.bind(entry.reason.rawValue, at: 4)
            try row.bind(entry.app, at: 5)
            try row.bind(entry.download, at: 6)
            try row.bind(entry.detail, at: 7)
        }
        counters.nextJournal = number + 1
        return number
    }

    /// Removes one batch from the front of the journal inside the transaction that is open.
    func trimJournal() throws(StoreError) {
        let surplus = counters.journalCount - Store.journalMax
        guard surplus > 0 else { return }
        let first = counters.firstJournal + min(surplus, Store.journalTrimMax)
        try run(.trimJournal) { row throws(StoreError) in try row.bind(first, at: 1) }
        counters.firstJournal = first
    }
}

/// App descriptions as JSON text: a description is read and written as a whole, never searched.
enum DescriptionCoding {
    static func encode(_ description: AppDescription) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings and integers always have a JSON form.
        guard let data = try? encoder.encode(description) else { preconditionFailure("a description without JSON") }
        return String(decoding: data, as: UTF8.self)
    }

    static func decode(_ json: String) -> AppDescription? {
        try? JSONDecoder().decode(AppDescription.self, from: Data(json.utf8))
    }
}
