// What the sandbox is made of on a machine, and what is weaker without the rest: for the journal and for doctor.

/// One layer, as people are told of it.
package struct SandboxReport: Hashable, Sendable {
    package var layer: SandboxLayer
    package var isActive: Bool
    /// What it is made of; why it is missing.
    package var detail: String
    /// What an extension can do because of what is missing, a sentence each.
    package var weaknesses: [String]

    /// All layers.
    ///
    /// - Parameters:
    ///   - landlockVersion: Of the kernel's interface; 0 where it has none.
    ///   - obstacles: Why a layer is missing.
    package static func all(
        active: Set<SandboxLayer>, obstacles: [SandboxLayer: String], landlockVersion: Int32
    ) -> [SandboxReport] {
        SandboxLayer.allCases.map { layer in
            let isActive = active.contains(layer)
            return SandboxReport(
                layer: layer, isActive: isActive,
                detail: isActive ? layer.parts(landlockVersion) : obstacles[layer] ?? "it needs the call filter",
                weaknesses: isActive
                    ? (layer == .landlock ? LandlockAbilities(version: landlockVersion).weaknesses : [])
                    : layer.weaknessesWhenMissing)
        }
    }

    /// One line of the journal.
    package static func summary(_ reports: [SandboxReport]) -> String {
        reports.map { report in
            report.isActive ? "\(report.layer.name) (\(report.detail))" : "no \(report.layer.name): \(report.detail)"
        }.joined(separator: "; ")
    }
}

extension SandboxLayer {
    fileprivate func parts(_ landlockVersion: Int32) -> String {
        switch self {
        case .landlock:
            landlockVersion > LandlockAbilities.latestKnown
                ? "version \(landlockVersion), of which \(LandlockAbilities.latestKnown) is used"
                : "version \(landlockVersion)"
        case .seccomp: "\(SystemCallRule.allowed.count) calls"
        case .namespaces: "empty root, own network, processes and shared memory"
        case .secondStage: "no programs"
        }
    }

    fileprivate var weaknessesWhenMissing: [String] {
        switch self {
        case .landlock:
            ["an extension keeps to its files by the empty root alone", "moves between folders copy"]
        case .seccomp:
            [
                "all system calls can be made: faults of the kernel can be reached",
                "mode and times of its own program's files can be changed where the root is not its own",
            ]
        case .namespaces:
            [
                "names, sizes and times of files outside can be seen, though not what is in them",
                "mode, times and attributes of files that can only be read, such as the app's own bundle, can be changed",
                "another process of the user can be told that it lives, by its number",
            ]
        case .secondStage: ["an extension can start its own program again, in the same box"]
        }
    }
}
