// What `why` answers: how everything of an app stands now. The service's side of `Standing`.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    // MARK: What clients ask for

    /// How an app stands, and what was given up of its messages; its downloads come after this, in pages.
    package func standings(of app: String) async throws(AssetsError) -> [Standing] {
        try checkKnown(app)
        let gate = Standing.gate(of: apps[app], identifier: app, installing: isInstalling(app))
        guard apps[app] != nil else { return [gate] }
        let view = extensionView(of: app)
        let now = calendarNow
        let standings = [
            gate, .extension(view, at: now), control(of: app, view), .check(plans[app], events[app], at: now),
        ]
        return standings + (try await keptFiles(of: app))
    }

    /// Downloads of an app after a sequence that something holds; `next` is the page's last sequence where more follow.
    package func heldDownloads(of app: String, after sequence: Int64, limit: Int) async throws(AssetsError) -> (
        standings: [Standing], next: Int64?
    ) {
        let records = try await downloads(of: app, after: sequence, limit: limit)
        let next = records.count == limit ? records.last?.sequence : nil
        return (records.map(standing).filter(\.isHeld), next)
    }

    /// How the downloads of that unique identifier or identifier stand; an identifier may have several.
    package func standings(of app: String, download name: String) async throws(AssetsError) -> [Standing] {
        try checkKnown(app)
        let records = try await downloads(of: app, named: name)
        let kept = try await keptFiles(of: app).filter { $0.download == name || $0.identifier == name }
        let standings = records.map(standing) + kept
        guard !standings.isEmpty else {
            throw AssetsError(
                .downloadDoesNotExist,
                "\(app) has no download '\(name.prefix(PolicyNumbers.identifierMax))' that is queued or unhandled",
                remedy: "list them with: backgroundassets downloads \(app)")
        }
        return standings
    }

    private func checkKnown(_ app: String) throws(AssetsError) {
        let decision = LaunchGate.decide(app: apps[app], identifier: app, installing: isInstalling(app))
        if case .failure(let error) = decision, error.code == .notInstalled { throw error }
    }

    private func downloads(of app: String, named name: String) async throws(AssetsError) -> [DownloadRecord] {
        if let record = try await downloadRecord(id: name), record.app == app { return [record] }
        do throws(StoreError) {
            var found = [try await seams.store.download(app: app, identifier: name)].compactMap(\.self)
            var last: Int64? = 0
            while let sequence = last {
                let limit = PolicyNumbers.messagePageMax
                let page = try await seams.store.messages(app: app, after: sequence, limit: limit)
                found += page.filter { $0.request.identifier == name }
                last = page.count == limit ? page.last?.sequence : nil
            }
            return found
        } catch { throw AssetsError(error) }
    }

    // MARK: Downloads

    private func standing(_ record: DownloadRecord) -> Standing {
        let standing =
            switch record.state {
            case .waiting: waiting(record)
            case .finishing: Standing(free: .download, "its file is being put in its place")
            case .finished where record.request.kind == .manifest: manifest(record)
            case .finished, .failed: Standing.message(record, messageView(of: record), at: calendarNow)
            }
        return standing.of(record)
    }

    private func waiting(_ record: DownloadRecord) -> Standing {
        if let (received, expected) = progress(of: record.id) {
            let size = expected > 0 ? " of \(expected)" : ""
            let limit = record.transferClass == .background ? settings.backgroundRate : nil
            let slowness = limit.map { "; background-rate lets all background downloads have \($0) bytes a second" }
            return Standing(free: .download, "downloading, \(received)\(size) bytes are there" + (slowness ?? ""))
        }
        var around = Standing.Surroundings()
        around.isGateShut = apps[record.app]?.gate == .shut
        around.isOffline = connectivity.isOffline
        around.isSpaceWatched = space.isWatched
        around.question = challenges[record.id].map { "\($0.question.space.shown) asks for a credential" }
        around.isHeldByQuestions = isHeldByChallenges(record.app)
        around.obstacle = queue.obstacle(to: record.queueEntry)
        return .waiting(record, around, at: calendarNow)
    }

    /// A manifest that is there: the extension is to be asked with it.
    private func manifest(_ record: DownloadRecord) -> Standing {
        if case .contentRequest(_, record.id) = extensionQueues[record.app]?.current {
            return Standing(free: .download, "the extension is being asked with it")
        }
        var view = messageView(of: record)
        (view.isGateShut, view.stage) = (false, .waitingForExtension)
        // An installation is refused at once, and does not wait.
        if runningInstallation(of: record.app) != nil { view.obstacle = nil }
        return .message(record, view, at: calendarNow)
    }

    private func messageView(of record: DownloadRecord) -> Standing.MessageView {
        let round = rounds[record.id]
        var view = Standing.MessageView()
        view.isGateShut = apps[record.app]?.gate == .shut
        view.stage = round?.machine.stage
        view.obstacle = extensionView(of: record.app).obstacle
        view.answerLimit = round?.deadline.map { calendarNow + ($0 - seams.loop.now) }
        if let process = extensionProcesses[record.app], process.isCalling { view.work = process.entry?.name ?? "" }
        return view
    }

    // MARK: Messages that were given up

    /// What is to be remembered of a message that the extension died of every time.
    func givenUp(_ record: DownloadRecord) -> StoreChange {
        var file: GivenUpMessage.KeptFile?
        if case .finished(let intent) = record.state { file = .init(path: intent.target, inode: intent.inode) }
        return .saveGivenUp(
            GivenUpMessage(
                id: record.id, app: record.app, identifier: record.request.identifier, time: calendarNow, file: file,
                detail: "the extension died in the callback \(PolicyNumbers.deliveriesMax) times: it is not told again")
        )
    }

    /// Those whose file is still where it was handed over; the others are forgotten.
    private func keptFiles(of app: String) async throws(AssetsError) -> [Standing] {
        let messages: [GivenUpMessage]
        do throws(StoreError) { messages = try await seams.store.givenUpMessages(app: app) } catch {
            throw AssetsError(error)
        }
        let files = seams.files
        let areGone = await seams.disk.run { messages.map { $0.file?.isGone(from: files) ?? false } }
        for (message, isGone) in zip(messages, areGone) where isGone { saveSoon(.removeGivenUp(id: message.id)) }
        return zip(messages, areGone).filter { !$0.1 }.map { message, _ in
            .kept(message, path: message.file.map { absolute($0.path) })
        }
    }
}

extension GivenUpMessage.KeptFile {
    /// What cannot be looked at counts as there.
    fileprivate func isGone(from files: any FileTree) -> Bool {
        do throws(SystemCallError) { return try files.status(path)?.inode != inode } catch { return false }
    }
}
