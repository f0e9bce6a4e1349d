// Files that are replaced while they are fetched: nobody may get half of each.
internal import AssetsOS
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc

/// Replaces files on servers of all kinds at random moments, and ends whoever fetches them meanwhile.
///
/// A file is put into the place of another by rename, as servers are fed. The service is ended by SIGKILL; the tools by
/// SIGINT, as people do, so that aria2 can note what it has.
struct SpliceBench: Bench {
    let name = "splice"
    let summary = "1000 files replaced at random moments, over all kinds of validators, against curl -C - and aria2c -c"

    func measure(until deadline: Deadline) throws -> [Figure] {
        let run = try SpliceRun(name: name)
        defer { run.finish() }
        return try run.figures(until: deadline)
    }
}

/// What became of the files of one contender.
private struct SpliceTally {
    var replaced = 0
    /// Those of which a part was there when they were replaced.
    var midway = 0
    /// Downloads that were under way when their process ended.
    var interrupted = 0
    var mixed = 0
    var missing = 0
    /// Mixed files by situation.
    var places: [String: Int] = [:]
}

private final class SpliceRun {
    private static let replacements = 1000
    /// The others are replaced before the first bytes are written, or after the last.
    private static let midwayMin = Double(replacements / 4)
    /// Three downloads at once are what a device has for work in the background.
    private static let devices = 4
    private static let filesAtOnce = 12
    private static let size = 2 << 20
    private static let rate = 6 << 20
    /// Half of the files were there for an hour, the others are as fresh as their replacement.
    private static let age = 3600
    private static let limit = Duration.seconds(60)

    private let name: String
    private let folder: String
    private let devices: [PrivateDevice]
    private let servers: SpliceServers
    private let resumers: [any Resumer]
    private var chance: Chance
    private var number = 0

    init(name: String) throws {
        self.name = name
        folder = try Folder.temporary()
        let folder = folder
        devices = try (0..<Self.devices).map { try Self.device($0, in: folder) }
        servers = try SpliceServers(folder: folder, device: devices[0], size: Self.size, rate: Self.rate)
        let (servers, authority, log) = (servers, devices[0].authority.certificatePath, folder + "/programs.log")
        let services = try devices.enumerated().map {
            try ServiceResumer(folder: "\(folder)/\($0.offset)", device: $0.element, nginx: servers.nginx)
        }
        resumers = [
            ResumerTeam(services),
            try ToolResumer.curl(folder: folder + "/curl", authority: authority, log: log, endedBy: SIGINT),
            try ToolResumer.aria2(folder: folder + "/aria2", authority: authority, log: log, endedBy: SIGINT),
        ]
        chance = try Chance()
    }

    /// All devices trust the authority of the first.
    private static func device(_ index: Int, in folder: String) throws -> PrivateDevice {
        let place = "\(folder)/\(index)"
        if index > 0 {
            let authority = place + "/device/DevelopmentCA"
            try Folder.make(authority)
            for file in ["ca.pem", "ca.key"] {
                try Folder.copy("\(folder)/0/device/DevelopmentCA/\(file)", to: "\(authority)/\(file)")
            }
        }
        try Folder.make(place)
        return try PrivateDevice(folder: place)
    }

    func finish() {
        for device in devices { device.end(SIGTERM) }
        servers.stop()
        try? Folder.remove(folder)
    }

    // MARK: Figures

    func figures(until deadline: Deadline) throws -> [Figure] {
        chance.announce()
        var tallies = resumers.map { _ in SpliceTally() }
        var round = 0
        while tallies.contains(where: { $0.replaced < Self.replacements }) {
            guard !deadline.hasPassed else {
                throw BenchError("only \(tallies.map(\.replaced)) replacements fitted into the time of a bench")
            }
            for index in Contest.order(of: resumers.count, inRound: round) {
                try measure(resumers[index], round, &tallies[index])
            }
            round += 1
        }
        return zip(resumers, tallies).flatMap(figures)
    }

    private func figures(of resumer: any Resumer, _ tally: SpliceTally) -> [Figure] {
        let isOurs = resumer === resumers[0]
        let word = resumer.name.split(separator: " ")[0]
        func figure(_ what: String, _ value: Int, _ unit: String, target: Target? = nil) -> Figure {
            Figure(
                bench: name, name: isOurs ? what : "\(what)_\(word)", value: Double(value), unit: unit,
                peer: isOurs ? nil : resumer.name, target: isOurs ? target : nil)
        }
        return [
            figure("mixed", tally.mixed, "of \(tally.replaced)", target: .atMost(0)),
            figure("missing", tally.missing, "of \(tally.replaced)", target: .atMost(0)),
            figure("replaced_midway", tally.midway, "of \(tally.replaced)", target: .atLeast(Self.midwayMin)),
            figure("interrupted", tally.interrupted, ""),
        ] + tally.places.sorted { $0.key < $1.key }.map { figure("mixed_at_\($0.key)", $0.value, "") }
    }

    // MARK: A round

    private struct Case {
        var file: WantedFile
        var situation: SpliceSituation
        var replacedAt: Duration
    }

    private func measure(_ resumer: any Resumer, _ round: Int, _ tally: inout SpliceTally) throws {
        let whole = Duration.seconds(Double(Self.size) / Double(Self.rate))
        let cases = try (0..<Self.filesAtOnce).map { try publish(round * Self.filesAtOnce + $0, within: whole) }
        let files = cases.map(\.file)
        let killAt = chance.time(upTo: whole)
        let start = MonotonicClock.now
        try resumer.begin(files)
        var isKilled = false
        for one in cases.sorted(by: { $0.replacedAt < $1.replacedAt }) {
            if !isKilled, killAt < one.replacedAt {
                try end(resumer, at: start + killAt, files, &tally)
                isKilled = true
            }
            (start + one.replacedAt - MonotonicClock.now).pass()
            try servers.publish(1, as: one.file.name, one.situation)
            if isPart(one.file, of: resumer) { tally.midway += 1 }
        }
        if !isKilled { try end(resumer, at: start + killAt, files, &tally) }
        try resumer.finish(within: Self.limit)
        for one in cases { try judge(one, resumer, &tally) }
        resumer.clear(files)
        for one in cases { servers.withdraw(one.file.name, one.situation) }
    }

    private func publish(_ index: Int, within time: Duration) throws -> Case {
        number += 1
        let situation = SpliceSituation.all[index % SpliceSituation.all.count]
        let name = "splice-\(number).bin"
        try servers.publish(0, as: name, situation, age: chance.next(below: 2) * Self.age)
        return Case(
            file: WantedFile(name: name, url: servers.url(of: name, situation), size: Self.size),
            situation: situation, replacedAt: chance.time(upTo: time))
    }

    private func end(
        _ resumer: any Resumer, at time: Duration, _ files: [WantedFile], _ tally: inout SpliceTally
    ) throws {
        (time - MonotonicClock.now).pass()
        try resumer.kill()
        tally.interrupted += files.count { isPart($0, of: resumer) }
        try resumer.goOn()
    }

    /// Whether some of a file has come, and not all.
    private func isPart(_ file: WantedFile, of resumer: any Resumer) -> Bool {
        resumer.result(of: file) == nil && (1..<Int64(file.size)).contains(resumer.length(of: file))
    }

    private func judge(_ one: Case, _ resumer: any Resumer, _ tally: inout SpliceTally) throws {
        tally.replaced += 1
        guard let path = resumer.result(of: one.file) else {
            tally.missing += 1
            return
        }
        guard try !servers.isOneVersion(path) else { return }
        tally.mixed += 1
        tally.places[one.situation.name, default: 0] += 1
    }
}
