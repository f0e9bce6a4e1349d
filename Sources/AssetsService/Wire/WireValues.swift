// Values of the rules as messages, and back.
internal import AssetsModel
internal import AssetsStore
internal import AssetsWire
internal import FoundationEssentials

extension DownloadRequest {
    /// A download as a client said it: nothing is checked yet.
    init(_ wire: WireDownload) {
        self.init(
            identifier: wire.identifier, uniqueIdentifier: wire.uniqueIdentifier, url: wire.url, method: wire.method,
            headers: wire.headers.map { HeaderField(name: $0.name, value: $0.value) },
            body: wire.body.isEmpty ? [] : Array(Data(base64Encoded: wire.body) ?? Data()), group: wire.group,
            isEssential: wire.essential, size: wire.size, priority: Int(clamping: wire.priority), kind: .url,
            // What is no pair of digits has a wrong length too.
            sha256: wire.sha256.map { Hexadecimal.decode($0) ?? [] })
    }
}

extension WireDownload {
    init(_ request: DownloadRequest, state: Int64) {
        self.init(
            identifier: request.identifier, uniqueIdentifier: request.uniqueIdentifier, url: request.url,
            method: request.method, headers: request.headers.map { .init(name: $0.name, value: $0.value) },
            body: request.body.isEmpty ? "" : Data(request.body).base64EncodedString(), group: request.group,
            essential: request.isEssential, size: request.size, priority: Int64(request.priority),
            kind: request.kind.rawValue, state: state, sha256: request.sha256.map { Hexadecimal.encode($0) })
    }

    init(_ record: DownloadRecord, isRunning: Bool) {
        self.init(record.request, state: Self.state(of: record, isRunning: isRunning))
    }

    /// The raw value of BADownload.State.
    static func state(of record: DownloadRecord, isRunning: Bool) -> Int64 {
        switch record.state {
        case .waiting: isRunning ? 2 : 1
        case .finishing: 2
        case .finished: 3
        case .failed: -1
        }
    }
}

extension WireFailure {
    init(_ failure: DownloadFailure) {
        self.init(domain: failure.domain.rawValue, code: Int64(failure.code), reason: failure.reason)
    }
}

extension WireChallenge {
    init(_ question: ChallengeLife.Question) {
        let space = question.space
        self.init(
            scheme: space.scheme.rawValue, host: space.host, port: Int64(space.port), realm: space.realm,
            method: space.method.rawValue, url: question.url, offer: question.offer,
            previousFailures: Int64(question.previousFailures), proposedUser: question.proposed?.user,
            proposedPassword: question.proposed?.password)
    }
}

/// The answer to a challenge as a client or an extension said it.
struct WireAnswer {
    /// nil: there is no method for it.
    let disposition: ChallengeDisposition?

    /// nil for what is no answer.
    init?(_ word: String, user: String?, password: String?, keep: Bool) {
        switch word {
        case WireDisposition.useCredential:
            let credential = user.map { Credential(user: $0, password: password ?? "") }
            disposition = .useCredential(credential, keep ? .session : .download)
        case WireDisposition.performDefaultHandling: disposition = .performDefaultHandling
        case WireDisposition.cancel: disposition = .cancel
        case WireDisposition.reject: disposition = .rejectProtectionSpace
        case WireDisposition.notImplemented: disposition = nil
        default: return nil
        }
    }
}

extension ManagerInterface.Event {
    init(_ event: SessionEvent) {
        switch event {
        case .began(let record):
            self.init(kind: "began", number: 0, download: WireDownload(record, isRunning: true))
        case .paused(let record):
            self.init(kind: "paused", number: 0, download: WireDownload(record, isRunning: false))
        case .progress(let record, let written, let total, let expected):
            self.init(
                kind: "progress", number: 0, download: WireDownload(record, isRunning: true), written: written,
                totalWritten: total, totalExpected: expected)
        case .finished(let record, let path, let number):
            self.init(kind: "finished", number: number, download: WireDownload(record, isRunning: false), path: path)
        case .failed(let record, let failure, let number):
            self.init(
                kind: "failed", number: number, download: WireDownload(record, isRunning: false),
                failure: WireFailure(failure))
        case .challenge(let record, let question, let number):
            self.init(
                kind: "challenge", number: number, download: WireDownload(record, isRunning: true),
                challenge: WireChallenge(question))
        case .controlGranted(let ticket): self.init(kind: "control-granted", number: 0, ticket: ticket)
        case .controlRefused(let ticket): self.init(kind: "control-refused", number: 0, ticket: ticket)
        }
    }
}

extension DeviceInterface.InstallUpdate {
    init(_ status: InstallStatus) {
        self.init(
            install: status.install, app: status.app, phase: status.phase.rawValue, fraction: status.fraction,
            received: status.received, expected: status.expected, detail: status.detail,
            code: Int64(status.error?.code.rawValue ?? 0), remedy: status.error?.remedy ?? "")
    }
}

extension DeviceInterface.ExtensionState {
    init(_ ledger: ExtensionLedger) {
        self.init(
            state: ledger.phase.rawValue, runtimeUsed: ledger.used.inSeconds, runtimeMax: ledger.budget.inSeconds,
            memoryMax: PolicyNumbers.extensionMemoryMax, reason: ledger.obstacle?.reason.rawValue ?? "",
            detail: ledger.obstacle?.detail ?? "")
    }
}

extension DeviceInterface.ExtensionRun {
    init(_ run: ExtensionRun) {
        self.init(
            launchedAt: run.launchedAt.inSeconds, endedAt: run.endedAt?.inSeconds ?? 0, calls: Int64(run.calls),
            runtime: run.runtime.inSeconds, memoryPeak: run.memoryPeak,
            warnings: run.warnings.sorted().map(\.rawValue), reason: run.reason == .none ? "" : run.reason.rawValue,
            detail: run.detail)
    }
}

extension DeviceInterface.Standing {
    init(_ standing: Standing) {
        self.init(
            subject: standing.subject.rawValue, identifier: standing.identifier, uniqueIdentifier: standing.download,
            held: standing.isHeld, reason: standing.reason?.rawValue ?? "", detail: standing.detail,
            release: standing.release, latest: standing.latest?.inSeconds ?? 0)
    }
}

extension DeviceInterface.JournalEntry {
    init(_ row: JournalRow) {
        let entry = row.entry
        self.init(
            number: row.number, time: entry.time.inSeconds, event: entry.event.rawValue,
            reason: entry.reason == .none ? "" : entry.reason.rawValue, app: entry.app, download: entry.download,
            detail: entry.detail)
    }
}

extension AssetsService {
    func wireApp(_ app: AppRecord) -> DeviceInterface.App {
        var reason = ""
        if case .failure(let error) = LaunchGate.decide(app: app, identifier: app.id, installing: isInstalling(app.id))
        {
            reason = error.reason
        }
        return DeviceInterface.App(
            bundleIdentifier: app.id, name: app.description.name, version: app.description.version,
            build: app.description.build, state: isInstalling(app.id) == nil ? "ready" : "installing",
            launchable: reason.isEmpty, reason: reason, path: absolute(app.bundlePath),
            installedAt: app.installedAt.inSeconds, launchedAt: app.launchedAt?.inSeconds ?? 0)
    }

    /// When a download is tried again; nil where something has to happen first.
    private func nextTry(of record: DownloadRecord) -> Duration? {
        guard record.state == .waiting else { return nextTelling(of: record) }
        guard let time = record.notBefore else { return nil }
        let isWatched =
            record.reason == .offline && connectivity.isOffline || record.reason == .space && space.isWatched
        return isWatched ? nil : time
    }

    func wireStatus(of record: DownloadRecord) -> DeviceInterface.Download {
        let live = progress(of: record.id)
        var state = live == nil ? "waiting" : "downloading"
        var received = live?.received ?? record.received
        var reason = record.reason
        var detail = record.detail
        switch record.state {
        case .waiting where live != nil || challenges[record.id] != nil: break
        case .waiting:
            // Its turn has not come yet since what it waited for is there.
            if record.notBefore == nil, reason != .space { (reason, detail) = (.none, "") }
            if isHeldByChallenges(record.app) {
                (reason, detail) = (.challenge, "other downloads of the app wait for an answer to a server")
            } else if isHeld(record) {
                reason = .essentialFirst
            }
        case .finishing(let intent):
            state = "finishing"
            received = intent.length
        case .finished(let intent):
            state = "finished"
            received = intent.length
            (reason, detail) = messageWait(of: record)
        case .failed(let failure):
            state = "failed"
            detail = failure.reason
            let wait = messageWait(of: record)
            if wait.reason == .backoff { (reason, detail) = (.backoff, "\(failure.reason); \(wait.detail)") }
        }
        if live != nil { (reason, detail) = (.none, "") }
        return DeviceInterface.Download(
            app: record.app, identifier: record.request.identifier, uniqueIdentifier: record.id,
            kind: record.request.kind.rawValue, url: record.request.url, group: record.request.group,
            essential: record.request.isEssential, priority: Int64(record.request.priority),
            transferClass: "\(record.transferClass)", state: state, received: received,
            expected: live?.expected ?? record.request.size, attempts: Int64(record.attempts),
            reason: reason == .none ? "" : reason.rawValue, detail: detail,
            nextTry: live == nil ? nextTry(of: record)?.inSeconds ?? 0 : 0)
    }
}

extension Duration {
    /// Seconds with fraction.
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
