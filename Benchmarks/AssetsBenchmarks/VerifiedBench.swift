// One big file, checked and durable, against the tools that check a file.
internal import AssetsOS
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc

/// What a download of 1 GiB takes until the app's callback: received, its SHA-256 checked, synced, journaled.
struct VerifiedBench: Bench {
    let name = "verified"
    let summary = "1 GiB over https and http: received, SHA-256 checked, synced, told of; against aria2c and curl"

    func measure(until deadline: Deadline) throws -> [Figure] {
        let run = try VerifiedRun(name: name)
        defer { run.finish() }
        return try run.figures(until: deadline)
    }
}

/// What one took.
private struct Cost {
    /// In milliseconds.
    var wall: Double
    /// Of the processors, in milliseconds.
    var cpu: Double
}

/// What one run needs, and its measurements.
private final class VerifiedRun {
    private static let bytes = 1 << 30
    private static let smallBytes = 64 << 20
    private static let rounds = 5
    private static let limit = Duration.seconds(120)
    private static let aria2CPUMax = 0.80
    private static let curlCPUMax = 0.60
    private static let wallMax = 1.0
    private static let memoryMax = 8.0

    private let name: String
    private let folder: String
    private let device: PrivateDevice
    private let secure: Nginx
    private let plain: Nginx
    private let receiver: WireReceiver
    private let peers: VerifiedPeers
    private let idleMemory: Int
    private var digests: [String: String] = [:]
    private var number = 0

    init(name: String) throws {
        self.name = name
        folder = try Folder.temporary()
        device = try PrivateDevice(folder: folder)
        let site = folder + "/site"
        try Folder.make(site)
        try Folder.writeRandom(Self.bytes, to: site + "/big.bin")
        try Folder.writeRandom(Self.smallBytes, to: site + "/small.bin")
        try Folder.write("", to: site + "/manifest.txt")
        let log = folder + "/programs.log"
        for file in ["big.bin", "small.bin"] { digests[file] = try Digests.sha256(of: "\(site)/\(file)", folder) }
        secure = try Nginx(folder: folder + "/https", authority: device.authority, site: site)
        plain = try Nginx(folder: folder + "/http", authority: nil, site: site)
        peers = try VerifiedPeers(
            authority: device.authority.certificatePath, digest: digests["big.bin"] ?? "", log: log)
        try device.install(try BenchBundle(in: folder, manifestURL: secure.baseURL + "/manifest.txt").path)
        receiver = WireReceiver(device: device)
        idleMemory = try Machine.anonymousMemory(of: device.process())
    }

    func finish() {
        device.end(SIGTERM)
        for nginx in [secure, plain] { nginx.stop() }
        try? Folder.remove(folder)
    }

    func figures(until deadline: Deadline) throws -> [Figure] {
        // First, while the service has done nothing else.
        let files = [("memory_growth_64m", "small.bin", Self.smallBytes), ("memory_growth", "big.bin", Self.bytes)]
        var figures = try files.map { name, file, bytes in
            Figure(
                bench: self.name, name: name, value: try memoryGrowth(file, bytes), unit: "MiB",
                target: .atMost(Self.memoryMax))
        }
        try checkThatDigestsAreChecked()
        for (scheme, nginx) in [("https", secure), ("http", plain)] {
            figures += try self.figures(scheme, nginx.baseURL + "/big.bin", deadline)
        }
        return figures
    }

    private func figures(_ scheme: String, _ url: String, _ deadline: Deadline) throws -> [Figure] {
        var costs: [String: [Cost]] = [:]
        func contender(_ name: String, _ measure: @escaping (_ place: String) throws -> Cost) -> Contender {
            Contender(name) {
                let place = try self.place()
                let cost = try measure(place)
                costs[name, default: []].append(cost)
                try Folder.remove(place)
                return cost.wall
            }
        }
        _ = try Contest.run(
            [
                contender("us") { try self.fetch(url, to: $0) },
                contender("aria2c") { try self.cost(self.peers.aria2(url, $0)) },
                contender("curl") { try self.cost(self.peers.curl(url, $0)) },
            ], rounds: Self.rounds, deadline: deadline)
        // The first belongs to the round that does not count.
        func median(_ name: String, _ value: KeyPath<Cost, Double>) -> Double {
            Sample((costs[name] ?? []).dropFirst().map { $0[keyPath: value] }).median
        }
        func figure(_ word: String, _ value: Double, _ unit: String, peer: String? = nil, target: Target? = nil)
            -> Figure
        {
            Figure(bench: name, name: "\(scheme)_\(word)", value: value, unit: unit, peer: peer, target: target)
        }
        let better = min(median("aria2c", \.wall), median("curl", \.wall))
        return [
            figure(
                "cpu_ratio_aria2", median("us", \.cpu) / median("aria2c", \.cpu), "x",
                peer: "aria2c --checksum=sha-256", target: .atMost(Self.aria2CPUMax)),
            figure(
                "cpu_ratio_curl", median("us", \.cpu) / median("curl", \.cpu), "x", peer: "curl | tee | openssl",
                target: .atMost(Self.curlCPUMax)),
            figure(
                "wall_ratio", median("us", \.wall) / better, "x", peer: "the better of both",
                target: .atMost(Self.wallMax)),
            figure("cpu", median("us", \.cpu), "ms"), figure("cpu_aria2", median("aria2c", \.cpu), "ms"),
            figure("cpu_curl", median("curl", \.cpu), "ms"), figure("wall", median("us", \.wall), "ms"),
            figure("wall_aria2", median("aria2c", \.wall), "ms"), figure("wall_curl", median("curl", \.wall), "ms"),
        ]
    }

    /// A new folder, on the device's file system.
    private func place() throws -> String {
        number += 1
        let place = "\(folder)/\(number)"
        try Folder.make(place)
        Folder.settle()
        return place
    }

    private func fetch(_ url: String, to place: String) throws -> Cost {
        let before = try Machine.processorTime(ofGroup: device.process())
        let wall = try receiver.fetch(
            url, bytes: Self.bytes, sha256: digests["big.bin"], to: place + "/file")
        let after = try Machine.processorTime(ofGroup: device.process())
        return Cost(wall: wall.milliseconds, cpu: (after - before).milliseconds)
    }

    private func cost(_ run: (program: String, arguments: [String], log: String)) throws -> Cost {
        let before = Machine.childrenTime
        let wall = try Program.run(run.program, run.arguments, log: run.log, within: Self.limit)
        return Cost(wall: wall.milliseconds, cpu: (Machine.childrenTime - before).milliseconds)
    }

    /// A file that is not what was declared is no finished download.
    private func checkThatDigestsAreChecked() throws {
        let wrong = String(repeating: "0", count: 64)
        let place = try place()
        let time = try? receiver.fetch(
            "\(plain.baseURL)/small.bin", bytes: Self.smallBytes, sha256: wrong, to: place + "/file")
        guard time == nil else { throw BenchError("a file with another digest than declared was handed over") }
    }

    /// How much more memory of its own the service has at its peak than when it is idle; untimed.
    private func memoryGrowth(_ file: String, _ bytes: Int) throws -> Double {
        let place = try place()
        let watch = try MemoryWatch(device.process())
        defer { _ = watch.end() }
        _ = try receiver.fetch(
            "\(secure.baseURL)/\(file)", bytes: bytes, sha256: digests[file], to: place + "/file")
        let growth = Double(watch.end() - idleMemory) / Double(1 << 20)
        try Folder.remove(place)
        return growth
    }
}

/// Tools that check a file, each in the way that is usual.
private struct VerifiedPeers {
    typealias Run = (program: String, arguments: [String], log: String)

    private let authority: String
    private let digest: String
    private let log: String

    init(authority: String, digest: String, log: String) throws {
        self.authority = authority
        self.digest = digest
        self.log = log
    }

    func aria2(_ url: String, _ place: String) throws -> Run {
        let arguments = [
            "--no-conf", "--ca-certificate=\(authority)", "--checksum=sha-256=\(digest)", "-d", place, "-o", "file",
            "--file-allocation=none", "--quiet", "--summary-interval=0", "--download-result=hide",
            "--auto-save-interval=0", url,
        ]
        return (try Program.find("aria2c"), arguments, log)
    }

    /// Fails where the digest is another.
    func curl(_ url: String, _ place: String) throws -> Run {
        let script = """
            set -o pipefail
            curl -q -s -S -f --cacert "$1" "$2" | tee "$3" | openssl dgst -sha256 | grep -q "$4"
            """
        return (try Program.find("bash"), ["-c", script, "bash", authority, url, place + "/file", digest], log)
    }
}

/// Digests by openssl, so that ours are not compared with themselves.
enum Digests {
    /// 64 hexadecimal digits.
    static func sha256(of path: String, _ folder: String) throws -> String {
        let output = folder + "/digest.out"
        _ = try Program.run(
            Program.find("openssl"), ["dgst", "-sha256", "-r", path], log: output, within: .seconds(120))
        guard let line = try Folder.text(output).split(separator: "\n").last, line.count > 64 else {
            throw BenchError("openssl makes no digest of \(path)")
        }
        return String(line.prefix(64))
    }
}
