// The parts of a running service, from start to clean end.
internal import AssetsExtensionHost
internal import AssetsInstaller
internal import AssetsModel
internal import AssetsOS
internal import AssetsSandbox
internal import AssetsStore
internal import AssetsTransfer
internal import Glibc

/// One device being served; its threads are "backgroundassets" (the main thread, also of the store), "transfer",
/// "write", "background", "hash", "disk" and "unpack".
///
/// Used on the service's loop only.
final class RunningService: @unchecked Sendable {
    // Sendable because every access is on the service's loop: the callbacks that touch it are made there.

    /// How long the service's thread looks for the next call before it sleeps.
    private static let watching = Duration.microseconds(50)

    /// Threads that write and sync files. Each has the disk begin to write all small files that wait before it waits for
    /// the first: so few take as many files a second as eight that write one at a time, for a sixth less of the processor.
    private static let writers = 3

    private let location: DeviceLocation
    private let idleExit: Duration
    private let environment: [String: String]
    private let loop: EventLoop
    private let transferLoop: EventLoop
    private let writeLoops: [EventLoop]
    private let backgroundLoop: EventLoop
    private let hashLoop: EventLoop
    private let diskLoop: EventLoop
    private let unpackLoop: EventLoop
    private var service: AssetsService?
    private var store: Store?
    private var endpoint: WireEndpoint?
    private var signals: SignalSource?
    private var folderWatch: FolderWatch?
    /// False where the service manager has the socket.
    private var isSocketOurs = false
    private var idleTimer: TimerToken?
    private var status = ServiceMain.Status.done

    init(location: DeviceLocation, idleExit: Duration, environment: [String: String]) throws(AssetsError) {
        self.location = location
        self.idleExit = idleExit
        self.environment = environment
        do throws(SystemCallError) {
            loop = try EventLoop(watching: Self.watching)
            transferLoop = try EventLoop.start(name: "transfer")
            writeLoops = try (0..<Self.writers).map { _ throws(SystemCallError) in try EventLoop.start(name: "write") }
            backgroundLoop = try EventLoop.start(name: "background")
            hashLoop = try EventLoop.start(name: "hash")
            diskLoop = try EventLoop.start(name: "disk")
            unpackLoop = try EventLoop.start(name: "unpack")
        } catch { throw AssetsError(.deviceUnusable, "no threads: \(error)") }
    }

    /// Serves on the calling thread.
    func run() -> ServiceMain.Status {
        _ = Task(executorPreference: loop) { await self.begin() }
        loop.run()
        return status
    }

    private func begin() async {
        do throws(AssetsError) { try await start() } catch {
            ServiceMain.report(error, environment)
            status = .failed
            stopLoops()
        }
    }

    private func start() async throws(AssetsError) {
        let seams = try await seams()
        store = seams.store
        let service = AssetsService(seams: seams)
        self.service = service
        let endpoint = WireEndpoint(service: service, loop: loop, version: ServiceMain.version)
        self.endpoint = endpoint
        guard let runner = seams.extensions as? ProcessExtensionRunner else { preconditionFailure("no process runner") }
        await runner.attach(
            to: .init(
                adopt: { socket, app in endpoint.adopt(socket, extensionOf: app) },
                note: { event, reason, app, detail in
                    service.perform { $0.journal(event, reason, app: app, detail) }
                }))
        do throws(SystemCallError) {
            signals = try SignalSource([SIGTERM, SIGINT, SIGHUP], on: loop) { _ in self.stop() }
        } catch { throw AssetsError(.deviceUnusable, "signals: \(error)") }
        try await service.start()
        await service.note(.transfersReady, .none, await transferAbilities())
        await service.note(.sandboxReady, .none, SandboxReport.summary(runner.sandboxReports))
        await service.note(.extensionsReady, .none, await runner.bounds)
        if let damaged = await seams.store.damagedCopy {
            await service.note(.warning, .invalid, "the database was damaged and set aside as \(damaged)")
        }
        try listen(endpoint)
        await service.observeActivity { self.activityChanged() }
        watchFolder()
        try? ServiceNotification(environment: environment)?.send(.ready)
        activityChanged()
    }

    /// What this machine lets transfers do; makes the thread of background writes idle.
    private func transferAbilities() async -> String {
        let hasIdleDisk = await withCheckedContinuation { continuation in
            backgroundLoop.perform { continuation.resume(returning: DiskPriority.makeThreadIdle()) }
        }
        let socket = SocketPriority.abilities
        let background = [
            (hasIdleDisk, "idle disk priority"), (socket.network, "network class Lower Effort"),
            (socket.kernel, "lowest socket priority"),
        ]
        let isDone = background.filter(\.0).map(\.1)
        return "\(CurlTransport.http2.reason); background transfers have "
            + (isDone.isEmpty ? "the priority of all others" : isDone.joined(separator: ", "))
    }

    private func seams() async throws(AssetsError) -> ServiceSeams {
        let store: Store
        let files: DeviceTree
        do throws(SystemCallError) { files = try DeviceTree(root: location.root) } catch {
            throw AssetsError(.deviceUnusable, "\(location.root): \(error)", remedy: "check the folder's permissions")
        }
        if let kind = files.unreliableFileSystem {
            throw AssetsError(
                .deviceUnusable, "\(location.root) is on \(kind), which does not promise to keep what was synced",
                remedy: "name a folder on a disk of this machine with --device")
        }
        do throws(StoreError) {
            store = try await Store(path: location.root + "/device.sqlite", on: loop)
        } catch {
            throw AssetsError(
                .deviceUnusable, "\(location.root)/device.sqlite: \(error)",
                remedy: "close the program that has it open, or name another device")
        }
        let sandbox = try extensionSandbox()
        let options = CurlTransport.Options(extraAuthorities: location.root + "/DevelopmentCA/ca.pem")
        return ServiceSeams(
            loop: loop, disk: DiskWorker(on: diskLoop), unpacking: DiskWorker(on: unpackLoop),
            calendar: SystemCalendarClock(), random: SystemRandomSource(), files: files, store: store,
            transfers: TransferEngine(
                on: transferLoop, disks: writeLoops, backgroundDisk: backgroundLoop, hashing: hashLoop, files: files,
                transport: CurlTransport.factory(options)),
            staging: ArchiveStaging(root: location.root),
            extensions: ProcessExtensionRunner(
                loop: loop, root: location.root, sandbox: sandbox, environment: environment),
            network: KernelNetwork(on: loop), environment: environment,
            launchEnvironment: launchEnvironment())
    }

    /// A device that is not the user's own is named to the apps; all learn which program serves it, and get Foundation
    /// repaired.
    private func launchEnvironment() -> [String: String] {
        var result = ["BACKGROUNDASSETS_SERVICE": ownPath()]
        result[RepairLibrary.loaderVariable] = repairLibrary()
        var general = environment
        general[DeviceLocation.variable] = nil
        if DeviceLocation(environment: general) != location { result[DeviceLocation.variable] = location.root }
        return result
    }

    /// What this machine can close extensions off with.
    private func extensionSandbox() throws(AssetsError) -> ExtensionSandbox {
        do throws(SystemCallError) {
            return try ExtensionSandbox(
                root: location.root, launcher: launcherPath(), repairLibrary: repairLibrary())
        } catch {
            throw AssetsError(
                .deviceUnusable, "the sandbox of extensions: \(error)", remedy: "check what the machine has left")
        }
    }

    /// Beside the service's own executable, or where the environment says.
    private func launcherPath() -> String {
        environment["BACKGROUNDASSETS_LAUNCHER"] ?? ownPath().parentPath + "/extension-launcher"
    }

    private func repairLibrary() -> String? { RepairLibrary.path(besideExecutablesIn: ownPath().parentPath) }

    private func ownPath() -> String {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }

    private func listen(_ endpoint: WireEndpoint) throws(AssetsError) {
        var activation = SocketActivation(environment: environment)
        do throws(SystemCallError) {
            if let socket = activation.takeListener() {
                try endpoint.listen(on: socket)
            } else {
                try endpoint.listen(on: UnixSocket.listen(at: location.socketPath))
                isSocketOurs = true
            }
        } catch {
            throw AssetsError(
                .deviceUnusable, "\(location.socketPath): \(error)", remedy: "check the folder's permissions")
        }
    }

    // MARK: The end

    private var isNeeded: Bool {
        guard let service, let endpoint else { return false }
        return endpoint.hasClients || service.assumeIsolated { $0.isBusy || $0.hasPlans && !isManaged }
    }

    /// A service manager starts the service again when a periodic check may be due; without one it stays for that.
    private var isManaged: Bool { environment["NOTIFY_SOCKET"] != nil }

    private func activityChanged() {
        guard endpoint != nil else { return }
        if isNeeded {
            if let idleTimer { loop.cancel(idleTimer) }
            idleTimer = nil
        } else if idleTimer == nil {
            idleTimer = loop.schedule(after: idleExit) { self.leave() }
        }
    }

    /// Ends the service when nobody needs it, and leaves no client behind that connects in this moment.
    private func leave() {
        idleTimer = nil
        guard let endpoint, !isNeeded else { return }
        // From here on clients find no socket and start a service of their own; whoever came before is accepted below.
        // A service manager goes on listening and hands those who wait to the next service.
        let hidden = location.socketPath + ".leaving"
        if isSocketOurs { _ = rename(location.socketPath, hidden) }
        if endpoint.closeIfUnwanted() {
            if isSocketOurs { unlink(hidden) }
            return stop()
        }
        if isSocketOurs { _ = rename(hidden, location.socketPath) }
        activityChanged()
    }

    /// Without its folder the device is no more: what is received has no place, and another service may serve a new one.
    private func watchFolder() {
        // A system without watches left goes on without.
        folderWatch = try? FolderWatch(location.root, holding: location.lockPath, on: loop) { [self] in
            ServiceMain.complain("\(location.root) was removed or moved away; the service ends")
            stop()
        }
    }

    private func stop() {
        guard signals != nil else { return }
        signals?.cancel()
        signals = nil
        folderWatch?.cancel()
        folderWatch = nil
        endpoint?.close()
        endpoint = nil
        try? ServiceNotification(environment: environment)?.send(.stopping)
        _ = Task(executorPreference: loop) {
            await self.service?.stop()
            // Before the device's lock is let go: who takes it next opens the same database.
            try? await self.store?.close()
            self.stopLoops()
        }
    }

    private func stopLoops() {
        for other in [transferLoop, backgroundLoop, hashLoop, diskLoop, unpackLoop] + writeLoops { other.stop() }
        loop.stop()
    }
}

/// Bundles staged by the installer's parts.
struct ArchiveStaging: BundleStaging {
    let root: String

    func stage(
        source: String, into folder: String, allowsLoopbackHTTP: Bool, isCancelled: @escaping @Sendable () -> Bool
    ) throws(AssetsError) -> AppDescription {
        try BundleStager(root: root).stage(
            source: source, into: folder, allowsLoopbackHTTP: allowsLoopbackHTTP, isCancelled: isCancelled,
            progress: { _, _ in }
        ).description
    }
}
