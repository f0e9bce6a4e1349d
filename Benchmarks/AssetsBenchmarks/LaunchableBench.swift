// From `install` to launchable, against curl for the same bytes.
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc

/// How much longer an installation takes than the mere transfers of what it needs.
///
/// The service runs already and all files are in the server's memory. Before every measurement everything written so
/// far is put on the disk: who writes last must not pay for the one before.
struct LaunchableBench: Bench {
    let name = "launchable"
    let summary = "from 'backgroundassets install' to launchable with one 200 MB essential asset, against curl"

    func measure(until deadline: Deadline) throws -> [Figure] {
        let run = try LaunchableRun(name: name)
        defer { run.finish() }
        return try run.figures(until: deadline)
    }
}

/// What one run needs, and its measurements.
private struct LaunchableRun {
    private static let assetBytes = 200_000_000
    private static let rounds = 11
    /// We verify, sync and ask an extension on top of what curl does.
    private static let ratioMax = 1.15

    private let name: String
    private let folder: String
    private let log: String
    private let device: PrivateDevice
    private let nginx: Nginx
    private let curl: CurlPeer
    private let archiveBytes: Int
    private let manifestBytes: Int

    init(name: String) throws {
        self.name = name
        folder = try Folder.temporary()
        log = folder + "/programs.log"
        device = try PrivateDevice(folder: folder)
        nginx = try Nginx(folder: folder, authority: device.authority)
        let base = nginx.baseURL
        try Folder.writeRandom(Self.assetBytes, to: nginx.site + "/asset.bin")
        let manifest = "\(base)/asset.bin \(Self.assetBytes)\n"
        try Folder.write(manifest, to: nginx.site + "/manifest.txt")
        manifestBytes = manifest.utf8.count
        let bundle = try BenchBundle(in: folder, manifestURL: base + "/manifest.txt")
        archiveBytes = try bundle.archive(to: nginx.site + "/app.tar.zst", log: log)
        curl = try CurlPeer(
            urls: ["app.tar.zst", "manifest.txt", "asset.bin"].map { "\(base)/\($0)" },
            authority: device.authority.certificatePath, folder: folder, log: log)
    }

    func finish() {
        device.end(SIGTERM)
        nginx.stop()
        try? Folder.remove(folder)
    }

    // MARK: Measuring

    func figures(until deadline: Deadline) throws -> [Figure] {
        let invocation = try curl.fastest()
        var splits: [InstallSplit] = []
        let samples = try Contest.run(
            [
                Contender("us") {
                    let (time, split) = try install()
                    splits.append(split)
                    return time
                },
                Contender("curl") { try curl.measure(invocation, syncs: false) },
                Contender("curl and sync") { try curl.measure(invocation, syncs: true) },
            ], rounds: Self.rounds, deadline: deadline)
        let (ours, theirs, synced) = (samples[0].median, samples[1].median, samples[2].median)
        let memory = try installWatched()
        var figures = [
            figure("wall_ratio", ours / theirs, "x", peer: "curl \(invocation)", target: .atMost(Self.ratioMax)),
            figure("wall_ratio_synced", ours / synced, "x", peer: "curl and sync"),
            figure("wall", ours, "ms"), figure("wall_curl", theirs, "ms"), figure("wall_curl_synced", synced, "ms"),
        ]
        // The first belongs to the round that does not count.
        let counted = splits.dropFirst()
        for part in InstallSplit.Part.allCases {
            figures.append(figure("split_\(part)", Sample(counted.map { $0[part] }).median, "ms"))
        }
        return figures + [
            figure("bytes", Double(archiveBytes + manifestBytes + Self.assetBytes), "bytes"),
            figure("archive_bytes", Double(archiveBytes), "bytes"),
            figure("service_memory_peak", Double(memory) / Double(1 << 20), "MiB"),
        ]
    }

    private func figure(
        _ name: String, _ value: Double, _ unit: String, peer: String? = nil, target: Target? = nil
    ) -> Figure {
        Figure(bench: self.name, name: name, value: value, unit: unit, peer: peer, target: target)
    }

    /// Installs once; removes the app again, untimed.
    private func install() throws -> (milliseconds: Double, split: InstallSplit) {
        let last = try device.journal(after: 0).last?.number ?? 0
        Folder.settle()
        let time = try Program.run(
            Program.ours("backgroundassets"),
            ["--device", device.root, "install", nginx.baseURL + "/app.tar.zst"], log: log)
        let split = try InstallSplit(device.journal(after: last), wall: time.milliseconds)
        try device.uninstall(BenchBundle.identifier)
        return (time.milliseconds, split)
    }

    /// The service's memory at its peak; untimed, because who looks takes a share of the machine.
    private func installWatched() throws -> Int {
        let watch = try MemoryWatch(device.process())
        defer { _ = watch.end() }
        _ = try install()
        return watch.end()
    }
}

/// Where the time of one installation went, by the times of its journal rows, in milliseconds.
struct InstallSplit {
    enum Part: Int, CaseIterable { case archive, unpack, manifest, `extension`, essential, gate, rest }

    private var values: [Double] = []

    subscript(part: Part) -> Double { values[part.rawValue] }

    /// `rest` is what the command itself takes: its start, the connection, its end.
    init(_ entries: [DeviceInterface.JournalEntry], wall: Double) throws {
        func time(_ event: String, _ which: (([DeviceInterface.JournalEntry]) -> DeviceInterface.JournalEntry?)) throws
            -> Double
        {
            guard let entry = which(entries.filter { $0.event == event }) else {
                throw BenchError("the journal of the installation has no row '\(event)'")
            }
            return entry.time
        }
        // Archive, manifest and asset finish in this order; the asset is the only download that is queued by name.
        let times = [
            try time("install-started") { $0.first }, try time("download-finished") { $0.first },
            try time("install-staged") { $0.first }, try time("manifest-fetched") { $0.first },
            try time("download-queued") { $0.first }, try time("download-finished") { $0.dropFirst(2).first },
            try time("gate-opened") { $0.first },
        ]
        for (begin, end) in zip(times, times.dropFirst()) { values.append((end - begin) * 1000) }
        values.append(wall - values.reduce(0, +))
    }
}
