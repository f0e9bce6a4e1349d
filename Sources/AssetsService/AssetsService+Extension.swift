// Calls of the extension's entry points: one process and one call at a time for each app.
internal import AssetsModel
internal import AssetsOS

/// What waits for one app's extension.
struct ExtensionQueue {
    enum Work: Hashable {
        /// Unique identifier of the manifest's download.
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
    /// Somebody takes one piece of work after the other.
    var isServed = false
    /// The extension may not run for now; then it is asked again.
    var heldTimer: TimerToken?

    var isActive: Bool { current != nil || !waiting.isEmpty }
}

extension AssetsService {
    /// Queues a call; it runs when those before it have returned.
    func callExtension(of app: String, _ work: ExtensionQueue.Work) {
        guard !isStopping else { return }
        var queue = extensionQueues[app] ?? ExtensionQueue()
        guard queue.current != work, !queue.waiting.contains(work) else { return }
        queue.waiting.append(work)
        extensionQueues[app] = queue
        serveExtensionSoon(of: app)
    }

    func serveExtensionSoon(of app: String) {
        guard extensionQueues[app]?.isServed == false, !isStopping else { return }
        extensionQueues[app]?.isServed = true
        launch { service in await service.serveExtension(of: app) }
    }

    /// True while `downloads(for:manifestURL:extensionInfo:)` runs: then the extension's manager does not schedule.
    func isInContentRequest(_ app: String) -> Bool {
        extensionQueues[app]?.asking == .forDownloads
    }

    /// Bytes of a manifest that are not in the app's ledger yet, while an entry point of 2022 schedules.
    func unchargedManifest(of app: String) -> Int64 {
        if case .byEvent(let bytes) = extensionQueues[app]?.asking { bytes } else { 0 }
    }

    private func serveExtension(of app: String) async {
        while !isStopping, let work = takeWork(of: app) {
            extensionQueues[app]?.current = work
            switch work {
            case .contentRequest(let request, let manifest): await ask(app, request, manifest: manifest)
            case .message(let id): await tellExtension(app, id)
            case .challenge(let id): await askExtension(app, challenge: id)
            }
            extensionQueues[app]?.current = nil
            extensionQueues[app]?.asking = nil
        }
        extensionQueues[app]?.isServed = false
        if extensionQueues[app]?.isActive == false { extensionQueues[app] = nil }
        extensionEvent(.rest, of: app)
        activityChanged?()
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
        switch await call(entry, of: app, limit: nil) {
        case .handled, .downloads, .answered: change(id) { $0.extensionHandled() }
        case .notImplemented: change(id) { $0.extensionLacksMethod() }
        case .died(_, let why):
            // Who was interrupted by the service's end is told again after its next start, and that counts for nothing.
            guard !isStopping else { return }
            change(id) { $0.extensionDied() }
            await noteDeath(id, why)
        }
    }

    // MARK: Content requests

    private func ask(_ appID: String, _ request: ContentRequest, manifest: String) async {
        guard let row = try? await downloadRecord(id: manifest), case .finished(let intent) = row.state else {
            return await contentRequestEnded(
                appID, request, manifest: manifest, .died(.manifest, "the manifest cannot be read from the store"))
        }
        guard let app = apps[appID] else { return }
        let admission = admission(for: app, manifest: row)
        let entry = EntryPoint.contentRequest(
            request, manifest: absolute(intent.target), remaining: admission.remaining,
            essentialRemaining: admission.essentialRemaining)
        extensionQueues[appID]?.asking = .forDownloads
        var outcome = await call(entry, of: app, limit: request.limit)
        if outcome == .notImplemented, request.hasEventOf2022 {
            extensionQueues[appID]?.asking = .byEvent(manifestBytes: intent.length)
            let event = EntryPoint.applicationEvent(
                request, remaining: admission.remaining, essentialRemaining: admission.essentialRemaining)
            outcome = await call(event, of: app, limit: request.limit)
        }
        extensionQueues[appID]?.asking = nil
        await contentRequestEnded(appID, request, manifest: manifest, outcome)
    }
}

extension ContentRequest {
    /// In 2022 there was no occasion for a change of language.
    fileprivate var hasEventOf2022: Bool { self != .languageChange }

    /// Nobody waits for the others: they have the runtime of the day.
    fileprivate var limit: Duration? {
        switch self {
        case .install, .update: PolicyNumbers.contentRequestLimit
        case .periodic, .languageChange: nil
        }
    }
}

extension EntryPoint {
    /// Unique identifier of the download that it is about; empty where it is about none.
    var download: String {
        switch self {
        case .contentRequest, .applicationEvent: ""
        case .finished(let request, _), .failed(let request, _), .challenge(let request, _): request.uniqueIdentifier
        }
    }
}
