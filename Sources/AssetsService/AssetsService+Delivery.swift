// Messages: a finished or failed download is told until somebody has handled it.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

/// One message on its way.
struct Round {
    var machine: DeliveryRound
    let record: DownloadRecord
    /// The event's number in each session that got it.
    var numbers: [String: Int64] = [:]
    /// Until then delegates may answer; in process time.
    var deadline: Duration?
}

extension AssetsService {
    var roundsInOrder: [Round] { rounds.values.sorted { $0.record.sequence < $1.record.sequence } }

    /// Tells of a finished or failed download: at once if the app's gate is open, else when it opens; and after those that
    /// wait already.
    func deliver(_ record: DownloadRecord) {
        guard isDeliverable(record) else { return }
        guard waiting.isEmpty(of: record.app), !hasMoreMessages.contains(record.app), hasRoom(record.app) else {
            return wait(record)
        }
        open(record)
    }

    private func isDeliverable(_ record: DownloadRecord) -> Bool {
        apps[record.app]?.gate == .open && rounds[record.id] == nil && !waiting.contains(record.id)
            && !leaving.contains(record.id) && !isStopping
    }

    private func hasRoom(_ app: String) -> Bool { openRounds[app, default: 0] < PolicyNumbers.openRoundsMax }

    private func wait(_ record: DownloadRecord) {
        // In the store it waits anyway.
        guard !hasMoreMessages.contains(record.app), waiting.append(record) else {
            hasMoreMessages.insert(record.app)
            return
        }
    }

    private func open(_ record: DownloadRecord) {
        let pause = record.deaths > 0 ? (record.notBefore ?? .zero) - calendarNow : .zero
        rounds[record.id] = Round(machine: DeliveryRound(deaths: record.deaths, pause: pause), record: record)
        openRounds[record.app, default: 0] += 1
        let sessions = delegateSessions(of: record.app)
        change(record.id) { $0.begin(sessions: sessions) }
    }

    /// A round has ended: others of its app may begin.
    private func forget(_ round: Round) {
        let app = round.record.app
        rounds[round.record.id] = nil
        for number in round.numbers.values { roundsOfEvents[number] = nil }
        openRounds[app, default: 1] -= 1
        if openRounds[app] == 0 { openRounds[app] = nil }
    }

    private func beginNext(of app: String) {
        while hasRoom(app), !isStopping, let next = waiting.takeFirst(of: app) { open(next) }
        guard hasRoom(app), hasMoreMessages.contains(app) else { return }
        launch { service in await service.deliverPending(of: app) }
    }

    /// Forgets an app's messages; their rows are about to go.
    func forgetMessages(of app: String) {
        for round in roundsInOrder where round.record.app == app { forget(round) }
        waiting.removeAll(of: app)
        hasMoreMessages.remove(app)
    }

    /// Opens rounds for the messages that wait in the store.
    func deliverPending(of app: String) async {
        guard messageReads[app] == nil else { return }
        messageReads[app] = []
        hasMoreMessages.remove(app)
        let limit = PolicyNumbers.messagePageMax
        let found = try? await seams.store.messages(app: app, limit: limit)
        let closed = messageReads.removeValue(forKey: app) ?? []
        guard let found, apps[app]?.gate == .open else { return }
        // Of what was read before a message was closed, that one may be done by now.
        for record in found where !closed.contains(record.id) {
            if record.request.kind == .url || record.isFailedManifest { deliver(record) }
        }
        if found.count == limit { hasMoreMessages.insert(app) }
    }

    /// Asks a round's rule and performs what it says.
    func change(_ id: String, _ event: (inout DeliveryRound) -> [DeliveryRound.Action]) {
        guard var machine = rounds[id]?.machine, let record = rounds[id]?.record else { return }
        let actions = event(&machine)
        rounds[id]?.machine = machine
        for action in actions { perform(action, of: record) }
        noteExtensionBusy(record.app)
    }

    private func perform(_ action: DeliveryRound.Action, of record: DownloadRecord) {
        switch action {
        case .send(let sessions):
            for session in sessions { send(record, to: session) }
        case .setAnswerTimer:
            rounds[record.id]?.deadline = seams.loop.now + PolicyNumbers.answerLimit
            armAnswerTimer()
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

    /// One timer for all rounds: each has the same time, so the one that is set is never too late.
    private func armAnswerTimer() {
        guard answerTimer == nil, let next = rounds.values.compactMap(\.deadline).min() else { return }
        answerTimer = seams.loop.schedule(at: next) { self.assumeIsolated { $0.answerTimerFired() } }
    }

    private func answerTimerFired() {
        answerTimer = nil
        let now = seams.loop.now
        for round in roundsInOrder {
            guard let deadline = round.deadline, deadline <= now else { continue }
            rounds[round.record.id]?.deadline = nil
            change(round.record.id) { $0.answerTimerFired() }
        }
        armAnswerTimer()
    }

    private func send(_ record: DownloadRecord, to session: String) {
        let number = nextEventNumber
        nextEventNumber += 1
        rounds[record.id]?.numbers[session] = number
        roundsOfEvents[number] = record.id
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

    // MARK: The end of a message

    /// The message is done: its row goes, and then what was not moved. From the row's end on nobody gets the message
    /// again, so nobody is told of a file that is gone.
    private func close(_ record: DownloadRecord, _ outcome: DeliveryRound.Outcome) async {
        var changes: [StoreChange] = [.removeDownload(id: record.id)]
        var left: FinishIntent?
        switch outcome {
        case .handled:
            left = await leftFile(of: record)
            if let left { changes.append(.openIntent(id: record.id, kind: "delete", payload: left.target)) }
            // Right before the commit: the row is not to be written by another one, before what it tells of.
            journal(.messageClosed, .none, app: record.app, download: record.id, "handled")
        case .notImplemented:
            journal(
                .messageClosed, .notImplemented, app: record.app, download: record.id,
                "neither app nor extension has a method for it; the file stays where it is")
        case .givenUp:
            changes.append(givenUp(record))
            journal(
                .messageClosed, .crash, app: record.app, download: record.id,
                "the extension died in the callback \(PolicyNumbers.deliveriesMax) times; the file stays where it is")
        }
        let saved = changes
        let isSaved = await retryingStore { () async throws(AssetsError) in
            try await self.commit(saved, waiting: self.finishDelay)
        }
        guard isSaved else { return }
        forgetReads(of: record)
        if let round = rounds[record.id] { forget(round) }
        beginNext(of: record.app)
        if let left { await delete(left, of: record) }
        if outcome != .handled, let target = record.vendedFile?.target { await leave(target) }
        activityChanged?()
    }

    /// What was read of messages before a row went is not to be told any more.
    func forgetReads(of record: DownloadRecord) { messageReads[record.app]?.insert(record.id) }

    /// The file of a message that was handled, when its receiver has not moved it.
    private func leftFile(of record: DownloadRecord) async -> FinishIntent? {
        guard let intent = record.vendedFile, let folder = Self.vendedFolder(of: intent.target) else { return nil }
        vendedFolders.end(folder)
        let look = FileLook(target: intent.target, inode: intent.inode, isLast: !vendedFolders.isOpen(folder))
        return await looks.outcome(of: look, in: self, waiting: finishDelay) ? intent : nil
    }

    private func delete(_ intent: FinishIntent, of record: DownloadRecord) async {
        let files = seams.files
        do throws(SystemCallError) {
            let wasLeft = try await seams.disk.run { () throws(SystemCallError) in
                guard try files.status(intent.target)?.inode == intent.inode else { return false }
                try files.remove(intent.target)
                try files.syncDirectory(intent.target.parentPath)
                return true
            }
            try await tidy(intent.target.parentPath)
            closeSoon(intent: record.id)
            guard wasLeft else { return }
            journal(
                .fileDeleted, .unmoved, app: record.app, download: record.id,
                "\(record.request.identifier) was not moved before its callback ended")
        } catch {
            // The intent stays open: the next start of the service deletes it.
            journal(.warning, .volume, app: record.app, download: record.id, "\(intent.target): \(error)")
        }
    }

    func absolute(_ path: String) -> String { seams.files.root + "/" + path }
}

extension DownloadRecord {
    /// Where its file was handed over.
    fileprivate var vendedFile: FinishIntent? {
        if case .finished(let intent) = state, request.kind == .url { intent } else { nil }
    }

    /// A manifest that could not be fetched is told like any failed download.
    var isFailedManifest: Bool {
        if case .failed = state { request.kind == .manifest } else { false }
    }
}
