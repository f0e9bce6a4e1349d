// The app bundles of a simulation: a description by source, and a few files.
package import AssetsModel
internal import AssetsOS
internal import AssetsService

/// Makes builds of apps that exist only as descriptions.
package final class ScriptedStaging: BundleStaging {
    private let files: MemoryTree
    private let apps = Guarded<[String: AppDescription]>([:])

    package init(files: MemoryTree) { self.files = files }

    /// What a source unpacks to. An archive that was fetched has a path of its own: all such are `archive`.
    package func set(_ source: String, _ description: AppDescription) { apps.withLock { $0[source] = description } }

    /// The name of every source that is not known itself.
    package static let archive = "archive"

    package func stage(
        source: String, into folder: String, allowsLoopbackHTTP: Bool, isCancelled: @escaping @Sendable () -> Bool
    ) throws(AssetsError) -> AppDescription {
        guard let app = apps.withLock({ $0[source] ?? $0[Self.archive] }) else {
            throw AssetsError(.bundleInvalid, "\(source): no app bundle")
        }
        let bundle = "\(folder)/\(app.bundleFolder)"
        let executables = ["\(bundle)/\(app.executable)", "\(bundle)/\(app.extensionExecutable)"]
        do throws(SystemCallError) {
            for path in ["\(bundle)/Info.plist"] + executables {
                try files.makeDurableDirectory(path.parentFolder)
                try files.replace(path, with: Array(path.utf8), mode: 0o700)
                if isCancelled() { throw SystemCallError(call: "staging", number: 125) }
            }
            return app
        } catch {
            throw AssetsError(.bundleInvalid, "\(source): \(error)")
        }
    }
}

extension AppDescription {
    /// An app of a simulation: one group, one allowed domain.
    package static func simulated(
        _ identifier: String, manifestURL: String, essentialAllowance: Int64? = 1 << 30, allowance: Int64 = 1 << 30,
        domains: [String] = ["*.example.com"]
    ) -> AppDescription {
        AppDescription(
            bundleIdentifier: identifier, name: identifier, version: "1.0", build: "1", bundleFolder: "Simulated.app",
            executable: "Simulated", manifestURL: manifestURL,
            restrictions: DownloadRestrictions(
                downloadAllowance: allowance, essentialDownloadAllowance: essentialAllowance, allowedDomains: domains),
            maxInstallSize: 1 << 30, essentialMaxInstallSize: essentialAllowance,
            extensionIdentifier: "\(identifier).Downloader",
            extensionExecutable: "Extensions/Downloader.appex/Downloader",
            groups: ["group.\(identifier)"], sharedGroups: ["group.\(identifier)"])
    }
}
