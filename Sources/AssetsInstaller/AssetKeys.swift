// The keys of Background Assets in an app's Info.plist.
internal import AssetsModel

/// The app's keys, each where it belongs and of the right type.
struct AssetKeys {
    static let restrictionsKey = "BAInitialDownloadRestrictions"
    private static let manifestKey = "BAManifestURL"
    private static let maxKey = "BAMaxInstallSize"
    private static let essentialMaxKey = "BAEssentialMaxInstallSize"
    private static let allowanceKey = "BADownloadAllowance"
    private static let essentialAllowanceKey = "BAEssentialDownloadAllowance"
    private static let domainsKey = "BADownloadDomainAllowList"

    private static let rootKeys = [manifestKey, restrictionsKey, maxKey, essentialMaxKey]
    private static let innerKeys = [allowanceKey, essentialAllowanceKey, domainsKey]
    /// Bytes of an address; servers take hardly more.
    private static let addressMax = 8192
    /// Hosts that one app may name.
    private static let domainsMax = 1000

    let manifestURL: String
    let restrictions: DownloadRestrictions
    let maxInstallSize: Int64
    let essentialMaxInstallSize: Int64?

    init(app: PropertyList, extension other: PropertyList, allowsLoopbackHTTP: Bool) throws(AssetsError) {
        let inner = try app.dictionary(Self.restrictionsKey)
        try Self.refuseMisplaced(app: app, inner: inner, extension: other)
        manifestURL = try Self.manifest(app, allowsLoopbackHTTP: allowsLoopbackHTTP)
        guard let inner else { throw app.error(Self.restrictionsKey, "is missing", remedy: "Add it as a dictionary") }
        guard let allowance = try inner.bytes(Self.allowanceKey) else {
            throw inner.error(Self.allowanceKey, "is missing", remedy: "Add it as a number of bytes")
        }
        let essentialAllowance = try inner.bytes(Self.essentialAllowanceKey)
        restrictions = DownloadRestrictions(
            downloadAllowance: allowance, essentialDownloadAllowance: essentialAllowance,
            allowedDomains: try Self.domains(inner))
        guard let max = try app.bytes(Self.maxKey) else {
            throw app.error(Self.maxKey, "is missing", remedy: "Add it as a number of bytes")
        }
        maxInstallSize = max
        essentialMaxInstallSize = try app.bytes(Self.essentialMaxKey)
        guard essentialAllowance == nil || essentialMaxInstallSize != nil else {
            throw app.error(
                Self.essentialMaxKey, "is missing though \(Self.essentialAllowanceKey) is there",
                remedy: "Add it as a number of bytes")
        }
    }

    private static func refuseMisplaced(
        app: PropertyList, inner: PropertyList?, extension other: PropertyList
    ) throws(AssetsError) {
        for key in innerKeys where app.has(key) {
            throw app.error(
                key, "stands at the root but belongs in \(restrictionsKey)", remedy: "Move it into that dictionary")
        }
        for key in rootKeys where inner?.has(key) == true {
            throw app.error(
                key, "stands in \(restrictionsKey) but belongs at the root", remedy: "Move it out of that dictionary")
        }
        for key in rootKeys where other.has(key) && !app.has(key) {
            throw other.error(
                key, "stands in the extension's property list but belongs in the app's",
                remedy: "Move it to \(app.shown)")
        }
        for key in innerKeys where other.has(key) {
            throw other.error(
                key, "stands in the extension's property list but belongs in the app's, in \(restrictionsKey)",
                remedy: "Move it to \(app.shown)")
        }
    }

    private static func manifest(_ app: PropertyList, allowsLoopbackHTTP: Bool) throws(AssetsError) -> String {
        let text = try app.requiredString(manifestKey)
        // Credentials in an address would be shown wherever the address is.
        let hasCredentials = text.prefix { !"?#".contains($0) }.split(separator: "/").dropFirst().first?.contains("@")
        guard text.utf8.count <= addressMax, hasCredentials != true, let address = try? WebAddress(text) else {
            throw app.error(
                manifestKey, "is \"\(printable(text.utf8))\", which is no address of the web",
                remedy: "Give an https address without user and password")
        }
        guard address.scheme == .https || (allowsLoopbackHTTP && RequestOrigin.isLoopback(address.host)) else {
            throw app.error(
                manifestKey, "is \(printable(text.utf8)), which is not https",
                remedy: "Use https; plain http is for hosts of this machine in Developer Mode")
        }
        return text
    }

    private static func domains(_ inner: PropertyList) throws(AssetsError) -> [String] {
        guard let domains = try inner.strings(domainsKey, limit: domainsMax) else {
            throw inner.error(domainsKey, "is missing", remedy: "Add it as an array of host names")
        }
        for domain in domains where !DomainAllowList.isValid(pattern: domain) {
            throw inner.error(
                domainsKey, "names \"\(printable(domain.utf8))\", which is no host name",
                remedy: "Use host names like cdn.example.com or *.example.com, without scheme, port and path")
        }
        return domains
    }
}

extension PropertyList {
    /// Packs that the system manages need a store that hosts them, which is not there.
    func refuseManagedPacks() throws(AssetsError) {
        for key in ["BAHasManagedAssetPacks", "BAUsesAppleHosting"] where try bool(key) == true {
            throw error(
                key, "asks for asset packs that the system manages, which only the App Store has",
                remedy: "Remove it and describe the downloads with \(AssetKeys.restrictionsKey)")
        }
    }
}
