// From a request to the first entry point, inside the whole sandbox.
internal import AssetsExtensionHost
internal import AssetsModel
internal import AssetsOS
internal import AssetsSandbox
internal import AssetsService
internal import BenchmarkKit
internal import Glibc

/// How long an app waits for its extension, against the mere start of the same program.
///
/// The service's own runner wakes the extension, one wake after the other, and each wake is a new process from the
/// launcher on. The time ends when the answer of the entry point has arrived, so the entry point itself is in it.
struct WakeBench: Bench {
    let name = "wake"
    let summary = "from a request to the answer of the first entry point in the sandbox, against spawn to main without"

    private static let rounds = 1000
    private static let memoryRounds = 11
    /// Of the start of the same program, and on top of that.
    private static let factorMax = 1.25
    private static let extraMax = 1.0
    private static let memoryMax = 3.5

    func measure(until deadline: Deadline) throws -> [Figure] {
        let device = try WakeDevice()
        defer { device.finish() }
        var contenders = [
            Contender("us") { try device.wake() }, Contender("spawn to main") { try device.startPlainly() },
            Contender("static program") { try device.startStatic() },
        ]
        // Where it may not make namespaces there is nothing to compare with.
        let hasBubblewrap = (try? device.startBubblewrap()) != nil
        if hasBubblewrap { contenders.append(Contender("bwrap") { try device.startBubblewrap() }) }
        let samples = try Contest.run(contenders, rounds: Self.rounds, deadline: deadline)
        let (ours, plain, bare) = (samples[0], samples[1], samples[2])
        let limit = plain.median * Self.factorMax + Self.extraMax
        let memory = try device.memory(rounds: Self.memoryRounds)
        var figures = [
            figure("p50", ours.median, "ms", peer: "1.25 spawn to main + 1 ms", target: .atMost(limit)),
            figure("p99", ours.percentile(99), "ms", peer: "twice that", target: .atMost(2 * limit)),
            figure("main_p50", plain.median, "ms"), figure("main_p99", plain.percentile(99), "ms"),
            figure("loader_share", (plain.median - bare.median) / ours.median * 100, "%"),
            figure("static_p50", bare.median, "ms"), figure("wakes", Double(ours.count), ""),
            figure("memory", memory, "MiB", target: .atMost(Self.memoryMax)),
        ]
        if hasBubblewrap {
            figures.append(figure("bwrap_p50", samples[3].median, "ms"))
            figures.append(figure("bwrap_p99", samples[3].percentile(99), "ms"))
        }
        return figures
    }

    private func figure(
        _ name: String, _ value: Double, _ unit: String, peer: String? = nil, target: Target? = nil
    ) -> Figure {
        Figure(bench: self.name, name: name, value: value, unit: unit, peer: peer, target: target)
    }
}

/// A device without a service: folders, a bundle, and the service's runner on a loop of its own.
private final class WakeDevice {
    private static let limit = Duration.seconds(10)
    private static let app = "org.backgroundassets.bench"

    private let folder: String
    private let root: String
    private let loop: EventLoop
    private let runner: ProcessExtensionRunner
    private let target: ExtensionTarget
    private let news = WakeNews()
    private let output = Guarded<[String]>([])
    private let repairLibrary: String?
    private let bubblewrap: String?

    init() throws {
        folder = try Folder.temporary()
        root = folder + "/device"
        let appex = "Applications/\(Self.app)/1/Bench.app/Extensions/Empty.appex"
        let container = "Containers/Extension/" + ContainerFolders.name(of: "\(Self.app).extension", 1, 2)
        let group = GroupContainer(
            identifier: "g", folder: "Containers/Group/" + ContainerFolders.name(of: "g", 1, 2))
        for path in [appex, "\(container)/home", "\(container)/tmp", "\(container)/Manifests", group.folder] {
            try Folder.make("\(root)/\(path)")
        }
        try Folder.copy(Program.ours("BenchEmptyExtension"), to: "\(root)/\(appex)/Empty")
        try Folder.write("{}", to: "\(root)/\(container)/Manifests/manifest")
        let launcher = try Program.ours("extension-launcher")
        let products = String(launcher.dropLast("/extension-launcher".count))
        repairLibrary = RepairLibrary.path(besideExecutablesIn: products)
        bubblewrap = try? Program.find("bwrap")
        loop = try EventLoop.start(name: "wake")
        let sandbox = try ExtensionSandbox(root: root, launcher: launcher, repairLibrary: repairLibrary)
        for report in sandbox.reports where !report.isActive {
            throw BenchError("the sandbox is not whole here: \(SandboxReport.summary(sandbox.reports))")
        }
        runner = ProcessExtensionRunner(
            loop: loop, root: root, sandbox: sandbox, environment: Program.environment)
        target = ExtensionTarget(
            app: Self.app, container: container, executable: "\(appex)/Empty", folder: appex, groups: [group],
            urgency: .foreground)
        let output = output
        let host = ProcessExtensionRunner.Host(
            adopt: { _, _ in },
            note: { event, _, _, text in if event == .extensionOutput { output.withLock { $0.append(text) } } })
        let news = news
        try perform { runner in
            await runner.attach(to: host)
            await runner.report { _, event in news.add(event) }
            return .milliseconds(0)
        }
    }

    func finish() {
        loop.stop()
        try? Folder.remove(folder)
    }

    // MARK: Contenders

    /// One wake; the extension is gone afterwards, untimed.
    func wake() throws -> Double {
        let manifest = "\(root)/\(target.container)/Manifests/manifest"
        let (target, news, loop) = (target, news, loop)
        return try perform { runner throws(BenchError) in
            let start = MonotonicClock.now
            runner.start(target)
            let beginning = await news.next()
            guard beginning == .launched else { throw BenchError("the extension was not launched: \(beginning)") }
            let timer = loop.schedule(after: Self.limit) { runner.kill(app: target.app) }
            let outcome = await runner.call(
                .contentRequest(.install, manifest: manifest, remaining: nil, essentialRemaining: nil), of: target.app)
            let time = MonotonicClock.now - start
            loop.cancel(timer)
            runner.close(app: target.app)
            _ = await news.next()
            guard outcome == .downloads([]) else { throw BenchError("the extension was not woken: \(outcome)") }
            return time
        }.milliseconds
    }

    /// From before the start of the same program until its first line, with the same libraries.
    func startPlainly() throws -> Double {
        var environment = Program.environment
        environment[RepairLibrary.loaderVariable] = repairLibrary
        return try start("\(root)/\(target.executable)", ["--main"], environment, untilItSpeaks: true)
    }

    /// A program that has nothing to load, from its start to its end.
    func startStatic() throws -> Double {
        try start(Program.ours("extension-launcher"), [], [:], untilItSpeaks: false)
    }

    func startBubblewrap() throws -> Double {
        guard let bubblewrap else { throw BenchError("bwrap is not installed; scripts/bootstrap installs it") }
        let arguments = ["--unshare-all", "--ro-bind", "/", "/", "/bin/true"]
        return try start(bubblewrap, arguments, Program.environment, untilItSpeaks: false, mustSucceed: true)
    }

    private func start(
        _ path: String, _ arguments: [String], _ environment: [String: String], untilItSpeaks: Bool,
        mustSucceed: Bool = false
    ) throws -> Double {
        var pair = try UnixSocket.pair()
        let near = pair.takeFirst()
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        let far = pair.takeSecond()
        let start = MonotonicClock.now
        let child = try ChildProcess(
            ProgramStart(
                path: path, arguments: arguments, environment: environment,
                descriptors: [null.rawValue, far.rawValue, null.rawValue]))
        let raw = near.rawValue
        var byte: UInt8 = 0
        if untilItSpeaks { try check("read") { read(raw, &byte, 1) } }
        let spoken = MonotonicClock.now
        let exit = child.wait()
        let time = (untilItSpeaks ? spoken : MonotonicClock.now) - start
        guard !mustSucceed || exit.isSuccess else { throw BenchError("\(path) \(exit)") }
        return time.milliseconds
    }

    // MARK: Memory

    /// Anonymous memory in MiB when the developer's code begins.
    func memory(rounds: Int) throws -> Double {
        try Folder.write("", to: "\(root)/\(target.container)/home/measure")
        output.withLock { $0 = [] }
        for _ in 0..<rounds { _ = try wake() }
        let values = output.withLock { $0 }.compactMap { line in
            line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { Double($0) }
        }
        guard values.count == rounds else { throw BenchError("the extension did not say how much memory it has") }
        return Sample(values).median / 1024
    }

    // MARK: The loop

    /// Runs something on the runner's loop and waits for it.
    @discardableResult
    private func perform(
        _ body: @escaping @Sendable (ProcessExtensionRunner) async throws(BenchError) -> Duration
    ) throws -> Duration {
        let result = Guarded<Result<Duration, BenchError>?>(nil)
        var pair = try UnixSocket.pair()
        let near = pair.takeFirst()
        let far = SharedDescriptor(pair.takeSecond())
        let runner = runner
        _ = Task(executorPreference: loop) {
            let outcome: Result<Duration, BenchError>
            do throws(BenchError) { outcome = .success(try await body(runner)) } catch { outcome = .failure(error) }
            result.withLock { $0 = outcome }
            var byte: UInt8 = 1
            _ = write(far.rawValue, &byte, 1)
        }
        let raw = near.rawValue
        var byte: UInt8 = 0
        try check("read") { read(raw, &byte, 1) }
        guard let outcome = result.withLock({ $0 }) else { throw BenchError("the loop has ended") }
        return try outcome.get()
    }
}

/// The beginnings and ends of processes, in their order, for one who waits at a time.
private final class WakeNews: Sendable {
    private struct State {
        var events: [ExtensionNews] = []
        var waiter: CheckedContinuation<ExtensionNews, Never>?
    }

    private let state = Guarded(State())

    func add(_ event: ExtensionNews) {
        if case .memory = event { return }
        let waiter = state.withLock { state -> CheckedContinuation<ExtensionNews, Never>? in
            defer { state.waiter = nil }
            if state.waiter == nil { state.events.append(event) }
            return state.waiter
        }
        waiter?.resume(returning: event)
    }

    func next() async -> ExtensionNews {
        await withCheckedContinuation { continuation in
            let event = state.withLock { state -> ExtensionNews? in
                if state.events.isEmpty { state.waiter = continuation }
                return state.events.isEmpty ? nil : state.events.removeFirst()
            }
            if let event { continuation.resume(returning: event) }
        }
    }
}
