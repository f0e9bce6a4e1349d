// The rule of the launch gate.

/// Whether an app may be opened, and why not.
package enum LaunchGate {
    package static func decide(app: AppRecord?, identifier: String, installing phase: InstallPhase?) -> Result<
        AppRecord, AssetsError
    > {
        guard let app else {
            if phase != nil {
                return .failure(AssetsError(.gateShut, "\(identifier) is still being installed", remedy: waitRemedy))
            }
            return .failure(
                AssetsError(
                    .notInstalled, "no app \(identifier) is installed on this device",
                    remedy: "list the apps with: backgroundassets apps"))
        }
        switch app.gate {
        case .open: return .success(app)
        case .shut:
            let what =
                switch phase {
                case .manifest: "its manifest is being fetched"
                case .asking: "its extension is deciding what to fetch"
                default: "its essential assets are still arriving"
                }
            return .failure(
                AssetsError(.gateShut, "\(app.description.name) cannot be opened yet: \(what)", remedy: waitRemedy))
        }
    }

    private static let waitRemedy = "it opens by itself when they are there; follow it with: backgroundassets downloads"
}
