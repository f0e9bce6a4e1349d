// What a SIGKILL costs: bytes that are fetched again.
internal import AssetsOS
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc

/// Kills at random moments of downloads that run, up to ten of each, and kills while downloads finish.
struct KillBench: Bench {
    let name = "kill"
    let summary = "bytes fetched twice after SIGKILL at 200 random moments, against curl -C - and aria2c -c"

    func measure(until deadline: Deadline) throws -> [Figure] {
        let run = try KillRun(name: name)
        defer { run.finish() }
        return try run.figures(until: deadline)
    }
}

/// What kills have cost one contender.
private struct KillCost {
    /// Those that met a download that ran.
    var kills = 0
    /// Bytes of the partial file, as they were found when the process was dead, that were asked for again: of each kill
    /// that left some, and after which more was asked for.
    var refetched: [Int64] = []
    /// Bytes that the server had sent beyond the partial file: of each kill that met an answer, and after which more was
    /// asked for.
    var beyond: [Int64] = []
    var wrongFiles = 0
    var files = 0
}

/// What kills have left of one download.
private struct Remains {
    /// The longest partial file that any of them has left: one that was moved to its place counts as long as it was, and one that
    /// is gone without that is found out by what is asked for next.
    var held: Int64 = 0
    /// What the server had sent beyond it when the last one came.
    var beyond: Int64?
}

private final class KillRun {
    private static let kills = 200
    private static let killsOfEach = 10
    /// Those after which more was asked for.
    private static let countedMin = 160.0
    private static let size = 120_000_000
    private static let rate = 60_000_000
    /// Kills of downloads that finish, and the size of these.
    private static let finishes = 100
    /// Those that came before the extension had the file.
    private static let interruptedMin = 25.0
    private static let finishSize = 4_000_000
    /// A write of the service, and one that waits.
    private static let refetchedMax = 0.5
    private static let limit = Duration.seconds(60)

    private let name: String
    private let folder: String
    private let device: PrivateDevice
    private let nginx: Nginx
    private let ours: ServiceResumer
    private let peers: [ToolResumer]
    private var log: RequestLog
    private var chance: Chance
    private var number = 0

    init(name: String) throws {
        self.name = name
        folder = try Folder.temporary()
        device = try PrivateDevice(folder: folder)
        // A connection that is kept for another request would look like one of a dead client.
        nginx = try Nginx(
            folder: folder, authority: device.authority, rate: Self.rate,
            directives: "keepalive_timeout 0; location /fast/ { limit_rate 0; }")
        try Folder.writeRandom(Self.size, to: nginx.site + "/asset.bin")
        try Folder.make(nginx.site + "/fast")
        try Folder.writeRandom(Self.finishSize, to: nginx.site + "/fast/asset.bin")
        for path in ["/asset.bin", "/fast/asset.bin"] { try Folder.makeOld(nginx.site + path) }
        ours = try ServiceResumer(folder: folder, device: device, nginx: nginx)
        let (authority, log) = (device.authority.certificatePath, folder + "/programs.log")
        peers = [
            try .curl(folder: folder + "/curl", authority: authority, log: log),
            try .aria2(folder: folder + "/aria2", authority: authority, log: log),
        ]
        self.log = RequestLog(of: nginx)
        chance = try Chance()
    }

    func finish() {
        device.end(SIGTERM)
        nginx.stop()
        try? Folder.remove(folder)
    }

    // MARK: Figures

    func figures(until deadline: Deadline) throws -> [Figure] {
        chance.announce()
        var costs: [KillCost] = [KillCost(), KillCost(), KillCost()]
        let all: [any Resumer] = [ours] + peers
        var round = 0
        while costs.contains(where: { $0.kills < Self.kills }) {
            guard !deadline.hasPassed else {
                throw BenchError("only \(costs.map(\.kills)) kills fitted into the time of a bench")
            }
            for index in Contest.order(of: all.count, inRound: round) where costs[index].kills < Self.kills {
                try measure(all[index], &costs[index])
            }
            round += 1
        }
        return try zip(all, costs).flatMap { try figures(of: $0, $1) } + finishFigures(until: deadline)
    }

    private func figures(of resumer: any Resumer, _ cost: KillCost) throws -> [Figure] {
        guard let worst = cost.refetched.max() else {
            throw BenchError("\(resumer.name) asked for nothing more after any of \(cost.kills) kills")
        }
        let isOurs = resumer === ours
        let word = resumer.name.split(separator: " ")[0]
        func figure(_ what: String, _ value: Double, _ unit: String, target: Target? = nil) -> Figure {
            Figure(
                bench: name, name: isOurs ? what : "\(what)_\(word)", value: value, unit: unit,
                peer: isOurs ? nil : resumer.name, target: isOurs ? target : nil)
        }
        func mebibytes(_ bytes: Int64) -> Double { Double(bytes) / Double(1 << 20) }
        return [
            figure("refetched_worst", mebibytes(worst), "MiB", target: .atMost(Self.refetchedMax)),
            figure("refetched_total", mebibytes(cost.refetched.reduce(0, +)), "MiB"),
            figure("sent_beyond_worst", mebibytes(cost.beyond.max() ?? 0), "MiB"),
            figure("wrong_files", Double(cost.wrongFiles), "of \(cost.files)", target: .atMost(0)),
            figure("kills", Double(cost.kills), "", target: .atLeast(Double(Self.kills))),
            figure(
                "kills_counted", Double(cost.refetched.count), "of \(cost.kills)", target: .atLeast(Self.countedMin)),
        ]
    }

    // MARK: Kills of a download

    private func measure(_ resumer: any Resumer, _ cost: inout KillCost) throws {
        number += 1
        let file = WantedFile(
            name: "kill-\(number).bin", url: "\(nginx.baseURL)/asset.bin?\(number)", size: Self.size)
        Folder.settle()
        _ = try log.take()
        try resumer.begin([file])
        var remains = Remains()
        for _ in 0..<min(Self.killsOfEach, Self.kills - cost.kills) {
            chance.time(upTo: pause * 2).pass()
            try resumer.kill()
            let length = resumer.length(of: file)
            let answers = try answers()
            // Nothing ran where nothing was asked for, nor where all of it was there.
            if !answers.isEmpty, resumer.result(of: file) == nil { cost.kills += 1 }
            note(answers, length, &remains, &cost)
            try resumer.goOn()
        }
        try resumer.finish(within: Self.limit)
        // Its last answer is logged: it has all bytes.
        note(try log.take(), nil, &remains, &cost)
        cost.files += 1
        let isRight = try resumer.result(of: file).map { try Folder.isEqual($0, nginx.site + "/asset.bin") } ?? false
        if !isRight { cost.wrongFiles += 1 }
        resumer.clear([file])
    }

    /// Spreads the kills over the time that the whole file takes.
    private var pause: Duration { .seconds(Double(Self.size) / Double(Self.rate) / Double(Self.killsOfEach + 1)) }

    /// Counts the answers between two kills. `length` is what was left by the second one; nil where there was none.
    private func note(_ answers: [LoggedAnswer], _ length: Int64?, _ remains: inout Remains, _ cost: inout KillCost) {
        if let first = answers.first, let last = answers.last {
            if remains.held > 0 { cost.refetched.append(max(0, remains.held - first.start)) }
            if let beyond = remains.beyond { cost.beyond.append(beyond) }
            remains.beyond = length.map { max(0, last.start + last.sent - $0) }
        }
        remains.held = max(remains.held, length ?? 0)
    }

    /// What nginx has answered since the last time, once it has noticed that nobody listens any more.
    private func answers() throws -> [LoggedAnswer] {
        let deadline = Deadline(in: Self.limit)
        while try Machine.connections(to: nginx.port) > 0 {
            guard !deadline.hasPassed else { throw BenchError("nginx keeps a connection of a dead client") }
            usleep(1_000)
        }
        return try log.take()
    }

    // MARK: Kills while a download finishes

    private func finishFigures(until deadline: Deadline) throws -> [Figure] {
        var (again, wrong, kills, interrupted) = (Int64(0), 0, 0, 0)
        let window = try finishTime()
        for _ in 0..<Self.finishes where !deadline.hasPassed {
            let file = try beginFast()
            try waitUntilWhole(file)
            chance.time(upTo: window * 1.5).pass()
            try ours.kill()
            kills += 1
            if ours.result(of: file) == nil { interrupted += 1 }
            _ = try answers()
            try ours.goOn()
            try ours.finish(within: Self.limit)
            again += try log.take().filter { $0.path.hasPrefix("/fast/") }.reduce(0) { $0 + $1.sent }
            let path = ours.result(of: file) ?? ""
            if try !Folder.isEqual(path, nginx.site + "/fast/asset.bin") { wrong += 1 }
            ours.clear([file])
        }
        func figure(_ what: String, _ value: Double, _ unit: String, target: Target? = nil) -> Figure {
            Figure(bench: name, name: "finish_" + what, value: value, unit: unit, target: target)
        }
        return [
            figure("refetched", Double(again), "bytes", target: .atMost(0)),
            figure("wrong_files", Double(wrong), "of \(kills)", target: .atMost(0)),
            figure("kills", Double(kills), "", target: .atLeast(Double(Self.finishes))),
            figure("interrupted", Double(interrupted), "of \(kills)", target: .atLeast(Self.interruptedMin)),
            figure("window", window.milliseconds, "ms"),
        ]
    }

    private func beginFast() throws -> WantedFile {
        number += 1
        let file = WantedFile(
            name: "finish-\(number).bin", url: "\(nginx.baseURL)/fast/asset.bin?\(number)", size: Self.finishSize)
        _ = try log.take()
        try ours.begin([file])
        return file
    }

    /// Waits until the last byte is in the file, or has been and the file has gone to its place.
    private func waitUntilWhole(_ file: WantedFile) throws {
        let deadline = Deadline(in: Self.limit)
        var hasBegun = false
        while !deadline.hasPassed {
            let length = ours.length(of: file)
            if length > 0 { hasBegun = true }
            if length == file.size || hasBegun && length == 0 || ours.result(of: file) != nil { return }
        }
        throw BenchError("\(file.name) did not come")
    }

    /// From the last byte until the extension has the file: the median of a few.
    private func finishTime() throws -> Duration {
        let times = try (0..<5).map { _ in
            let file = try beginFast()
            try waitUntilWhole(file)
            let start = MonotonicClock.now
            try ours.finish(within: Self.limit)
            let time = MonotonicClock.now - start
            ours.clear([file])
            return time.microseconds
        }
        return .microseconds(Sample(times).median)
    }
}
