// Whether a folder is an app that Background Assets can serve, and what is to be known of it.
package import AssetsModel
package import AssetsOS
internal import Glibc

/// Reads the property lists of an app bundle and its extension and checks what they promise.
package struct BundleValidator: Sendable {
    /// Whether BAManifestURL may be plain http on this machine: in Developer Mode.
    package var allowsLoopbackHTTP: Bool

    package init(allowsLoopbackHTTP: Bool) { self.allowsLoopbackHTTP = allowsLoopbackHTTP }

    /// Checks the open bundle folder, whose name is `folder`. Blocks.
    package func validate(_ bundle: borrowing Descriptor, folder: String) throws(AssetsError) -> AppDescription {
        let app = try Bundle(bundle, path: "", shown: folder)
        let (extensionFolder, extensionBundle) = try findExtension(bundle, folder: folder)
        try app.info.refuseManagedPacks()
        let identifier = try app.identifier()
        let extensionIdentifier = try extensionBundle.identifier()
        guard extensionIdentifier.hasPrefix(identifier + "."),
            extensionIdentifier.utf8.count > identifier.utf8.count + 1
        else {
            throw extensionBundle.info.error(
                "CFBundleIdentifier",
                "is \(extensionIdentifier), which is not the app's \(identifier) with a dot and more",
                remedy: "Begin the extension's identifier with \"\(identifier).\"")
        }
        let keys = try AssetKeys(
            app: app.info, extension: extensionBundle.info, allowsLoopbackHTTP: allowsLoopbackHTTP)
        let groups = try app.groups()
        let extensionGroups = try extensionBundle.groups()
        let shared = groups.filter { extensionGroups.contains($0) }
        guard !shared.isEmpty else {
            throw app.entitlements.error(
                Bundle.groupsKey, "names no group that \(extensionFolder) names too",
                remedy: "Give app and extension the same app group")
        }
        let (version, build) = try app.versions()
        return AppDescription(
            bundleIdentifier: identifier, name: try app.displayName() ?? identifier, version: version, build: build,
            bundleFolder: folder, executable: try app.executable(in: bundle), manifestURL: keys.manifestURL,
            restrictions: keys.restrictions, maxInstallSize: keys.maxInstallSize,
            essentialMaxInstallSize: keys.essentialMaxInstallSize, extensionIdentifier: extensionIdentifier,
            extensionExecutable: try extensionBundle.executable(in: bundle), groups: groups, sharedGroups: shared,
            pinnedDomains: try PinningKeys.domains(of: app.info))
    }

    /// Finds the one extension for downloads; extensions of other kinds may stand beside it.
    private func findExtension(
        _ bundle: borrowing Descriptor, folder: String
    ) throws(AssetsError) -> (folder: String, bundle: Bundle) {
        /// More extensions than any app has.
        let extensionsMax = 100
        var found: [(folder: String, bundle: Bundle)] = []
        for name in try extensionFolders(bundle, folder: folder, limit: extensionsMax) {
            let path = "Extensions/\(name)/"
            let candidate = try Bundle(bundle, path: path, shown: "\(folder)/Extensions/\(name)")
            guard let attributes = try candidate.info.dictionary("EXAppExtensionAttributes"),
                try attributes.string("EXExtensionPointIdentifier") == Bundle.extensionPoint
            else { continue }
            found.append((candidate.shown, candidate))
        }
        guard let first = found.first else {
            throw AssetsError(
                .bundleInvalid, "\(folder)/Extensions holds no extension for downloads",
                remedy: "Add one whose Info.plist has EXAppExtensionAttributes with EXExtensionPointIdentifier "
                    + Bundle.extensionPoint)
        }
        guard found.count == 1 else {
            throw AssetsError(
                .bundleInvalid, "\(folder)/Extensions holds \(found.count) extensions for downloads, not one",
                remedy: "Leave one of them")
        }
        return first
    }

    private func extensionFolders(
        _ bundle: borrowing Descriptor, folder: String, limit: Int
    ) throws(AssetsError) -> [String] {
        do throws(SystemCallError) {
            let extensions = try bundle.open(beneath: "Extensions", flags: O_RDONLY | O_DIRECTORY)
            return try namesInDirectory(extensions, limit: limit).compactMap { name in
                String(validating: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            }.filter { $0.hasSuffix(".appex") && !$0.hasPrefix(".") }
        } catch {
            switch error.number {
            case ENOENT: return []
            case EFBIG:
                throw AssetsError(.bundleInvalid, "\(folder)/Extensions holds more than \(limit) names")
            default: throw AssetsError(.bundleInvalid, "Cannot read \(folder)/Extensions: \(error)")
            }
        }
    }
}

/// One of the two bundles: its property lists and what is asked of both alike.
struct Bundle {
    static let extensionPoint = "com.apple.background-asset-downloader-extension"
    static let groupsKey = "com.apple.security.application-groups"
    /// Groups that one bundle may name.
    private static let groupsMax = 64
    /// Bytes of names and versions, which are shown to people.
    private static let textMax = 255

    /// Path below the app's folder, empty or ending in a slash.
    let path: String
    /// Path with the app's folder, for people.
    let shown: String
    let info: PropertyList
    let entitlements: PropertyList

    init(_ bundle: borrowing Descriptor, path: String, shown: String) throws(AssetsError) {
        self.path = path
        self.shown = shown
        info = try PropertyList(bundle, path: path + "Info.plist", shown: shown + "/Info.plist")
        entitlements = try PropertyList(bundle, path: path + "Entitlements.plist", shown: shown + "/Entitlements.plist")
    }

    func identifier() throws(AssetsError) -> String {
        let identifier = try info.requiredString("CFBundleIdentifier")
        guard isIdentifier(identifier) else {
            throw info.error(
                "CFBundleIdentifier", "is \"\(printable(identifier.utf8))\", which is no bundle identifier",
                remedy: identifierRule)
        }
        return identifier
    }

    /// The executable's path below the app's folder.
    func executable(in bundle: borrowing Descriptor) throws(AssetsError) -> String {
        let key = "CFBundleExecutable"
        let name = try info.requiredString(key)
        let path: EntryPath
        do throws(EntryPath.Fault) {
            path = try EntryPath(bytes: Array((self.path + name).utf8), limits: StagingLimits())
        } catch {
            throw info.error(key, "is \"\(printable(name.utf8))\", which \(error.explanation)")
        }
        guard !name.hasPrefix("/"), !name.isEmpty else { throw info.error(key, "is no path below the bundle") }
        var status = stat()
        do throws(SystemCallError) {
            let file = try bundle.open(beneath: path.text, flags: O_RDONLY | O_NONBLOCK)
            let fd = file.rawValue
            try check("fstat") { fstat(fd, &status) }
        } catch {
            let why =
                switch error.number {
                case ENOENT: "is missing"
                case ELOOP: "is a link"
                default: "cannot be opened: \(error)"
                }
            throw info.error(
                key, "names \(printable(path.text.utf8)), which \(why)", remedy: "Put the built product there")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw info.error(key, "names \(printable(path.text.utf8)), which is no file")
        }
        guard status.st_mode & S_IXUSR != 0 else {
            throw info.error(
                key, "names \(printable(path.text.utf8)), which is not executable", remedy: "Set its mode to 755")
        }
        return path.text
    }

    func groups() throws(AssetsError) -> [String] {
        let groups = try entitlements.strings(Self.groupsKey, limit: Self.groupsMax) ?? []
        guard !groups.isEmpty else {
            throw entitlements.error(
                Self.groupsKey, "is missing or empty", remedy: "Name the group that app and extension share")
        }
        for group in groups where !isIdentifier(group) {
            throw entitlements.error(
                Self.groupsKey, "names \"\(printable(group.utf8))\", which is no group identifier",
                remedy: identifierRule)
        }
        var seen: Set<String> = []
        return groups.filter { seen.insert($0).inserted }
    }

    func displayName() throws(AssetsError) -> String? {
        for key in ["CFBundleDisplayName", "CFBundleName"] {
            if let name = try shownText(key) { return name }
        }
        return nil
    }

    /// CFBundleShortVersionString and CFBundleVersion; each stands in for the other.
    func versions() throws(AssetsError) -> (version: String, build: String) {
        let version = try shownText("CFBundleShortVersionString")
        let build = try shownText("CFBundleVersion")
        guard let either = version ?? build else {
            throw info.error("CFBundleVersion", "is missing", remedy: "Number the builds of the app")
        }
        return (version ?? either, build ?? either)
    }

    private func shownText(_ key: String) throws(AssetsError) -> String? {
        guard let text = try info.string(key), !text.isEmpty else { return nil }
        guard text.utf8.count <= Self.textMax else { throw info.error(key, "is longer than \(Self.textMax) bytes") }
        guard printable(text.utf8) == text || text.utf8.count > 200 else {
            throw info.error(key, "holds characters that cannot be shown")
        }
        return text
    }
}

/// What ``isIdentifier(_:)`` asks for, for people.
private let identifierRule =
    "Use letters, digits, \"-\", \"_\" and single dots between them, at most \(ContainerFolders.identifierLengthMax)"

/// Letters, digits, `-`, `_` and single dots inside: safe as the beginning of a container's name.
func isIdentifier(_ text: String) -> Bool {
    guard !text.isEmpty, text.utf8.count <= ContainerFolders.identifierLengthMax else { return false }
    return text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { part in
        !part.isEmpty
            && part.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}
