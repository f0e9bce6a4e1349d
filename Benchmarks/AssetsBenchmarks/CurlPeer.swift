// curl, in the way that is quickest for it.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc

struct CurlPeer {
    enum Invocation: String, CaseIterable, CustomStringConvertible {
        /// One process, one connection, one file after the other.
        case sequential = "-o -o -o"
        /// One process, all files at once.
        case parallel = "-Z -o -o -o"
        /// A process for each file, as people type it.
        case separate = "-o; -o; -o"

        var description: String { rawValue }
    }

    /// Tries of each invocation when the quickest is looked for.
    private static let tries = 5

    private let program: String
    private let urls: [String]
    private let authority: String
    private let target: String
    private let log: String

    init(urls: [String], authority: String, folder: String, log: String) throws {
        program = try Program.find("curl")
        self.urls = urls
        self.authority = authority
        target = folder + "/curl"
        self.log = log
    }

    /// The invocation with the smallest median.
    func fastest() throws -> Invocation {
        let medians = try Invocation.allCases.map { invocation in
            let times = try (0...Self.tries).map { _ in try measure(invocation, syncs: false) }
            return (invocation, Sample(Array(times.dropFirst())).median)
        }
        guard let best = medians.min(by: { $0.1 < $1.1 }) else { preconditionFailure("there is no invocation") }
        return best.0
    }

    /// Fetches everything into an empty folder and returns the milliseconds; `syncs` also waits for the disk.
    func measure(_ invocation: Invocation, syncs: Bool) throws -> Double {
        try Folder.remove(target)
        try Folder.make(target)
        Folder.settle()
        let start = MonotonicClock.now
        for arguments in commands(invocation) { _ = try Program.run(program, arguments, log: log) }
        if syncs { _ = try Program.run(Program.find("sync"), files, log: log) }
        let time = (MonotonicClock.now - start).milliseconds
        try Folder.remove(target)
        return time
    }

    private var files: [String] { urls.indices.map { "\(target)/\($0)" } }

    private func commands(_ invocation: Invocation) -> [[String]] {
        // Without -f an answer of an error would count as a file.
        let common = ["-q", "-s", "-S", "-f", "--cacert", authority]
        let transfers = zip(urls, files).map { ["-o", $1, $0] }
        return switch invocation {
        case .sequential: [common + transfers.flatMap { $0 }]
        case .parallel: [common + ["-Z"] + transfers.flatMap { $0 }]
        case .separate: transfers.map { common + $0 }
        }
    }
}
