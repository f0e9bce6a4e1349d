// Messages: a finished or failed download is told until somebody has handled it.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

/// One message on its way.
struct Round {
    var machine = DeliveryRound()
    let record: DownloadRecord
    /// The event's number in each session that got it.
    var numbers: [String: Int64] = [:]
}

extension AssetsService {
    var roundsInOrder: [Round] { rounds.values.sorted { $0.record.sequence < $1.record.sequence } }

    /// Tells of a finished or failed download, at once if the app's gate is open, else when it opens.
    func deliver(_ record: DownloadRecord) {
        guard apps[record.app]?.gate == .open, rounds[record.id] == nil, !isStopping else { return }
        let open = rounds.values.reduce(0) { $0 + ($1.record.app == record.app ? 1 : 0) }
        guard open < PolicyNumbers.openRoundsMax else {
            hasMoreMessages.insert(record.app)
            return
        }
        rounds[record.id] = Round(record: record)
        let sessions = delegateSessions(of: record.app)
        change(record.id) { $0.begin(sessions: sessions) }
    }

    /// Opens rounds for the messages that wait in the store.
    func deliverPending(of app: String) async {
        hasMoreMessages.remove(app)
        var waiting: [DownloadRecord] = []
        var before: Int
        repeat {
            before = closedMessages
            guard apps[app]?.gate == .open,
                let found = try? await seams.store.messages(app: app, limit: PolicyNumbers.openRoundsMax * 2)
            else { return }
            waiting = found
            // Of what was read before a message was closed, one may be done by now.
        } while before != closedMessages
        for record in waiting where record.request.kind == .url || record.isFailedManifest { deliver(record) }
    }

    /// Asks a round's rule and performs what it says.
    func change(_ id: String, _ event: (inout DeliveryRound) -> [DeliveryRound.Action]) {
        guard var round = rounds[id] else { return }
        let actions = event(&round.machine)
        rounds[id]?.machine = round.machine
        for action in actions { perform(action, of: round.record) }
    }

    private func perform(_ action: DeliveryRound.Action, of record: DownloadRecord) {
        switch action {
        case .send(let sessions):
            for session in sessions { send(record, to: session) }
        case .setAnswerTimer:
            let id = record.id
            _ = seams.loop.schedule(after: PolicyNumbers.answerLimit) {
                self.assumeIsolated { service in service.change(id) { $0.answerTimerFired() } }
            }
        case .callExtension: callExtension(of: record.app, .message(record.id))
        case .setRedeliveryTimer(let delay):
            let id = record.id
            _ = seams.loop.schedule(after: delay) {
                self.assumeIsolated { service in service.change(id) { $0.redeliveryTimerFired() } }
            }
        case .close(let outcome):
            launch { service in await service.close(record, outcome) }
        }
    }

    private func send(_ record: DownloadRecord, to session: String) {
        let number = nextEventNumber
        nextEventNumber += 1
        rounds[record.id]?.numbers[session] = number
        journal(.messageDelivered, .none, app: record.app, download: record.id, "to a delegate")
        switch record.state {
        case .finished(let intent):
            sessions[session]?.send(.finished(record, path: absolute(intent.target), number: number))
        case .failed(let failure):
            sessions[session]?.send(.failed(record, failure, number: number))
        case .waiting, .finishing:
            preconditionFailure("message of a download in state \(record.state)")
        }
    }

    /// The message is done: its row goes, and then what was not moved. From the row's end on nobody gets the message
    /// again, so nobody is told of a file that is gone.
    private func close(_ record: DownloadRecord, _ outcome: DeliveryRound.Outcome) async {
        var changes: [StoreChange] = [.removeDownload(id: record.id)]
        var folder: String?
        switch outcome {
        case .handled:
            folder = record.vendedFolder
            journal(.messageClosed, .none, app: record.app, download: record.id, "handled")
            if let folder {
                await keepMove(of: record)
                changes.append(.openIntent(id: record.id, kind: "delete", payload: folder))
            }
        case .notImplemented:
            journal(
                .messageClosed, .notImplemented, app: record.app, download: record.id,
                "neither app nor extension has a method for it; the file stays where it is")
        case .givenUp:
            journal(
                .messageClosed, .crash, app: record.app, download: record.id,
                "the extension died in the callback \(PolicyNumbers.deliveriesMax) times; the file stays where it is")
        }
        let saved = changes
        let isSaved = await retryingStore { () async throws(AssetsError) in try await self.commit(saved) }
        guard isSaved else { return }
        closedMessages += 1
        rounds[record.id] = nil
        if let folder { await delete(folder, of: record) }
        if hasMoreMessages.contains(record.app) { await deliverPending(of: record.app) }
        activityChanged?()
    }

    /// A file that its receiver moved is not to come back into a folder that is going to be deleted.
    private func keepMove(of record: DownloadRecord) async {
        guard case .finished(let intent) = record.state else { return }
        let files = seams.files
        try? await seams.disk.run { () throws(SystemCallError) in
            let folder = intent.target.parentPath
            if try files.status(intent.target)?.inode != intent.inode, try files.status(folder) != nil {
                try files.syncDirectory(folder)
            }
        }
    }

    private func delete(_ folder: String, of record: DownloadRecord) async {
        guard case .finished(let intent) = record.state else { return }
        let files = seams.files
        do throws(SystemCallError) {
            let wasLeft = try await seams.disk.run { () throws(SystemCallError) in
                let isLeft = try files.status(intent.target)?.inode == intent.inode
                try files.remove(folder)
                if try files.status(folder.parentPath) != nil { try files.syncDirectory(folder.parentPath) }
                return isLeft
            }
            closeSoon(intent: record.id)
            guard wasLeft else { return }
            journal(
                .fileDeleted, .unmoved, app: record.app, download: record.id,
                "\(record.request.identifier) was not moved before its callback ended")
        } catch {
            // The intent stays open: the next start of the service deletes it.
            journal(.warning, .volume, app: record.app, download: record.id, "\(folder): \(error)")
        }
    }

    func absolute(_ path: String) -> String { seams.files.root + "/" + path }
}

extension DownloadRecord {
    /// The folder that its file was handed over in.
    fileprivate var vendedFolder: String? {
        if case .finished(let intent) = state, request.kind == .url { intent.target.parentPath } else { nil }
    }

    /// A manifest that could not be fetched is told like any failed download.
    var isFailedManifest: Bool {
        if case .failed = state { request.kind == .manifest } else { false }
    }
}
