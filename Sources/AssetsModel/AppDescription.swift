// What the service needs to know of an installed app, read from its bundle once and kept in the store.

/// BAInitialDownloadRestrictions and its neighbours.
package struct DownloadRestrictions: Hashable, Sendable, Codable {
    /// BADownloadAllowance: bytes of all non-essential downloads before the first launch.
    package var downloadAllowance: Int64
    /// BAEssentialDownloadAllowance: bytes of all essential downloads; nil where the key is missing.
    package var essentialDownloadAllowance: Int64?
    /// BADownloadDomainAllowList: host names, `*.` as prefix wildcard.
    package var allowedDomains: [String]

    package init(downloadAllowance: Int64, essentialDownloadAllowance: Int64?, allowedDomains: [String]) {
        self.downloadAllowance = downloadAllowance
        self.essentialDownloadAllowance = essentialDownloadAllowance
        self.allowedDomains = allowedDomains
    }
}

/// An app bundle that passed validation.
package struct AppDescription: Hashable, Sendable, Codable {
    /// CFBundleIdentifier.
    package var bundleIdentifier: String
    /// CFBundleDisplayName, else CFBundleName, else the identifier.
    package var name: String
    /// CFBundleShortVersionString.
    package var version: String
    /// CFBundleVersion.
    package var build: String
    /// Name of the `.app` folder.
    package var bundleFolder: String
    /// CFBundleExecutable: path below the bundle folder.
    package var executable: String
    /// BAManifestURL.
    package var manifestURL: String
    package var restrictions: DownloadRestrictions
    /// BAMaxInstallSize and BAEssentialMaxInstallSize, in bytes.
    package var maxInstallSize: Int64
    package var essentialMaxInstallSize: Int64?
    /// CFBundleIdentifier of the extension.
    package var extensionIdentifier: String
    /// Path of the extension's executable below the bundle folder.
    package var extensionExecutable: String
    /// Groups that the app declares.
    package var groups: [String]
    /// Groups that both app and extension declare, the app's order.
    package var sharedGroups: [String]
    /// NSPinnedDomains of NSAppTransportSecurity; nil where nothing is pinned.
    package var pinnedDomains: [PinnedDomain]?

    package init(
        bundleIdentifier: String, name: String, version: String, build: String, bundleFolder: String,
        executable: String, manifestURL: String, restrictions: DownloadRestrictions, maxInstallSize: Int64,
        essentialMaxInstallSize: Int64?, extensionIdentifier: String, extensionExecutable: String, groups: [String],
        sharedGroups: [String], pinnedDomains: [PinnedDomain]? = nil
    ) {
        self.bundleIdentifier = bundleIdentifier
        self.name = name
        self.version = version
        self.build = build
        self.bundleFolder = bundleFolder
        self.executable = executable
        self.manifestURL = manifestURL
        self.restrictions = restrictions
        self.maxInstallSize = maxInstallSize
        self.essentialMaxInstallSize = essentialMaxInstallSize
        self.extensionIdentifier = extensionIdentifier
        self.extensionExecutable = extensionExecutable
        self.groups = groups
        self.sharedGroups = sharedGroups
        self.pinnedDomains = pinnedDomains
    }
}
