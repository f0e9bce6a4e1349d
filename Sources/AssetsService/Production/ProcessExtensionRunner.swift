// Extensions as processes: launched through extension-launcher, called over an inherited socket.
package import AssetsExtensionHost
package import AssetsModel
package import AssetsOS
package import AssetsSandbox
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
    private let sandbox: ExtensionSandbox
    private let environment: [String: String]
    private let groups: Result<ControlGroups, ControlGroups.Obstacle>
    private var host: Host?
    private var listener: (@Sendable (String, ExtensionNews) -> Void)?
    private var processes: [String: ExtensionProcess] = [:]

    /// - Parameters:
    ///   - environment: The service's own; only what extensions need of it is passed on.
    package init(loop: EventLoop, root: String, sandbox: ExtensionSandbox, environment: [String: String]) {
        self.loop = loop
        self.root = root
        self.sandbox = sandbox
        self.environment = environment
        groups = Result { () throws(ControlGroups.Obstacle) in try ControlGroups() }
    }

    /// What bounds extensions beside the service itself.
    package var bounds: String { ControlGroups.summary(groups) }

    package nonisolated var sandboxReports: [SandboxReport] { sandbox.reports }

    package func attach(to host: Host) { self.host = host }

    package func report(to listener: @escaping @Sendable (String, ExtensionNews) -> Void) { self.listener = listener }

    // MARK: Calls

    package func call(_ entry: EntryPoint, of app: String) async -> EntryPointOutcome {
        guard let process = processes[app] else { return .died(.crash, "it is gone") }
        guard process.beginCall() else { return .died(.invalid, "it answered more than it was asked") }
        defer { process.endCall() }
        return await answer(of: process, to: entry)
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
        var length = AnswerLength()
        while let frame = await process.nextFrame() {
            let (reply, continues) = try frame.decoded(ExtensionInterface.ContentRequest.self)
            guard reply.implemented else { return .notImplemented }
            guard reply.downloads.count <= WireLimit.pageMax else { throw .tooLong }
            guard length.add(downloads: reply.downloads.count, bytes: frame.count) else {
                return .died(.invalid, AnswerLength.excess)
            }
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

    package nonisolated func start(_ target: ExtensionTarget) { assumeIsolated { $0.begin(target) } }

    private func begin(_ target: ExtensionTarget) {
        precondition(processes[target.app] == nil, "a second process of \(target.app)")
        Task(executorPreference: loop) { await self.finishStart(target) }
    }

    private func finishStart(_ target: ExtensionTarget) async {
        let app = target.app
        do throws(SystemCallError) {
            let process = try await launch(target)
            processes[app] = process
            place(process, target)
            process.whenReaped = { [weak self] process in
                guard let self else { return }
                assumeIsolated { $0.reaped(process, of: app) }
            }
            process.watchMemory()
            listener?(app, .launched)
        } catch { listener?(app, .launchFailed("the extension cannot be launched: \(error)")) }
    }

    private func place(_ process: ExtensionProcess, _ target: ExtensionTarget) {
        guard case .success(let groups) = groups else { return }
        do throws(SystemCallError) { try groups.place(process.child.process, target.urgency) } catch {
            host?.note(.warning, .memory, target.app, "the extension has no control group: \(error)")
        }
    }

    private func reaped(_ process: ExtensionProcess, of app: String) {
        processes[app] = nil
        if case .success(let groups) = groups { groups.remove(process.child.process) }
        let how = [process.violation, process.exit.map { "\($0)" }].compactMap(\.self).joined(separator: ", ")
        listener?(app, .ended(how, memoryPeak: process.memoryPeak))
    }

    package nonisolated func stop(app: String) {
        assumeIsolated { runner in
            let listener = runner.listener
            // As the kernel names files.
            let root = runner.sandbox.root
            runner.processes[app]?.stop(below: root, isExempt: Self.isOwnLock) { stop in
                switch stop {
                case .stopped: listener?(app, .stopped)
                case .locked(let path): listener?(app, .locked(String(path.dropFirst(root.utf8.count + 1))))
                }
            }
        }
    }

    /// The lock by which a new service knows that an extension of the one before is gone.
    private static func isOwnLock(_ path: String) -> Bool {
        let names = path.split(separator: "/")
        return names.suffix(4).prefix(2).joined(separator: "/") == ContainerFolders.Kind.appExtension.rawValue
            && names.last == ".lock"
    }

    package nonisolated func resume(app: String) { assumeIsolated { $0.processes[app]?.resume() } }

    package nonisolated func tellEnd(app: String) {
        assumeIsolated { runner in
            let listener = runner.listener
            guard let call = try? WireCodec.call(ExtensionInterface.WillTerminate.self, Nothing()),
                let answer = try? WireCodec.reply(ExtensionInterface.WillTerminate.self, Nothing(), continues: false)
            else { preconditionFailure("a message without content cannot be made") }
            runner.processes[app]?.announceEnd(call, answer: answer) { listener?(app, .endNoted) }
        }
    }

    package nonisolated func close(app: String) { assumeIsolated { $0.processes[app]?.closeEntry() } }

    package nonisolated func kill(app: String) { assumeIsolated { $0.processes[app]?.kill() } }

    /// The child's descriptors: 0 /dev/null, 1 and 2 the journal pipe, 3 entry points, 4 requests, 5 events, 6 the lock
    /// of its container.
    private func launch(_ target: ExtensionTarget) async throws(SystemCallError) -> ExtensionProcess {
        let site = sandbox.site(
            container: target.container, executable: target.executable, folder: target.folder,
            groupContainers: target.groups.map(\.folder))
        let lock = try await lock(of: site, target.app)
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
        let box = sandbox.description(
            of: site, priority: SandboxPriority(nice: target.urgency.nice, disk: target.urgency.diskLevel),
            limits: ExtensionLimits.all, environment: childEnvironment(site))
        let child = try sandbox.start(
            box,
            descriptors: [
                null.rawValue, journal.rawValue, journal.rawValue, entryEnd.rawValue, requestsEnd.rawValue,
                eventsEnd.rawValue, lock.descriptor.rawValue,
            ])
        let note = host?.note
        let listener = listener
        let app = target.app
        note?(.extensionLaunched, .none, app, "process \(child.process)")
        let process = try ExtensionProcess(
            child: child, entry: entry.takeFirst(), output: output, loop: loop, limits: Self.limits,
            print: { line in note?(.extensionOutput, .none, app, line) },
            memoryChanged: { verdict, peak in listener?(app, .memory(peak: peak, verdict)) })
        host?.adopt(requests.takeFirst(), app)
        host?.adopt(events.takeFirst(), app)
        return process
    }

    /// Waits until no process of the extension lives, also none that an earlier service has started.
    private func lock(of site: ExtensionSite, _ app: String) async throws(SystemCallError) -> ContainerLock {
        let lock = try ContainerLock(path: site.lock)
        let deadline = loop.now + PolicyNumbers.containerLockPatience
        var isTaken = try lock.take()
        if !isTaken { host?.note(.warning, .restart, app, "an earlier process of the extension has not ended yet") }
        while !isTaken {
            guard loop.now < deadline else { throw SystemCallError(call: "flock", number: EWOULDBLOCK) }
            await loop.pause(for: PolicyNumbers.containerLockLook)
            isTaken = try lock.take()
        }
        return lock
    }

    /// Everything that the extension finds in its environment; the sandbox adds what is loaded into it.
    private func childEnvironment(_ site: ExtensionSite) -> [String: String] {
        var result = [
            "HOME": site.home, "TMPDIR": site.temporary, DeviceLocation.variable: root,
            "BACKGROUNDASSETS_EXTENSION": "1", "SWIFT_BACKTRACE": "enable=no", "PATH": "/usr/bin:/bin",
        ]
        for name in ["LANG", "LC_ALL", "TZ"] + ProcessEnvironment.sanitizerOptions { result[name] = environment[name] }
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
