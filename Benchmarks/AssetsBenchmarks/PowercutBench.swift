// A thousand power cuts: what an app was told of is there, against tools that do not sync.
internal import AssetsOS
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc
internal import PowerCut
internal import RootHelperClient

/// What is there after the power failed at a random moment, of what had been called finished before.
struct PowercutBench: Bench {
    let name = "powercut"
    let summary = "1000 power cuts at random moments of downloads, against curl, wget and aria2c"

    private static let cycles = 1_000
    private static let cyclesOfPeers = 40
    /// What is left then belongs to the peers.
    private static let timeOfPeers = Duration.seconds(60)

    func measure(until deadline: Deadline) throws -> [Figure] {
        if let reason = HelperConnection.whyMissing(.fileSystems) {
            throw BenchError.skip("for want of a file system whose power can be cut: \(reason)")
        }
        let given = ProcessEnvironment.value("BACKGROUNDASSETS_SEED", in: ProcessEnvironment.current)
        let seed = given.flatMap(UInt64.init) ?? UInt64.random(in: 1...999_999)
        BenchRunner.say("powercut: BACKGROUNDASSETS_SEED=\(seed) repeats its choices")
        let folder = try Folder.temporary()
        defer { try? Folder.remove(folder) }
        let ours = try self.ours(seed, folder + "/ours", deadline)
        for line in (ours.wrong + ours.lost + ours.doubled).prefix(20) { BenchRunner.say(line) }
        return [
            figure("cycles", ours.cycles, target: .atLeast(Double(Self.cycles))), figure("downloads", ours.downloads),
            figure("checked", ours.checked), figure("wrong", ours.wrong.count, target: .atMost(0)),
            figure("lost", ours.lost.count, target: .atMost(0)),
            figure("doubled", ours.doubled.count, target: .atMost(0)), figure("told_again", ours.toldAgain),
            figure("answers_lost", ours.answersLost),
        ] + (try peers(seed, folder + "/peers"))
    }

    private func figure(_ name: String, _ value: Int, peer: String? = nil, target: Target? = nil) -> Figure {
        Figure(
            bench: self.name, name: name, value: Double(value), unit: name == "cycles" ? "cuts" : "files", peer: peer,
            target: target)
    }

    private func disk() throws -> HelperFileSystem {
        try HelperFileSystem(.init(bytes: PowerCutTrial.diskBytes, hasWriteCache: true))
    }

    private func ours(_ seed: UInt64, _ folder: String, _ deadline: Deadline) throws -> PowerCutOutcome {
        let disk = try disk()
        defer { disk.remove() }
        let root = PowerCutTrial.root(on: disk)
        try Folder.make(root)
        let nginx = try Nginx(
            folder: folder, authority: DevelopmentCertificateAuthority(folder: root + "/DevelopmentCA"))
        defer { nginx.stop() }
        try Folder.write("", to: nginx.site + "/manifest.txt")
        let bundle = try BenchBundle(in: folder, manifestURL: nginx.baseURL + "/manifest.txt")
        let app = PowerCutApp(identifier: BenchBundle.identifier, group: BenchBundle.group, bundle: bundle.path)
        let programs = PowerCutPrograms(
            service: try Program.ours("backgroundassetsd"), launcher: try Program.ours("extension-launcher"),
            folder: folder)
        let trial = try PowerCutTrial(
            app, files: ServedFiles(in: nginx.site, baseURL: nginx.baseURL), programs: programs, disk: disk, seed: seed)
        return try trial.run(cycles: Self.cycles) { deadline.left > Self.timeOfPeers }
    }

    private func peers(_ seed: UInt64, _ folder: String) throws -> [Figure] {
        try Folder.make(folder)
        let authority = try DevelopmentCertificateAuthority(folder: folder + "/ca")
        let nginx = try Nginx(folder: folder, authority: authority)
        defer { nginx.stop() }
        let files = try ServedFiles(in: nginx.site, baseURL: nginx.baseURL)
        return try PowercutPeer.all(authority: authority.certificatePath).flatMap { peer in
            let disk = try disk()
            defer { disk.remove() }
            var chance = SeededChance(seed: seed)
            var outcome = PowercutPeer.Outcome()
            for number in 1...Self.cyclesOfPeers {
                try peer.cycle(number, files, on: disk, folder: folder, &chance, &outcome)
            }
            let target = "after \(Self.cyclesOfPeers) cuts"
            return [
                figure("\(peer.name)_finished", outcome.finished, peer: target),
                figure("\(peer.name)_gone", outcome.gone), figure("\(peer.name)_torn", outcome.torn),
            ]
        }
    }
}
