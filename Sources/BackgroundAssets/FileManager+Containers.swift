// Where an app group keeps its files.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
public import Foundation

extension FileManager {
    /// The folder that an app and its extension share.
    ///
    /// Downloads arrive in it. Keep what can be fetched again in its `Library/Caches`.
    ///
    /// - Parameter groupIdentifier: The app group, as the bundle's `Entitlements.plist` lists it.
    /// - Returns: The folder; `nil` for a group that the bundle does not list, and where the app is not installed.
    public func containerURL(forSecurityApplicationGroupIdentifier groupIdentifier: String) -> URL? {
        GroupContainers.shared.url(of: groupIdentifier)
    }
}

/// The group containers of this process.
final class GroupContainers: Sendable {
    static let shared = GroupContainers(
        environment: ProcessInfo.processInfo.environment,
        executable: (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "",
        identify: {
            try? BADownloadManager.shared.session.requests.call(ManagerInterface.Identity.self, Nothing())
        })

    /// Where the folders are found.
    private enum Source: Sendable {
        /// In a device's listing, for the groups of the bundle.
        case device(root: String, groups: [String])
        /// In what the service said: groups and their folders.
        case service([String: String])
    }

    private let environment: [String: String]
    private let executable: String
    private let identify: @Sendable () -> ManagerInterface.Identity.Reply?
    /// Found once; a service that could not be reached is asked again.
    private let found = Guarded<Source?>(nil)

    /// - Parameter identify: Asks the service for whom this process speaks.
    init(
        environment: [String: String], executable: String,
        identify: @escaping @Sendable () -> ManagerInterface.Identity.Reply?
    ) {
        self.environment = environment
        self.executable = executable
        self.identify = identify
    }

    /// The service makes containers when it installs an app, and when it starts those that somebody has removed.
    func url(of group: String) -> URL? {
        let path: String?
        switch source() {
        case .device(let root, let groups): path = groups.contains(group) ? Self.container(of: group, below: root) : nil
        case .service(let containers): path = containers[group]
        case nil: path = nil
        }
        return path.map { URL(fileURLWithPath: $0, isDirectory: true) }
    }

    private static func container(of group: String, below root: String) -> String? {
        let folders = ContainerFolders { path in
            (try? FileManager.default.contentsOfDirectory(atPath: "\(root)/\(path)")) ?? []
        }
        return folders[.group, group].map { "\(root)/\($0)" }
    }

    /// An extension cannot list the device's containers: it asks, and so does a process that declares an app. An app needs
    /// no running service.
    private func source() -> Source? {
        if let source = found.withLock({ $0 }) { return source }
        let source: Source?
        let isDeclared = environment[EnvironmentKey.declaredApp]?.isEmpty == false
        if environment[EnvironmentKey.isExtension] == "1" || isDeclared {
            source = identify().map { identity in
                .service(Dictionary(identity.groups.map { ($0.identifier, $0.container) }) { first, _ in first })
            }
        } else {
            let groups = BundleEntitlements(executable: executable).groups
            let folder = FileManager.default.currentDirectoryPath
            source = DeviceLocation(environment: environment, currentFolder: folder).map {
                .device(root: $0.root, groups: groups)
            }
        }
        found.withLock { $0 = source }
        return source
    }
}
