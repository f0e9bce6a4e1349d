// Runs probes, each in a process and a scene of its own, and keeps what came of them.
import AssetsOS
import Foundation

/// All probes there are, and runs of them.
final class EscapeSuite: Sendable {
    /// A folder with libraries of probes beside those of this package; docs/sandbox-probes.md tells how to write one.
    static let folderVariable = "BACKGROUNDASSETS_ESCAPE_PROBES"
    /// As many as there are processors on a small machine: a probe takes little but processor time.
    private static let workers = 2

    /// One run of one probe.
    struct Trial: Hashable, Sendable {
        var probe: EscapeProbe
        var layers: EscapeLayers
        var moment: EscapeMoment
        /// An older version of Landlock that is imitated; nil for the kernel's.
        var landlockVersion: Int32?
        /// The call filter refuses calls as if the kernel did not have them, by which it is told from the kernel.
        var isFilterMarked = false
    }

    let libraries: [String]
    let probes: [EscapeProbe]
    /// What this machine has of the sandbox.
    let available: EscapeLayers
    /// 0 where the kernel has none.
    let landlockVersion: Int32

    /// Asks the fixture extension for its probes.
    ///
    /// - Parameter libraries: Paths of more libraries of probes.
    static func load(libraries: [String] = EscapeSuite.namedLibraries) async throws -> EscapeSuite {
        try await blocking { try EscapeSuite(libraries: libraries) }
    }

    private init(libraries: [String]) throws {
        self.libraries = libraries
        let stage = try EscapeStage(libraries: libraries)
        let list = try stage.answer(to: "?")
        available = stage.layers
        let version = stage.landlockVersion
        landlockVersion = version
        probes = list.compactMap { EscapeProbe(line: $0, landlockVersion: version) }
        guard !probes.isEmpty, list.count == probes.count else { throw HarnessError("no list of probes: \(list)") }
        let names = Set(probes.map(\.name))
        guard names.count == probes.count else { throw HarnessError("two probes have one name") }
    }

    /// What the environment names; a run without that knows only the probes of this package.
    static var namedLibraries: [String] {
        guard let folder = ProcessEnvironment.value(folderVariable, in: ProcessEnvironment.current) else { return [] }
        return Files.names(in: folder).filter { $0.hasSuffix(".so") }.map { folder + "/" + $0 }
    }

    /// The list of this package's own probes as docs/sandbox-probes.md has it.
    static func table() async throws -> [String] {
        try await blocking { try EscapeStage(libraries: []).answer(to: "?table") }
    }

    /// Runs trials on threads of their own.
    func verdicts(of trials: Set<Trial>) async throws -> [Trial: EscapeVerdict] {
        let together = trials.filter { !$0.probe.isAlone }
        let alone = trials.subtracting(together)
        return try await verdicts(of: together, workers: Self.workers)
            .merging(verdicts(of: alone, workers: 1)) { $1 }
    }

    private func verdicts(of trials: Set<Trial>, workers: Int) async throws -> [Trial: EscapeVerdict] {
        let left = Guarded(Array(trials))
        let done = Guarded<[Trial: EscapeVerdict]>([:])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<workers where !trials.isEmpty {
                group.addTask {
                    try await blocking { [self] in
                        let stage = try EscapeStage(libraries: libraries)
                        while let trial = left.withLock({ $0.popLast() }) {
                            let verdict = Result { try stage.verdict(of: trial) }.broken()
                            done.withLock { $0[trial] = verdict }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        return done.withLock { $0 }
    }
}

extension Result<EscapeVerdict, any Error> {
    /// A run that went wrong is a verdict of its own.
    fileprivate func broken() -> EscapeVerdict {
        switch self {
        case .success(let verdict): verdict
        case .failure(let error): .broken("\(error)")
        }
    }
}
