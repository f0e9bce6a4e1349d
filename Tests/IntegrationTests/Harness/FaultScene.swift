// One device and one `serve` process whose files each have a fault, and what became of their downloads.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

/// A file with the faults of its answers, as they stand behind the colon on the command line.
struct FaultyFile: Hashable, Sendable {
    var name: String
    var faults: [String]
    var place = FaultRow.Place.shared

    var rules: [String] { faults.map { "\(place == .alone ? "*" : name):\($0)" } }
}

/// What became of a download.
struct FaultResult: Hashable, Sendable {
    struct Row: Hashable, Sendable {
        /// Where the event says all, the event.
        var reason: String
        var sentence: String
    }

    /// Rows of the journal that tell of something wrong, or why the server was asked again.
    var rows: [Row]
    /// The number that the app was told; nil where it got a file.
    var failure: Int?
    /// The file is one version of the server's file, whole; nil without a file.
    var isRight: Bool?
    var requests: Int
    /// Bytes of the file that were sent.
    var sent: Int64
}

/// What was asked of a file.
struct ServedFile: Sendable {
    var requests = 0
    /// Bytes of it that were sent.
    var sent: Int64 = 0
}

/// `backgroundassets serve` in processes of their own: one for most files, one for each that has to be alone.
struct FaultServers {
    /// A line that it prints for a request.
    private struct Line: Decodable {
        var path: String
        var bytes_sent: Int64
    }

    private struct Address: Decodable { var url: String }

    private var programs: [Program] = []
    private var urls: [String: String] = [:]

    static func start(_ files: [FaultyFile], on device: TestDevice) async throws -> FaultServers {
        let folder = device.folder + "/faulty"
        for file in files { try Files.write(folder + "/" + file.name, FaultScene.content(file.name)) }
        var servers = FaultServers()
        let groups = [files.filter { $0.place != .alone }] + files.filter { $0.place == .alone }.map { [$0] }
        for group in groups {
            let rules = group.flatMap(\.rules).flatMap { ["--fault", $0] }
            let program = try device.tool(["serve", folder] + rules)
            servers.programs.append(program)
            let line = try await program.output.first("address of the server") { _ in true }
            let url = try JSONDecoder().decode(Address.self, from: Data(line.utf8)).url
            for file in group { servers.urls[file.name] = "\(url)/\(file.name)" }
        }
        return servers
    }

    func item(_ file: FaultyFile) throws -> FixtureItem {
        FixtureItem(
            file.name, url: try #require(urls[file.name]), size: FaultScene.size,
            essential: file.place == .essential)
    }

    /// Ends them; what was asked of each file.
    func finish() async throws -> [String: ServedFile] {
        var files: [String: ServedFile] = [:]
        for program in programs {
            try program.send(signal: SIGINT)
            let result = try await program.result()
            #expect(result.exit == .exited(0), "\(result.errors)")
            for text in result.output.dropFirst() {
                let line = try JSONDecoder().decode(Line.self, from: Data(text.utf8))
                files[String(line.path.dropFirst()), default: ServedFile()].requests += 1
                files[String(line.path.dropFirst()), default: ServedFile()].sent += line.bytes_sent
            }
        }
        return files
    }
}

/// Downloads of an app, all at once.
enum FaultScene {
    static let size = 400_000

    static func content(_ name: String) -> Data {
        randomBytes(size, seed: name.utf8.reduce(7) { $0 &* 31 &+ UInt64($1) })
    }

    /// Downloads all files; returns what became of each, by its name, and expects that nothing else is left.
    static func run(_ files: [FaultyFile]) async throws -> [String: FaultResult] {
        let results = Guarded<[String: FaultResult]>([:])
        try await TestDevice.run { device in
            let servers = try await FaultServers.start(files, on: device)
            let plain = try await device.server()
            // What is essential comes with the installation, the other files after the first launch.
            let essential = files.filter { $0.place == .essential }
            let items = try essential.map { try servers.item($0) }
            try await device.install(FixturePlan(downloads: items), from: plain, messages: essential.count)
            let app = try device.launch()
            try await app.perform("delegate full")
            let others = files.filter { $0.place != .essential }
            for file in others {
                _ = try await app.perform(file.place == .alone ? "schedule" : "foreground", try servers.item(file))
            }
            for name in others.map(\.name) {
                _ = try await app.program.output.first(within: .seconds(90), "the end of \(name)") { line in
                    guard let record = try? FixtureRecord(line: line) else { return false }
                    return ["finished", "failed"].contains(record.event) && record.download?.identifier == name
                }
            }
            try await device.until("all is told") { try await device.downloads().isEmpty }
            let served = try await servers.finish()
            let found = try await collect(files, device, app, served)
            results.withLock { $0 = found }
            #expect(Files.names(in: device.root + "/Transfers") == [])
            #expect(Files.below(device.container() + "/Library/Caches/.BackgroundAssets") == [])
            try await app.end()
            await plain.stop()
        }
        return results.withLock { $0 }
    }

    private static func collect(
        _ files: [FaultyFile], _ device: TestDevice, _ app: FixtureAppProcess, _ served: [String: ServedFile]
    ) async throws -> [String: FaultResult] {
        // By the tool: the words are those that a user reads.
        let journal = try await device.cli("journal").values(JournalEntry.self)
        let records = try app.records + device.extensionRecords()
        var results: [String: FaultResult] = [:]
        for file in files {
            let name = file.name
            let told = records.filter { $0.download?.identifier == name }
            let id = told.first?.download?.uniqueIdentifier ?? ""
            let rows = journal.filter { $0.download == id && isComplaint($0) }
            let asset = device.asset(name)
            results[name] = FaultResult(
                rows: rows.map { .init(reason: $0.reason.isEmpty ? $0.event : $0.reason, sentence: $0.detail) },
                failure: told.first { $0.event == "failed" }?.code,
                isRight: asset.map { isVersion($0, of: content(name)) },
                requests: served[name]?.requests ?? 0, sent: served[name]?.sent ?? 0)
        }
        return results
    }

    private static func isComplaint(_ row: JournalEntry) -> Bool {
        ["download-waits", "download-failed", "download-started-over", "download-paused", "warning"].contains(row.event)
    }

    /// Whether a file is one version of the server's file: each byte is combined with the same mask.
    private static func isVersion(_ file: Data, of content: Data) -> Bool {
        guard file.count == content.count, let first = file.first, let mask = content.first.map({ $0 ^ first }) else {
            return false
        }
        return zip(file, content).allSatisfy { $0 == $1 ^ mask }
    }
}
