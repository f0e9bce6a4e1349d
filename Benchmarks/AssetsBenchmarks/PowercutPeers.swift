// Tools that download to a disk whose power fails.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc
internal import PowerCut
internal import RootHelperClient

/// A tool that says of each file when it is finished. None of them syncs.
struct PowercutPeer {
    /// Files that it called finished before the power was cut, and what became of them.
    struct Outcome {
        var finished = 0
        var gone = 0
        var torn = 0
    }

    private static let filesMax = 8
    /// As for ours.
    private static let momentMax = 150_000

    let name: String
    private let program: String
    private let arguments: (_ list: String, _ folder: String) -> [String]
    /// A line of its list of what to fetch.
    private let entry: (_ url: String, _ path: String, _ name: String) -> String

    static func all(authority: String) throws -> [PowercutPeer] {
        [
            PowercutPeer(
                name: "curl", program: try Program.find("curl"),
                arguments: { list, _ in
                    // Standard output would be held back until it is worth writing.
                    ["-q", "-s", "-S", "-f", "-Z", "--cacert", authority, "-w", "%{stderr}%{filename_effective}\\n"]
                        + ["-K", list]
                },
                entry: { url, path, _ in "url = \"\(url)\"\noutput = \"\(path)\"\n" }),
            PowercutPeer(
                name: "wget", program: try Program.find("wget"),
                arguments: { list, folder in
                    ["--no-config", "-nv", "--ca-certificate=\(authority)", "-P", folder, "-i", list]
                }, entry: { url, _, _ in url + "\n" }),
            PowercutPeer(
                name: "aria2c", program: try Program.find("aria2c"),
                arguments: { list, folder in
                    [
                        "--no-conf", "--ca-certificate=\(authority)", "-d", folder, "-i", list,
                        "--file-allocation=none", "--summary-interval=0", "--console-log-level=notice",
                        "--download-result=hide", "--enable-color=false",
                    ]
                }, entry: { url, _, name in "\(url)\n  out=\(name)\n" }),
        ]
    }

    /// Downloads into a new folder of the disk and cuts the power at a random moment.
    func cycle(
        _ number: Int, _ files: ServedFiles, on disk: HelperFileSystem, folder: String, _ chance: inout SeededChance,
        _ outcome: inout Outcome
    ) throws {
        let target = "\(disk.path)/\(name)-\(number)"
        try Folder.make(target)
        let chosen = Set((0..<Int.random(in: 1...Self.filesMax, using: &chance)).map { _ in files.choose(&chance) })
        let paths = Dictionary(uniqueKeysWithValues: chosen.map { ("\(target)/\(files.name(of: $0))", $0) })
        let list = "\(folder)/\(name).list"
        let lines = paths.sorted { $0.key < $1.key }.map { entry(files.url(of: $1), $0, files.name(of: $1)) }
        try Folder.write(lines.joined(), to: list)
        let log = "\(folder)/\(name)-\(number).log"
        let running = try Program(program, arguments(list, target), log: log)
        usleep(useconds_t(Int.random(in: 0...Self.momentMax, using: &chance)))
        try disk.cutPower(seed: chance.oneIn(4) ? nil : chance.next())
        _ = running.end(SIGKILL)
        let said = try Folder.text(log)
        try disk.mountAgain()
        for (path, file) in paths where Self.isFinished(path, in: said) {
            outcome.finished += 1
            switch try files.isRight(path, file) {
            case true?: break
            case false?: outcome.torn += 1
            case nil: outcome.gone += 1
            }
        }
        try Folder.remove(target)
    }

    /// curl: the path; wget: `-> "path" [1]`; aria2: `Download complete: path`.
    private static func isFinished(_ path: String, in said: String) -> Bool {
        said.split(separator: "\n").contains { line in
            line == path || line.contains("-> \"\(path)\"") || line.hasSuffix("Download complete: \(path)")
        }
    }
}
