// Extensions as processes: launched through extension-launcher, called over an inherited socket.
internal import AssetsExtensionHost
package import AssetsModel
package import AssetsOS
internal import AssetsWire
internal import CLinux
internal import Glibc

/// Runs extensions in processes of their own.
///
/// Everything happens on the service's loop, also the spawning: the extension dies with the thread that started it.
package actor ProcessExtensionRunner: ExtensionRunner {
    /// What the runner needs of the service; set once, before the first call.
    package struct Host: Sendable {
        package var adopt: @Sendable (consuming Descriptor, _ app: String) -> Void
        package var note: @Sendable (JournalEvent, Reason, _ app: String, _ detail: String) -> Void

        package init(
            adopt: @escaping @Sendable (consuming Descriptor, String) -> Void,
            note: @escaping @Sendable (JournalEvent, Reason, String, String) -> Void
        ) {
            self.adopt = adopt
            self.note = note
        }
    }

    private static let limits = FrameConnection.Limits(
        frameMax: WireLimit.messageMax, congestedAbove: WireLimit.sendBufferMax, stallMax: WireLimit.sendStallMax)

    private let loop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let root: String
    private let launcher: String
    private let environment: [String: String]
    private let repairLibrary: String?
    private var host: Host?
    private var processes: [String: ExtensionProcess] = [:]

    /// - Parameters:
    ///   - launcher: Absolute path of extension-launcher.
    ///   - environment: The service's own; only what extensions need of it is passed on.
    ///   - repairLibrary: What the launcher has loaded into the extension before Foundation.
    package init(
        loop: EventLoop, root: String, launcher: String, environment: [String: String], repairLibrary: String?
    ) {
        self.loop = loop
        self.root = root
        self.launcher = launcher
        self.environment = environment
        self.repairLibrary = repairLibrary
    }

    package func attach(to host: Host) { self.host = host }

    // MARK: Calls

    package func call(_ entry: EntryPoint, on target: ExtensionTarget, limit: Duration?) async -> EntryPointOutcome {
        let process: ExtensionProcess
        do throws(SystemCallError) {
            process = try running(target)
        } catch {
            return .died(.crash, "the extension cannot be launched: \(error)")
        }
        let timer = limit.map { limit in
            loop.schedule(after: limit) {
                process.kill()
            }
        }
        let deadline = limit.map { loop.now + $0 }
        let outcome = await answer(of: process, to: entry)
        if let timer { loop.cancel(timer) }
        if case .died(_, let detail) = outcome {
            process.kill()
            await process.reaped()
            if processes[target.app] === process { processes[target.app] = nil }
            if let deadline, loop.now >= deadline {
                return .died(.timeout, "\(entry.name) did not return within \(limit?.shown ?? "")")
            }
            return .died(.crash, "\(entry.name): \(detail), \(process.exit.map { "\($0)" } ?? "")")
        }
        return outcome
    }

    private func answer(of process: ExtensionProcess, to entry: EntryPoint) async -> EntryPointOutcome {
        do throws(WireError) {
            switch entry {
            case .contentRequest(let request, let manifest, let remaining, let essentialRemaining):
                let parameters = ExtensionInterface.ContentRequest.Parameters(
                    request: Int64(request.rawValue), manifest: manifest, remaining: remaining,
                    essentialRemaining: essentialRemaining)
                process.send(try WireCodec.call(ExtensionInterface.ContentRequest.self, parameters, more: true))
                return try await downloads(from: process)
            case .applicationEvent(let request, let remaining, let essentialRemaining):
                let parameters = ExtensionInterface.ApplicationEvent.Parameters(
                    request: Int64(request.rawValue), remaining: remaining, essentialRemaining: essentialRemaining)
                process.send(try WireCodec.call(ExtensionInterface.ApplicationEvent.self, parameters))
                return try await handled(ExtensionInterface.ApplicationEvent.self, from: process) { $0.implemented }
            case .finished(let request, let path):
                let parameters = ExtensionInterface.DownloadFinished.Parameters(
                    download: WireDownload(request, state: 3), path: path)
                process.send(try WireCodec.call(ExtensionInterface.DownloadFinished.self, parameters))
                return try await handled(ExtensionInterface.DownloadFinished.self, from: process) { $0.implemented }
            case .failed(let request, let failure):
                let parameters = ExtensionInterface.DownloadFailed.Parameters(
                    download: WireDownload(request, state: -1), failure: WireFailure(failure))
                process.send(try WireCodec.call(ExtensionInterface.DownloadFailed.self, parameters))
                return try await handled(ExtensionInterface.DownloadFailed.self, from: process) { $0.implemented }
            case .challenge(let request, let question):
                let parameters = ExtensionInterface.Challenged.Parameters(
                    download: WireDownload(request, state: 2), challenge: WireChallenge(question))
                process.send(try WireCodec.call(ExtensionInterface.Challenged.self, parameters))
                return try await disposition(from: process)
            }
        } catch {
            return .died(.invalid, "it answered nonsense (\(error))")
        }
    }

    private func downloads(from process: ExtensionProcess) async throws(WireError) -> EntryPointOutcome {
        var requests: [DownloadRequest] = []
        while let frame = await process.nextFrame() {
            let (reply, continues) = try frame.decoded(ExtensionInterface.ContentRequest.self)
            guard reply.implemented else { return .notImplemented }
            guard reply.downloads.count <= WireLimit.pageMax,
                requests.count + reply.downloads.count <= PolicyNumbers.answerDownloadsMax
            else { throw .tooLong }
            requests += reply.downloads.map(DownloadRequest.init)
            if !continues { return .downloads(requests) }
        }
        return .died(.crash, "it ended while it was asked")
    }

    private func disposition(from process: ExtensionProcess) async throws(WireError) -> EntryPointOutcome {
        guard let frame = await process.nextFrame() else { return .died(.crash, "it ended inside the callback") }
        let reply = try frame.decoded(ExtensionInterface.Challenged.self).reply
        let answer = WireAnswer(reply.disposition, user: reply.user, password: reply.password, keep: reply.keep)
        guard let answer else { throw .malformed }
        return answer.disposition.map { .answered($0) } ?? .notImplemented
    }

    private func handled<M: WireMethod>(
        _ method: M.Type, from process: ExtensionProcess, _ isImplemented: (M.Reply) -> Bool
    ) async throws(WireError) -> EntryPointOutcome {
        guard let frame = await process.nextFrame() else { return .died(.crash, "it ended inside the callback") }
        return isImplemented(try frame.decoded(method).reply) ? .handled : .notImplemented
    }

    // MARK: Life

    package func end(app: String) async {
        guard let process = processes.removeValue(forKey: app) else { return }
        process.closeEntry()
        let timer = loop.schedule(after: PolicyNumbers.terminationGrace) { process.kill() }
        await process.reaped()
        loop.cancel(timer)
        host?.note(.extensionEnded, .none, app, process.exit.map { "\($0)" } ?? "")
    }

    private func running(_ target: ExtensionTarget) throws(SystemCallError) -> ExtensionProcess {
        if let process = processes[target.app], process.exit == nil { return process }
        let process = try launch(target)
        processes[target.app] = process
        return process
    }

    /// The child's descriptors: 0 /dev/null, 1 and 2 the journal pipe, 3 entry points, 4 requests, 5 events.
    private func launch(_ target: ExtensionTarget) throws(SystemCallError) -> ExtensionProcess {
        var entry = try UnixSocket.pair()
        var requests = try UnixSocket.pair()
        var events = try UnixSocket.pair()
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        var pipe: [Int32] = [-1, -1]
        try check("pipe2") { clinux_pipe2(&pipe, Int32(O_CLOEXEC)) }
        let output = Descriptor(owning: pipe[0])
        let journal = Descriptor(owning: pipe[1])
        let entryEnd = entry.takeSecond()
        let requestsEnd = requests.takeSecond()
        let eventsEnd = events.takeSecond()
        let home = "\(root)/Containers/Extension/\(target.extensionIdentifier)"
        let child = try ChildProcess(
            ProgramStart(
                path: launcher, arguments: ["\(getpid())", "\(home)/home", "\(root)/\(target.executable)"],
                environment: childEnvironment(home),
                descriptors: [
                    null.rawValue, journal.rawValue, journal.rawValue, entryEnd.rawValue, requestsEnd.rawValue,
                    eventsEnd.rawValue,
                ]))
        let note = host?.note
        let app = target.app
        note?(.extensionLaunched, .none, app, "process \(child.process)")
        let process = try ExtensionProcess(
            child: child, entry: entry.takeFirst(), output: output, loop: loop, limits: Self.limits,
            print: { line in note?(.extensionOutput, .none, app, line) })
        host?.adopt(requests.takeFirst(), app)
        host?.adopt(events.takeFirst(), app)
        return process
    }

    private func childEnvironment(_ container: String) -> [String: String] {
        var result = [
            "HOME": "\(container)/home", "TMPDIR": "\(container)/tmp", "BACKGROUNDASSETS_DEVICE": root,
            "BACKGROUNDASSETS_EXTENSION": "1", "SWIFT_BACKTRACE": "enable=no", "PATH": "/usr/bin:/bin",
        ]
        for name in ["LANG", "LC_ALL", "TZ"] + ProcessEnvironment.sanitizerOptions { result[name] = environment[name] }
        result[RepairLibrary.launcherVariable] = repairLibrary
        return result
    }
}

extension [UInt8] {
    /// A reply of the extension; its errors count as nonsense.
    fileprivate func decoded<M: WireMethod>(_ method: M.Type) throws(WireError) -> (reply: M.Reply, continues: Bool) {
        let result: Result<(M.Reply, Bool), WireError> = withUnsafeBytes { frame in
            Result { () throws(WireError) in
                guard case .reply(let continues) = try WireCodec.decodeAnswer(frame) else { throw .malformed }
                return (try WireCodec.decodeReply(method, frame), continues)
            }
        }
        return try result.get()
    }
}
