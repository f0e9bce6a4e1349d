// Servers whose files have other bytes from one moment to the next.
internal import AssetsOS
internal import BenchmarkKit
internal import DevelopmentServer
internal import FoundationEssentials
internal import Glibc

/// How a server names versions, and what it makes of requests for parts.
struct SpliceSituation {
    enum Server {
        case nginx(String)
        /// `backgroundassets serve` with these faults.
        case serve([String])
    }

    /// The folder of its files, and its name.
    var name: String
    var server: Server

    static let all = [
        SpliceSituation(name: "etag", server: .nginx("")),
        SpliceSituation(name: "date", server: .nginx("etag off;")),
        SpliceSituation(name: "none", server: .nginx("etag off; add_header Last-Modified \"\";")),
        SpliceSituation(name: "whole", server: .nginx("max_ranges 0;")),
        SpliceSituation(name: "serve", server: .serve([])),
        SpliceSituation(name: "weak", server: .serve(["weak-etag"])),
        SpliceSituation(name: "nothing", server: .serve(["no-validator"])),
        SpliceSituation(name: "if-range", server: .serve(["if-range-etag"])),
        SpliceSituation(name: "416", server: .serve(["unsatisfiable"])),
        SpliceSituation(name: "shift", server: .serve(["range-shift"])),
        SpliceSituation(name: "unsaid", server: .serve(["no-content-range"])),
        SpliceSituation(name: "other", server: .serve(["other-etag"])),
        // One tag for everything: only what the server says of the bytes tells.
        SpliceSituation(name: "lying", server: .serve(["same-etag", "digest"])),
    ]
}

/// nginx and `backgroundassets serve` over one folder, with a throttle.
final class SpliceServers {
    private static let startLimit = Duration.seconds(10)
    private static let modes: mode_t = 0o644

    let nginx: Nginx
    private let serve: Program
    private let serveURL: String
    private let versions: String

    /// `size` bytes a file, `rate` bytes a second.
    init(folder: String, device: PrivateDevice, size: Int, rate: Int) throws {
        let locations = SpliceSituation.all.compactMap { situation -> String? in
            guard case .nginx(let words) = situation.server else { return nil }
            return "location /\(situation.name)/ { \(words) }"
        }
        nginx = try Nginx(
            folder: folder, authority: device.authority, rate: rate, directives: locations.joined(separator: " "))
        versions = folder + "/versions"
        try Folder.make(versions)
        try Folder.writeRandom(size, to: versions + "/0")
        try Self.invert(versions + "/0", to: versions + "/1")
        for situation in SpliceSituation.all { try Folder.make("\(nginx.site)/\(situation.name)") }
        let rules = SpliceSituation.all.flatMap { situation -> [String] in
            guard case .serve(let faults) = situation.server else { return [] }
            return (faults + ["rate@\(rate)"]).flatMap { ["--fault", "\(situation.name)/*:\($0)"] }
        }
        let log = folder + "/serve.log"
        serve = try Program(
            Program.ours("backgroundassets"), ["--device", device.root, "--json", "serve", nginx.site] + rules, log: log
        )
        serveURL = try Self.address(in: log, of: serve)
    }

    func stop() {
        _ = serve.end(SIGTERM)
        nginx.stop()
    }

    private static func address(in log: String, of program: Program) throws -> String {
        struct Address: Decodable { var url: String }
        let deadline = Deadline(in: startLimit)
        while program.isRunning, !deadline.hasPassed {
            if let line = try Folder.text(log).split(separator: "\n").first,
                let address = try? JSONDecoder().decode(Address.self, from: Data(line.utf8))
            {
                return address.url
            }
            usleep(2_000)
        }
        throw BenchError("backgroundassets serve does not start: \(program.lastWords)")
    }

    /// Every byte of the other version is another one.
    private static func invert(_ path: String, to other: String) throws {
        try Folder.writeBytes(try Folder.bytes(path).map { ~$0 }, to: other)
    }

    func url(of name: String, _ situation: SpliceSituation) -> String {
        switch situation.server {
        case .nginx: "\(nginx.baseURL)/\(situation.name)/\(name)"
        case .serve: "\(serveURL)/\(situation.name)/\(name)"
        }
    }

    /// Publishes a version of a file, in place of the one that is there, so that everybody sees one or the other.
    func publish(_ version: Int, as name: String, _ situation: SpliceSituation, age: Int = 0) throws {
        let path = "\(nginx.site)/\(situation.name)/\(name)"
        try Folder.copy("\(versions)/\(version)", to: path + ".new")
        chmod(path + ".new", Self.modes)
        let time = timespec(tv_sec: Glibc.time(nil) - age, tv_nsec: 0)
        if age > 0 { try check("utimensat") { utimensat(AT_FDCWD, path + ".new", [time, time], 0) } }
        try check("rename") { rename(path + ".new", path) }
    }

    func withdraw(_ name: String, _ situation: SpliceSituation) { unlink("\(nginx.site)/\(situation.name)/\(name)") }

    /// Whether a file is one of the versions, from its first to its last byte.
    func isOneVersion(_ path: String) throws -> Bool {
        try Folder.isEqual(path, versions + "/0") || Folder.isEqual(path, versions + "/1")
    }
}
