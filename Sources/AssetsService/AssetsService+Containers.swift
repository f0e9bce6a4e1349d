// The containers of installed apps: what they are called, what is in them from the start.
internal import AssetsModel
internal import AssetsOS

/// The signature line that tells backup tools to leave a folder out.
let cacheDirectoryTag = "Signature: 8a477f597d28d172789f06886806bc55\n"

/// The folders of an app's containers, below the device directory.
struct ContainerPlaces: Hashable, Sendable {
    var groups: [String]
    var appExtension: String

    /// Makes what is missing of them. Blocks.
    func make(_ files: any FileTree) throws(SystemCallError) {
        for group in groups { try Self.makeGroup(files, group) }
        for folder in ["home", "tmp", "Manifests"] { try files.makeDirectory("\(appExtension)/\(folder)") }
        try files.makeDurableDirectory(appExtension)
        try files.syncDirectory(appExtension)
    }

    private static func makeGroup(_ files: any FileTree, _ folder: String) throws(SystemCallError) {
        let caches = "\(folder)/Library/Caches"
        try files.makeDurableDirectory("\(caches)/.BackgroundAssets")
        if try files.status("\(caches)/CACHEDIR.TAG") == nil {
            try files.replace("\(caches)/CACHEDIR.TAG", with: Array(cacheDirectoryTag.utf8), mode: 0o600)
        }
    }
}

extension AssetsService {
    /// The folder of a container, which has a name from now on.
    func container(_ kind: ContainerFolders.Kind, of identifier: String) -> String {
        containers.folder(kind, of: identifier, random: seams.random)
    }

    /// Where an app's containers lie, or are to be made.
    func containerPlaces(of app: AppRecord) -> ContainerPlaces {
        ContainerPlaces(
            groups: app.description.groups.map { container(.group, of: $0) },
            appExtension: container(.appExtension, of: app.description.extensionIdentifier))
    }

    /// The groups of an app that its extension shares, or all of them.
    func groupContainers(of app: AppRecord, sharedOnly: Bool) -> [GroupContainer] {
        (sharedOnly ? app.description.sharedGroups : app.description.groups).map {
            GroupContainer(identifier: $0, folder: container(.group, of: $0))
        }
    }

    /// What an app's extension may write to.
    func writableContainers(of app: AppRecord) -> [String] {
        groupContainers(of: app, sharedOnly: true).map(\.folder)
            + [container(.appExtension, of: app.description.extensionIdentifier)]
    }

    /// The containers that nobody needs without that app, which are nobody's from now on.
    func releaseContainers(of app: AppRecord) -> [String] {
        let shared = Set(apps.values.filter { $0.id != app.id }.flatMap(\.description.groups))
        let groups = app.description.groups.filter { !shared.contains($0) }
        let folders =
            groups.compactMap { containers[.group, $0] }
            + [containers[.appExtension, app.description.extensionIdentifier]].compactMap(\.self)
        for folder in folders { containers.remove(folder) }
        return folders
    }

    // MARK: Start

    /// Reads what containers there are.
    ///
    /// - Parameter leaving: Folders that were being removed when the last service ended.
    func findContainers(leaving: Set<String>) async throws(AssetsError) {
        let files = seams.files
        containers = try await translating { () async throws(SystemCallError) in
            try await self.seams.disk.run { () throws(SystemCallError) in
                try ContainerFolders(leaving: leaving) { path throws(SystemCallError) in try files.list(path) }
            }
        }
    }

    /// Containers of installed apps that somebody has removed are there again, empty.
    func makeMissingContainers() async {
        let files = seams.files
        for app in installedApps() {
            let description = app.description
            let isWhole =
                description.groups.allSatisfy { containers[.group, $0] != nil }
                && containers[.appExtension, description.extensionIdentifier] != nil
            guard !isWhole else { continue }
            let places = containerPlaces(of: app)
            do throws(SystemCallError) {
                try await seams.disk.run { () throws(SystemCallError) in try places.make(files) }
                journal(.recovered, .restart, app: app.id, "a container was gone; a new one is there, empty")
            } catch { journal(.warning, .volume, app: app.id, "a container cannot be made: \(error)") }
        }
    }
}
