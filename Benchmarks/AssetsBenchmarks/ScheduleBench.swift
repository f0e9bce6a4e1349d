// Durable Schedule calls, against the same rows committed in a bare loop.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// What a call through the socket costs above what the disk and SQLite take, and what a long queue takes of memory.
///
/// Blocks of calls and blocks of bare commits take turns. The downloads lead to a port where nobody answers, so that
/// no bytes flow meanwhile.
struct ScheduleBench: Bench {
    let name = "schedule"
    let summary = "durable Schedule calls through the socket, 100000 of them, against bare SQLite commits"

    func measure(until deadline: Deadline) throws -> [Figure] {
        let run = try ScheduleRun(name: name)
        defer { run.finish() }
        return try run.figures(until: deadline)
    }
}

/// What one run needs, and its measurements.
private struct ScheduleRun {
    private static let blocks = 10
    private static let blockCalls = 10_000
    /// Two context switches, JSON both ways, the rules.
    private static let overheadMax = 60.0
    private static let memoryMax = 24.0

    private let name: String
    private let folder: String
    private let device: PrivateDevice
    private let nginx: Nginx
    private let calls: Calls

    init(name: String) throws {
        self.name = name
        folder = try Folder.temporary()
        device = try PrivateDevice(folder: folder)
        nginx = try Nginx(folder: folder, authority: device.authority)
        try Folder.write("", to: nginx.site + "/manifest.txt")
        let bundle = try BenchBundle(in: folder, manifestURL: nginx.baseURL + "/manifest.txt")
        try device.install(bundle.path)
        calls = try Calls()
    }

    func finish() {
        device.end(SIGTERM)
        nginx.stop()
        try? Folder.remove(folder)
    }

    // MARK: Measuring

    func figures(until deadline: Deadline) throws -> [Figure] {
        let bare = try bareStore()
        let connection = try declared()
        // Round 0 does not count as measurement, but its calls stay queued like all others.
        var ours: [BlockTimes] = []
        var theirs: [BlockTimes] = []
        let total = Self.blocks * Self.blockCalls
        _ = try Contest.run(
            [
                Contender("us") {
                    // The warm-up is small: all blocks that count make the whole number.
                    let count = ours.isEmpty ? Self.blockCalls / 10 : Self.blockCalls
                    ours.append(try calls.schedule(count, on: connection))
                    return ours[ours.count - 1].p50
                },
                Contender("bare") {
                    let count = theirs.isEmpty ? Self.blockCalls / 10 : Self.blockCalls
                    theirs.append(try calls.commit(count, to: bare))
                    return theirs[theirs.count - 1].p50
                },
            ], rounds: Self.blocks, deadline: deadline)
        guard ours.count == Self.blocks + 1 else { throw BenchError("\(total) calls did not fit into the time of a bench") }
        connection.close()
        let memory = try Machine.anonymousMemory(of: device.process())
        let p50 = Sample(ours.dropFirst().map(\.p50)).median
        let bareP50 = Sample(theirs.dropFirst().map(\.p50)).median
        let (survived, restart, listing) = try afterKill()
        return [
            figure("p50_over_bare", p50 - bareP50, "us", peer: "bare SQLite", target: .atMost(Self.overheadMax)),
            figure("p50", p50, "us"), figure("p50_bare", bareP50, "us"),
            figure("p99", Sample(ours.dropFirst().map(\.p99)).median, "us"),
            figure("p99_bare", Sample(theirs.dropFirst().map(\.p99)).median, "us"),
            figure("rate", Sample(ours.dropFirst().map(\.rate)).median, "calls/s"),
            figure("rate_bare", Sample(theirs.dropFirst().map(\.rate)).median, "commits/s"),
            figure("memory", Double(memory) / Double(1 << 20), "MiB", target: .atMost(Self.memoryMax)),
            figure("survived_kill", Double(survived), "downloads", target: .atLeast(Double(calls.scheduled.count))),
            figure("restart", restart.milliseconds, "ms"), figure("listing", listing.milliseconds, "ms"),
        ]
    }

    private func figure(
        _ name: String, _ value: Double, _ unit: String, peer: String? = nil, target: Target? = nil
    ) -> Figure {
        Figure(bench: self.name, name: name, value: value, unit: unit, peer: peer, target: target)
    }

    /// A copy of the device's database as the service leaves it, with one queued download to take the values from.
    private func bareStore() throws -> BareStore {
        let connection = try declared()
        _ = try calls.schedule(1, on: connection)
        connection.close()
        device.end(SIGTERM)
        try Folder.copy(device.root + "/device.sqlite", to: folder + "/bare.sqlite")
        try device.start()
        return try BareStore(path: folder + "/bare.sqlite")
    }

    /// A connection that speaks for the installed app.
    private func declared() throws -> ServiceConnection {
        let connection = try device.connect()
        _ = try connection.call(ManagerInterface.Declare.self, .init(app: BenchBundle.identifier))
        return connection
    }

    /// Kills the service, starts it again and counts what is still queued of what was scheduled.
    private func afterKill() throws -> (survived: Int, restart: Duration, listing: Duration) {
        device.end(SIGKILL)
        let killed = MonotonicClock.now
        try device.start()
        let started = MonotonicClock.now
        let connection = try declared()
        defer { connection.close() }
        var found: Set<String> = []
        try connection.stream(ManagerInterface.CurrentDownloads.self, .init()) { page in
            for download in page.downloads { found.insert(download.uniqueIdentifier) }
            return true
        }
        let listed = MonotonicClock.now
        return (found.intersection(calls.scheduled).count, started - killed, listed - started)
    }
}

/// Times of one block, in microseconds.
private struct BlockTimes {
    let p50: Double
    let p99: Double
    /// A second.
    let rate: Double

    init(_ times: [Double]) {
        let sample = Sample(times)
        p50 = sample.percentile(50)
        p99 = sample.percentile(99)
        rate = Double(times.count) / (times.reduce(0, +) / 1_000_000)
    }
}

/// Makes calls and bare commits, each download with names of its own.
private final class Calls {
    private let port: SilentPort
    private let random = SystemRandomSource()
    private var number = 0
    private(set) var scheduled: Set<String> = []

    init() throws { port = try SilentPort() }

    func schedule(_ count: Int, on connection: ServiceConnection) throws -> BlockTimes {
        try block(count) { id, identifier in
            let download = WireDownload(
                identifier: identifier, uniqueIdentifier: id, url: "http://127.0.0.1:\(port.port)/\(identifier)",
                method: "GET", headers: [], body: "", group: BenchBundle.group, essential: false, size: 1_000_000,
                priority: 0, kind: "url", state: 0)
            let start = MonotonicClock.now
            _ = try connection.call(ManagerInterface.Schedule.self, .init(download: download))
            let time = MonotonicClock.now - start
            scheduled.insert(id)
            return time
        }
    }

    func commit(_ count: Int, to store: BareStore) throws -> BlockTimes {
        try block(count) { id, identifier in
            let start = MonotonicClock.now
            try store.queue(id: id, identifier: identifier)
            return MonotonicClock.now - start
        }
    }

    private func block(_ count: Int, _ one: (String, String) throws -> Duration) throws -> BlockTimes {
        Folder.settle()
        var times: [Double] = []
        times.reserveCapacity(count)
        for _ in 0..<count {
            number += 1
            times.append(try one(random.uuid(), "asset-\(number)").microseconds)
        }
        return BlockTimes(times)
    }
}
