// An installed app and an installation as the store keeps them.

/// Where an app came from.
package enum InstallSource: String, Hashable, Sendable, Codable {
    /// As from a store: the launch gate stays shut until the essential assets are there.
    case store
    /// Launchable at once.
    case sideload
}

/// One app on the device.
package struct AppRecord: Hashable, Sendable {
    @Shared package var description: AppDescription
    /// Folder of the build below `Applications/<bundle id>/`.
    package var buildFolder: String
    package var source: InstallSource
    package var gate: Gate
    /// Calendar clock.
    package var installedAt: Duration
    package var launchedAt: Duration?
    package var ledger: AllowanceLedger

    /// Whether the app can be opened.
    package enum Gate: String, Hashable, Sendable, Codable { case shut, open }

    package init(
        description: AppDescription, buildFolder: String, source: InstallSource, gate: Gate, installedAt: Duration,
        launchedAt: Duration? = nil, ledger: AllowanceLedger = AllowanceLedger()
    ) {
        self.description = description
        self.buildFolder = buildFolder
        self.source = source
        self.gate = gate
        self.installedAt = installedAt
        self.launchedAt = launchedAt
        self.ledger = ledger
    }

    package var id: String { description.bundleIdentifier }
    /// The installed bundle, below the device directory.
    package var bundlePath: String { "Applications/\(id)/\(buildFolder)/\(description.bundleFolder)" }
}

/// Bytes admitted before the first launch.
package struct AllowanceLedger: Hashable, Sendable, Codable {
    package var essential: Int64
    package var nonEssential: Int64
    package init(essential: Int64 = 0, nonEssential: Int64 = 0) {
        self.essential = essential
        self.nonEssential = nonEssential
    }
}

/// One installation, from the user's command until its last step was told.
package struct InstallationRecord: Hashable, Sendable {
    /// A UUID.
    package var id: String
    /// Absolute path or https URL.
    package var source: String
    package var kind: InstallSource
    package var phase: InstallPhase
    /// Bundle id; empty until the bundle was read.
    package var app: String
    /// Folder of the new build below `Applications/<bundle id>/`, and of the staging folder until then.
    package var buildFolder: String
    /// Calendar clock.
    package var startedAt: Duration
    package var error: AssetsError?

    package init(
        id: String, source: String, kind: InstallSource, phase: InstallPhase, app: String = "", buildFolder: String,
        startedAt: Duration, error: AssetsError? = nil
    ) {
        self.id = id
        self.source = source
        self.kind = kind
        self.phase = phase
        self.app = app
        self.buildFolder = buildFolder
        self.startedAt = startedAt
        self.error = error
    }
}

/// The steps of an installation, in order.
package enum InstallPhase: String, Hashable, Sendable, Codable, CaseIterable {
    case archive
    case unpacking
    case manifest
    case asking
    case essential
    case launchable
    case failed
    case cancelled

    /// Nothing comes after it.
    package var isFinal: Bool { self == .launchable || self == .failed || self == .cancelled }
}
