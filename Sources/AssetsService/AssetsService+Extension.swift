// Calls of the extension's entry points: one process and one call at a time for each app.
internal import AssetsModel
internal import AssetsOS

/// What waits for one app's extension.
struct ExtensionQueue {
    enum Work: Hashable {
        case contentRequest(ContentRequest, manifest: String)
        /// Unique identifier of a download whose message waits.
        case message(String)
        /// Unique identifier of a download whose server asks.
        case challenge(String)
    }
    /// An occasion on which the extension is asked what to download.
    enum Asking: Hashable {
        /// `downloads(for:manifestURL:extensionInfo:)` runs: it answers downloads, the manager schedules none.
        case forDownloads
        /// An entry point of 2022 runs: it schedules. The manifest's bytes are charged when it has returned.
        case byEvent(manifestBytes: Int64)
    }
    var waiting: [Work] = []
    var current: Work?
    var asking: Asking?
    var graceTimer: TimerToken?

    var isActive: Bool { current != nil || !waiting.isEmpty }
}

extension AssetsService {
    /// Queues a call; it runs when those before it have returned.
    func callExtension(of app: String, _ work: ExtensionQueue.Work) {
        guard !isStopping else { return }
        var queue = extensionQueues[app] ?? ExtensionQueue()
        guard queue.current != work, !queue.waiting.contains(work) else { return }
        queue.waiting.append(work)
        let mustStart = queue.current == nil && queue.waiting.count == 1
        if let timer = queue.graceTimer { seams.loop.cancel(timer) }
        queue.graceTimer = nil
        extensionQueues[app] = queue
        if mustStart { launch { service in await service.serveExtension(of: app) } }
    }

    /// True while `downloads(for:manifestURL:extensionInfo:)` runs: then the manager does not schedule.
    func isInContentRequest(_ app: String) -> Bool {
        extensionQueues[app]?.asking == .forDownloads
    }

    /// Bytes of a manifest that are not in the app's ledger yet, while an entry point of 2022 schedules.
    func unchargedManifest(of app: String) -> Int64 {
        if case .byEvent(let bytes) = extensionQueues[app]?.asking { bytes } else { 0 }
    }

    private func serveExtension(of app: String) async {
        while let work = extensionQueues[app]?.waiting.first, !isStopping {
            extensionQueues[app]?.waiting.removeFirst()
            extensionQueues[app]?.current = work
            switch work {
            case .contentRequest(let request, let manifest): await ask(app, request, manifest: manifest)
            case .message(let id): await tellExtension(app, id)
            case .challenge(let id): await askExtension(app, challenge: id)
            }
            extensionQueues[app]?.current = nil
            extensionQueues[app]?.asking = nil
        }
        planEnd(of: app)
        activityChanged?()
    }

    private func planEnd(of app: String) {
        extensionQueues[app]?.graceTimer = seams.loop.schedule(after: PolicyNumbers.extensionGrace) {
            self.assumeIsolated { service in
                guard service.extensionQueues[app]?.isActive == false else { return }
                service.extensionQueues[app] = nil
                service.launch { await $0.seams.extensions.end(app: app) }
            }
        }
    }

    /// Ends the app's extension at once.
    func endExtension(of app: String) async {
        if let timer = extensionQueues[app]?.graceTimer { seams.loop.cancel(timer) }
        extensionQueues[app]?.graceTimer = nil
        await seams.extensions.end(app: app)
    }

    func call(_ entry: EntryPoint, of app: AppRecord, limit: Duration?) async -> EntryPointOutcome {
        let started = seams.loop.now
        journal(.extensionCalled, .none, app: app.id, download: entry.download, entry.name)
        _ = try? await commit([])
        // Whoever is not called any more, or was interrupted, is called after the next start.
        guard !isStopping else { return .died(.restart, "the service ends") }
        let outcome = await seams.extensions.call(entry, on: target(of: app), limit: limit)
        guard !isStopping else { return outcome }
        let took = (seams.loop.now - started).shown
        switch outcome {
        case .downloads(let downloads):
            journal(.extensionAnswered, .none, app: app.id, "\(downloads.count) downloads after \(took)")
        case .handled, .answered:
            journal(.extensionAnswered, .none, app: app.id, download: entry.download, "after \(took)")
        case .notImplemented: journal(.extensionAnswered, .notImplemented, app: app.id, download: entry.download)
        case .died(let reason, let detail):
            journal(.extensionEnded, reason, app: app.id, download: entry.download, detail)
        }
        return outcome
    }

    private func target(of app: AppRecord) -> ExtensionTarget {
        let executable = app.bundlePath + "/" + app.description.extensionExecutable
        return ExtensionTarget(
            app: app.id, extensionIdentifier: app.description.extensionIdentifier, executable: executable,
            folder: executable.parentPath, groups: app.description.sharedGroups)
    }

    // MARK: Messages

    private func tellExtension(_ appID: String, _ id: String) async {
        guard let app = apps[appID], var round = rounds[id] else { return }
        let takes = round.machine.extensionTakes()
        rounds[id]?.machine = round.machine
        guard takes else { return }
        let entry: EntryPoint
        switch round.record.state {
        case .finished(let intent): entry = .finished(round.record.request, path: absolute(intent.target))
        case .failed(let failure): entry = .failed(round.record.request, failure)
        case .waiting, .finishing: preconditionFailure("message of a download in state \(round.record.state)")
        }
        switch await call(entry, of: app, limit: PolicyNumbers.answerLimit) {
        case .handled, .downloads, .answered: change(id) { $0.extensionHandled() }
        case .notImplemented: change(id) { $0.extensionLacksMethod() }
        case .died: change(id) { $0.extensionDied() }
        }
    }

    // MARK: Content requests

    private func ask(_ appID: String, _ request: ContentRequest, manifest: String) async {
        let row = try? await manifestRecord(of: appID)
        guard let app = apps[appID] else { return }
        let admission = admission(for: app, manifest: row)
        let entry = EntryPoint.contentRequest(
            request, manifest: absolute(manifest), remaining: admission.remaining,
            essentialRemaining: admission.essentialRemaining)
        extensionQueues[appID]?.asking = .forDownloads
        var outcome = await call(entry, of: app, limit: PolicyNumbers.contentRequestLimit)
        if outcome == .notImplemented, request.hasEventOf2022 {
            extensionQueues[appID]?.asking = .byEvent(manifestBytes: row?.finishedLength ?? 0)
            let event = EntryPoint.applicationEvent(
                request, remaining: admission.remaining, essentialRemaining: admission.essentialRemaining)
            outcome = await call(event, of: app, limit: PolicyNumbers.contentRequestLimit)
        }
        extensionQueues[appID]?.asking = nil
        await contentRequestEnded(appID, request, manifest: manifest, outcome)
    }
}

extension ContentRequest {
    /// In 2022 there was no occasion for a change of language.
    fileprivate var hasEventOf2022: Bool { self != .languageChange }
}

extension EntryPoint {
    fileprivate var download: String {
        switch self {
        case .contentRequest, .applicationEvent: ""
        case .finished(let request, _), .failed(let request, _), .challenge(let request, _): request.uniqueIdentifier
        }
    }
}
