// Whether one transfer can hold up the others: a name that nobody resolves, and transfers that are paused.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc
internal import RootHelperClient

/// Downloads of names that a dead resolver never answers for are begun and cancelled, while others go on.
struct LoopBench: Bench {
    let name = "loop"
    let summary =
        "a dead resolver: cancelling, and the other transfers; memory of paused ones; against aria2c and curl -Z"

    func measure(until deadline: Deadline) throws -> [Figure] {
        if let reason = HelperConnection.whyMissing(.networks) {
            throw BenchError.skip("for want of a network with a name server of its own: \(reason)")
        }
        let run = try LoopRun(name: name)
        defer { run.finish() }
        return try run.figures(until: deadline)
    }
}

/// What the dead resolver has cost one contender.
private struct DeadNames {
    /// From cancelling to its end, in milliseconds; empty for who cannot.
    var cancels: [Double] = []
    /// The longest time without a byte of a transfer that has nothing to do with it.
    var gap: Duration
    /// The same before there was a dead name.
    var quietGap: Duration
}

private final class LoopRun {
    private static let streams = 3
    /// Dead names, each cancelled within `patience` after it was asked for.
    private static let names = 40
    private static let patience = Duration.milliseconds(250)
    private static let window = Duration.seconds(3)
    /// Until the transfers run evenly.
    private static let settling = Duration.seconds(1)
    /// As in `promote`.
    private static let serverPiece = 128 << 10
    private static let rate = serverPiece * 1000 / 4
    /// More than can come.
    private static let size = 1 << 30
    private static let slowRate = 1 << 20
    /// More than can come of that; all of the paused ones together have room on a small disk.
    private static let slowSize = 128 << 20
    private static let cancelMax = 100.0
    private static let gapMax = 50.0
    private static let memoryMax = 1.0
    private static let limit = Duration.seconds(20)
    private static let look: useconds_t = 1_000

    private let name: String
    private let folder: String
    private let network: HelperNetwork
    private let names: DeadNameServer
    private let device: PrivateDevice
    /// In the network.
    private let nginx: Nginx
    /// Where the kernel tells of the memory of whoever receives from it.
    private let near: Nginx
    private let resumer: ServiceResumer
    private var chance: Chance
    private var authority: String { device.authority.certificatePath }

    init(name: String) throws {
        self.name = name
        folder = try Folder.temporary()
        network = try HelperNetwork()
        names = try DeadNameServer(of: network)
        device = try PrivateDevice(folder: folder, in: network)
        let directives = """
            output_buffers 1 \(Self.serverPiece);
            location /slow/ { limit_rate \(Self.slowRate); }
            """
        nginx = try Nginx(
            folder: folder + "/far", authority: device.authority, rate: Self.rate, site: folder + "/site",
            directives: directives, in: network)
        near = try Nginx(
            folder: folder + "/near", authority: device.authority, rate: Self.rate, site: folder + "/site",
            directives: directives)
        try Folder.make(nginx.site + "/slow")
        try Folder.writeHole(Self.size, to: nginx.site + "/stream.bin")
        try Folder.warm(nginx.site + "/stream.bin")
        try Folder.writeHole(Self.slowSize, to: nginx.site + "/slow/stream.bin")
        resumer = try ServiceResumer(folder: folder, device: device, nginx: nginx)
        chance = try Chance()
    }

    func finish() {
        device.end(SIGKILL)
        for nginx in [nginx, near] { nginx.stop() }
        network.remove()
        try? Folder.remove(folder)
    }

    // MARK: Figures

    func figures(until deadline: Deadline) throws -> [Figure] {
        chance.announce()
        let (ours, end): (DeadNames, Duration)
        do { (ours, end) = try service() } catch { throw BenchError("\(error); \(try device.lastRows())") }
        let aria2 = try aria2()
        let curl = try curl()
        let memory = try PausedTransfers.measure(
            near.baseURL + "/slow/stream.bin", authority: authority, folder: folder)
        let aria2Memory = try pausedAria2()
        let ofNames =
            figures(of: ours, "", peer: nil) + [figure("end", end.milliseconds, "ms")]
            + figures(of: aria2, "_aria2", peer: "aria2c") + figures(of: curl, "_curl", peer: "curl -Z")
        return ofNames + memoryFigures(memory, "", peer: nil) + memoryFigures(aria2Memory, "_aria2", peer: "aria2c")
    }

    private func memoryFigures(_ memory: PausedTransfers.Memory, _ suffix: String, peer: String?) -> [Figure] {
        let target: Target? = peer == nil ? .atMost(Self.memoryMax) : nil
        return [
            figure("paused_memory" + suffix, mebibytes(memory.ofPaused), "MiB", peer: peer, target: target),
            figure("waiting_memory" + suffix, mebibytes(memory.ofWaiting), "MiB", peer: peer, target: target),
            figure("paused_below_running" + suffix, mebibytes(memory.givenBack), "MiB", peer: peer),
            figure("running_memory" + suffix, mebibytes(memory.running), "MiB", peer: peer),
        ]
    }

    private func figures(of cost: DeadNames, _ suffix: String, peer: String?) -> [Figure] {
        func figure(_ what: String, _ value: Double, most: Double? = nil) -> Figure {
            let target = peer == nil ? most.map { Target.atMost($0) } : nil
            return Figure(bench: name, name: what + suffix, value: value, unit: "ms", peer: peer, target: target)
        }
        let cancels = cost.cancels.isEmpty ? nil : Sample(cost.cancels)
        return
            (cancels.map {
                [figure("cancel_worst", $0.largest, most: Self.cancelMax), figure("cancel_p50", $0.median)]
            } ?? []) + [
                figure("gap_worst", cost.gap.milliseconds, most: Self.gapMax),
                figure("gap_worst_quiet", cost.quietGap.milliseconds),
            ]
    }

    private func figure(
        _ name: String, _ value: Double, _ unit: String, peer: String? = nil, target: Target? = nil
    ) -> Figure {
        Figure(bench: self.name, name: name, value: value, unit: unit, peer: peer, target: target)
    }

    private func mebibytes(_ bytes: Int) -> Double { Double(bytes) / Double(1 << 20) }

    // MARK: The others

    private func wantedFile(_ number: Int, of host: String) -> WantedFile {
        WantedFile(name: "stream-\(number).bin", url: "\(host)/stream.bin?\(number)", size: Self.size)
    }

    /// Watches files that are being received, once all of them come evenly.
    private func watching<Value>(_ paths: [String], _ body: ([LengthWatch]) throws -> Value) throws -> Value {
        let watches = try paths.map { try LengthWatch($0) }
        defer { for watch in watches { watch.end() } }
        try waitForAll(watches, since: MonotonicClock.now + Self.settling)
        return try body(watches)
    }

    /// Without and with dead names.
    private func measure(_ paths: [String], _ deadNames: () throws -> [Double]) throws -> DeadNames {
        try watching(paths) { watches in
            let quiet = try gap(watches) { Self.window.pass() }
            var cancels: [Double] = []
            let gap = try gap(watches) { cancels = try deadNames() }
            return DeadNames(cancels: cancels, gap: gap, quietGap: quiet)
        }
    }

    private func gap(_ watches: [LengthWatch], during body: () throws -> Void) throws -> Duration {
        let start = MonotonicClock.now
        try body()
        let end = MonotonicClock.now
        try waitForAll(watches, since: end)
        return watches.compactMap { $0.longestGap(from: start, to: end) }.max() ?? .zero
    }

    private func waitForAll(_ watches: [LengthWatch], since moment: Duration) throws {
        let deadline = Deadline(in: Self.limit)
        while !watches.allSatisfy({ $0.length > 0 && $0.hasGrown(since: moment) }) {
            guard !deadline.hasPassed else { throw BenchError("a transfer does not go on") }
            usleep(Self.look)
        }
    }

    /// Begins and cancels downloads of dead names; returns how long cancelling took.
    private func cancelEach(
        of contender: String, begin: (String) throws -> Void, cancel: () throws -> Void
    ) throws -> [Double] {
        try (0..<Self.names).map { number in
            let label = "\(contender)-\(number)"
            try begin("\(label).example.org")
            try names.waitForQuestion(label)
            chance.time(upTo: Self.patience).pass()
            let start = MonotonicClock.now
            try cancel()
            return (MonotonicClock.now - start).milliseconds
        }
    }

    // MARK: Contenders

    /// Also says how long the service takes to end while all those names are still asked for.
    private func service() throws -> (DeadNames, end: Duration) {
        let files = (0..<Self.streams).map { wantedFile($0, of: nginx.baseURL) }
        try resumer.begin(files)
        let connection = try WireControl.declared(device)
        for file in files {
            _ = try connection.call(
                ManagerInterface.StartForeground.self, .init(download: resumer.download(of: file)))
        }
        var dead = resumer.download(of: files[0])
        dead.size = 0
        let random = SystemRandomSource()
        let cost = try measure(files.map(resumer.partial)) {
            try cancelEach(of: "us") { host in
                dead.identifier = host
                dead.uniqueIdentifier = random.uuid()
                dead.url = "https://\(host)/"
                _ = try connection.call(ManagerInterface.StartForeground.self, .init(download: dead))
            } cancel: {
                _ = try connection.call(ManagerInterface.Cancel.self, .init(uniqueIdentifier: dead.uniqueIdentifier))
            }
        }
        connection.close()
        let start = MonotonicClock.now
        device.end(SIGTERM)
        let end = MonotonicClock.now - start
        for file in files { unlink(resumer.partial(of: file)) }
        return (cost, end)
    }

    private func aria2() throws -> DeadNames {
        let aria2 = try Aria2(
            folder: folder + "/aria2", authority: authority, log: folder + "/programs.log",
            options: ["--max-concurrent-downloads=\(PausedTransfers.count)"], in: network)
        defer { aria2.stop() }
        let files = (0..<Self.streams).map { wantedFile($0, of: nginx.baseURL) }
        for file in files { _ = try aria2.add(file.url, as: file.name) }
        var dead = ""
        let cost = try measure(files.map { aria2.path(of: $0.name) }) {
            try cancelEach(of: "aria2") { host in
                dead = try aria2.add("https://\(host)/", as: host)
            } cancel: {
                try aria2.tell("remove", dead)
                try aria2.wait(until: "removed", dead, within: Self.limit)
            }
        }
        try Folder.remove(folder + "/aria2")
        return cost
    }

    /// It begins all at once, and can cancel nothing but itself.
    private func curl() throws -> DeadNames {
        let target = folder + "/curl"
        try Folder.make(target)
        let files = (0..<Self.streams).map { wantedFile($0, of: nginx.baseURL) }
        func gap(with labels: [String]) throws -> Duration {
            let transfers = files.map { ($0.url, $0.name) } + labels.map { ("https://\($0).example.org/", $0) }
            let program = try Program(
                Program.find("curl"),
                ["-q", "-s", "-S", "--cacert", authority, "-Z", "--parallel-max", "\(transfers.count)"]
                    + transfers.flatMap { ["-o", "\(target)/\($1)", $0] }, log: folder + "/programs.log", in: network)
            defer { _ = program.end(SIGTERM) }
            for label in labels.suffix(1) { try names.waitForQuestion(label) }
            return try watching(files.map { "\(target)/\($0.name)" }) { try self.gap($0) { Self.window.pass() } }
        }
        let quiet = try gap(with: [])
        for file in files { unlink("\(target)/\(file.name)") }
        let cost = DeadNames(cancels: [], gap: try gap(with: (0..<Self.names).map { "curl-\($0)" }), quietGap: quiet)
        try Folder.remove(target)
        return cost
    }

    private func pausedAria2() throws -> PausedTransfers.Memory {
        let aria2 = try Aria2(
            folder: folder + "/aria2", authority: authority, log: folder + "/programs.log",
            options: ["--max-concurrent-downloads=\(PausedTransfers.count)"])
        defer { aria2.stop() }
        let idle = try idleMemory(of: aria2)
        let names = (0..<PausedTransfers.count).map { "slow-\($0).bin" }
        let downloads = try names.map { try aria2.add("\(near.baseURL)/slow/stream.bin?\($0)", as: $0) }
        let running = try watching(names.map(aria2.path)) { _ in try PausedTransfers.sample(aria2.process) }
        try aria2.pauseAll()
        for download in downloads { try aria2.wait(until: "paused", download, within: Self.limit) }
        PausedTransfers.settling.pass()
        let paused = try PausedTransfers.sample(aria2.process)
        // A paused download of aria2 has no connection, however short the pause.
        return PausedTransfers.Memory(idle: idle, running: running, paused: paused, waiting: paused)
    }

    /// After a download that ran and was removed, as the engine is measured.
    private func idleMemory(of aria2: Aria2) throws -> Int {
        let name = "slow-first.bin"
        let download = try aria2.add("\(near.baseURL)/slow/stream.bin?\(name)", as: name)
        try watching([aria2.path(of: name)]) { _ in }
        try aria2.tell("remove", download)
        try aria2.wait(until: "removed", download, within: Self.limit)
        PausedTransfers.settling.pass()
        return try PausedTransfers.sample(aria2.process)
    }
}
