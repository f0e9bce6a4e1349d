// Many small files: each on the disk and told of, against tools that only write.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// How long an app waits for thousands of files, from the moment the server answers until its last callback has ended.
///
/// The app is launched, has asked for all of them and has a delegate; the server has been held until then.
/// Each round fetches into new folders and nothing is removed before the end: where thousands of files were removed a moment
/// ago, making files is slow, since ext4 without a journal passes their numbers over for minutes. Therefore each round's
/// folder is also far from all others. aria2 makes and removes a file beside each of its own, so its rounds come last.
struct ManyBench: Bench {
    let name = "many"
    let summary = "10000 files of 10 KiB and 2000 of 100 KiB, each durable and told of, against curl -Z and aria2c"

    func measure(until deadline: Deadline) throws -> [Figure] {
        let run = try ManyRun(name: name)
        defer { run.finish() }
        return try run.figures(until: deadline)
    }
}

/// Files of one size.
struct ManyFiles {
    let name: String
    let count: Int
    let bytes: Int

    static let all = [
        ManyFiles(name: "10k", count: 10_000, bytes: 10 << 10),
        ManyFiles(name: "100k", count: 2_000, bytes: 100 << 10),
    ]

    var names: [String] { (1...count).map { "\(name)-\($0).bin" } }
}

/// What one run needs, and its measurements.
private final class ManyRun {
    private static let rounds = 5
    /// A sync for each file, and a callback.
    private static let curlRatioMax = 2.5
    private static let aria2RatioMax = 0.3

    private let name: String
    private let folder: String
    private let log: String
    private let nginx: Nginx
    private let peers: ManyPeers
    private var number = 0

    init(name: String) throws {
        self.name = name
        folder = try Folder.temporary()
        log = folder + "/programs.log"
        Folder.spread(below: folder, log: log)
        nginx = try Nginx(folder: folder + "/nginx", authority: nil)
        for files in ManyFiles.all {
            for file in files.names { try Folder.writeRandom(files.bytes, to: "\(nginx.site)/\(file)") }
        }
        peers = try ManyPeers(baseURL: nginx.baseURL, folder: folder, log: log)
    }

    func finish() {
        nginx.stop()
        try? Folder.remove(folder)
    }

    func figures(until deadline: Deadline) throws -> [Figure] {
        let found = try ManyFiles.all.map { try compareWithCurl($0, until: deadline) }
        return try zip(ManyFiles.all, found).flatMap { files, found in
            let aria2 = try Contest.run(
                [
                    Contender("aria2c") { try self.peers.aria2(files, to: self.place()) },
                    Contender("aria2c, tuned") { try self.peers.aria2Tuned(files, to: self.place()) },
                ], rounds: Self.rounds, deadline: deadline)
            return figures(of: files, found, aria2: aria2[0].median, aria2Tuned: aria2[1].median)
        }
    }

    private func compareWithCurl(_ files: ManyFiles, until deadline: Deadline) throws -> ManyComparison {
        var outcomes: [ManyOutcome] = []
        let samples = try Contest.run(
            [
                Contender("us") {
                    let outcome = try self.fetch(files)
                    outcomes.append(outcome)
                    return outcome.wall
                },
                Contender("curl") { try self.peers.curl(files, to: self.place()) },
                Contender("curl, synced") { try self.peers.curlSynced(files, to: self.place()) },
            ], rounds: Self.rounds, deadline: deadline)
        return ManyComparison(
            ours: samples[0].median, curl: samples[1].median, curlSynced: samples[2].median,
            // The first belongs to the round that does not count.
            outcomes: Array(outcomes.dropFirst()), memoryGrowth: try fetch(files, isWatched: true).memoryGrowth)
    }

    private func figures(
        of files: ManyFiles, _ found: ManyComparison, aria2: Double, aria2Tuned: Double
    ) -> [Figure] {
        let (ours, curl, counted) = (found.ours, found.curl, found.outcomes)
        func figure(_ word: String, _ value: Double, _ unit: String, peer: String? = nil, target: Target? = nil)
            -> Figure
        {
            Figure(bench: name, name: "\(files.name)_\(word)", value: value, unit: unit, peer: peer, target: target)
        }
        return [
            figure(
                "wall_ratio_curl", ours / curl, "x", peer: "curl -Z --parallel-max 16",
                target: .atMost(Self.curlRatioMax)),
            figure("wall_ratio_aria2", ours / aria2, "x", peer: "aria2c -j16", target: .atMost(Self.aria2RatioMax)),
            figure("wall_ratio_aria2_tuned", ours / aria2Tuned, "x", peer: "aria2c -j16, tuned"),
            figure("wall", ours, "ms"), figure("wall_curl", curl, "ms"), figure("wall_aria2", aria2, "ms"),
            figure("wall_aria2_tuned", aria2Tuned, "ms"),
            figure("wall_curl_synced", found.curlSynced, "ms", peer: "curl -Z, then a sync of each file"),
            figure("curl_synced_ratio_aria2", found.curlSynced / aria2, "x", peer: "aria2c -j16"),
            figure("rate", Double(files.count) / ours * 1000, "files/s"),
            figure("cpu_service", Sample(counted.map(\.serviceTime)).median, "ms"),
            figure("cpu_app", Sample(counted.map(\.appTime)).median, "ms"),
            figure("cpu_server", Sample(counted.map(\.serverTime)).median, "ms"),
            figure("service_memory_growth", found.memoryGrowth, "MiB"),
        ]
    }

    /// A new folder.
    private func place() throws -> String {
        number += 1
        let path = "\(folder)/\(number)"
        try Folder.make(path)
        return path
    }

    /// Lets an app of a new device get all files.
    private func fetch(_ files: ManyFiles, isWatched: Bool = false) throws -> ManyOutcome {
        let place = try place()
        let device = try PrivateDevice(folder: place)
        defer { device.end(SIGTERM) }
        let front = try Nginx(folder: place + "/nginx", authority: device.authority)
        defer { front.stop() }
        try Folder.write("", to: front.site + "/manifest.txt")
        let list = place + "/list"
        try Folder.write(files.names.map { "\(nginx.baseURL)/\($0) \(files.bytes)\n" }.joined(), to: list)
        let bundle = try BenchBundle(in: place, manifestURL: front.baseURL + "/manifest.txt")
        nginx.pause()
        defer { nginx.goOn() }
        try device.install(bundle.path)
        let app = try AppCalls(device: device, folder: place).open(["keep", list])
        defer { _ = app.program.end(SIGTERM) }
        _ = try line(0, of: app)
        Folder.settle()
        let before = try times(device, app.program)
        let memoryBefore = try Machine.anonymousMemory(of: device.process())
        let watch = isWatched ? try MemoryWatch(device.process()) : nil
        let start = MonotonicClock.now
        nginx.goOn()
        let said = try line(1, of: app)
        guard let end = Int64(said) else { throw BenchError("the app could not keep a file: \(said)") }
        try waitUntilAllIsClosed(device)
        let memory = Double((watch?.end() ?? memoryBefore) - memoryBefore) / Double(1 << 20)
        let after = try times(device, app.program)
        try check(files, in: device.container(of: BenchBundle.group) + "/Kept")
        return ManyOutcome(
            wall: (.nanoseconds(end) - start).milliseconds, serviceTime: (after.service - before.service).milliseconds,
            appTime: (after.app - before.app).milliseconds, serverTime: (after.server - before.server).milliseconds,
            memoryGrowth: memory)
    }

    private func times(
        _ device: PrivateDevice, _ app: Program
    ) throws -> (service: Duration, app: Duration, server: Duration) {
        (
            try Machine.processorTime(ofGroup: device.process()), try Machine.processorTime(ofGroup: app.process),
            try nginx.processorTime()
        )
    }

    /// A line that the app prints.
    private func line(_ number: Int, of app: (program: Program, output: String)) throws -> String {
        let deadline = Deadline(in: .seconds(120))
        while true {
            let lines = try Folder.text(app.output).split(separator: "\n")
            if lines.count > number { return String(lines[number]) }
            guard app.program.isRunning else { throw BenchError("the app has ended: \(app.program.lastWords)") }
            guard !deadline.hasPassed else { throw BenchError("the app did not get all files") }
            usleep(2_000)
        }
    }

    /// Every message is handled and its row gone.
    private func waitUntilAllIsClosed(_ device: PrivateDevice) throws {
        let connection = try device.connect()
        defer { connection.close() }
        let deadline = Deadline(in: .seconds(60))
        while !deadline.hasPassed {
            var count = 0
            try connection.stream(DeviceInterface.Downloads.self, .init(app: "")) { page in
                count += page.downloads.count
                return true
            }
            if count == 0 { return }
            usleep(20_000)
        }
        throw BenchError("messages were left open")
    }

    /// Compares what the app has kept with what the server has.
    private func check(_ files: ManyFiles, in folder: String) throws {
        for name in files.names {
            guard try Folder.bytes("\(folder)/\(name)") == Folder.bytes("\(nginx.site)/\(name)") else {
                throw BenchError("\(name) is not what the server has")
            }
        }
    }
}

/// Medians in milliseconds, with the rounds of ours.
private struct ManyComparison {
    var ours: Double
    var curl: Double
    /// With a sync of each file afterwards.
    var curlSynced: Double
    var outcomes: [ManyOutcome]
    var memoryGrowth: Double
}

/// What one round of ours took, in milliseconds and MiB.
private struct ManyOutcome {
    var wall: Double
    var serviceTime: Double
    var appTime: Double
    var serverTime: Double
    var memoryGrowth: Double
}
