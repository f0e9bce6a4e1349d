// curl and aria2 with a list of many files.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc

/// Fetches all files of a list into a folder, on connections that are kept. Neither of them syncs anything.
struct ManyPeers {
    private static let atOnce = 16
    private static let limit = Duration.seconds(120)

    private let curlProgram: String
    private let aria2Program: String
    private let baseURL: String
    private let folder: String
    private let log: String

    init(baseURL: String, folder: String, log: String) throws {
        curlProgram = try Program.find("curl")
        aria2Program = try Program.find("aria2c")
        self.baseURL = baseURL
        self.folder = folder
        self.log = log
    }

    /// Milliseconds.
    func curl(_ files: ManyFiles, to target: String) throws -> Double {
        let list = folder + "/curl.list"
        try Folder.write(
            files.names.map { "url = \"\(baseURL)/\($0)\"\noutput = \"\(target)/\($0)\"\n" }.joined(), to: list)
        // Without -f an answer of an error would count as a file.
        let arguments = ["-q", "-s", "-S", "-f", "-Z", "--parallel-max", "\(Self.atOnce)", "-K", list]
        return try run(curlProgram, arguments, files, target)
    }

    /// As `curl`, and then each file is synced: durable with nothing around it. Milliseconds.
    func curlSynced(_ files: ManyFiles, to target: String) throws -> Double {
        try curl(files, to: target) + FileSyncs.run(files.names, in: target)
    }

    /// As people use it. Milliseconds.
    func aria2(_ files: ManyFiles, to target: String) throws -> Double { try aria2(files, to: target, with: []) }

    /// Without what it writes about itself, and without files allocated ahead: its quickest. Milliseconds.
    func aria2Tuned(_ files: ManyFiles, to target: String) throws -> Double {
        try aria2(
            files, to: target,
            with: [
                "--file-allocation=none", "--quiet", "--summary-interval=0", "--download-result=hide",
                "--auto-save-interval=0",
            ])
    }

    private func aria2(_ files: ManyFiles, to target: String, with options: [String]) throws -> Double {
        let list = folder + "/aria2.list"
        try Folder.write(files.names.map { "\(baseURL)/\($0)\n  out=\($0)\n" }.joined(), to: list)
        return try run(
            aria2Program, ["--no-conf", "-j\(Self.atOnce)", "-i", list, "-d", target] + options, files, target)
    }

    private func run(
        _ program: String, _ arguments: [String], _ files: ManyFiles, _ target: String
    ) throws -> Double {
        Folder.settle()
        let time = try Program.run(program, arguments, log: log, within: Self.limit).milliseconds
        for name in files.names where try Folder.size("\(target)/\(name)") != files.bytes {
            throw BenchError("\(name) of \(program) is not whole")
        }
        return time
    }
}
