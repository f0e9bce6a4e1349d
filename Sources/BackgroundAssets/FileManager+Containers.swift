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
    /// - Returns: The folder; `nil` for a group that the bundle does not list.
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

    /// Which groups, and the root folder of the device.
    struct Grant: Sendable {
        var groups: [String]
        var root: String
    }

    /// Bytes of a group's name: it is the name of a folder.
    private static let nameMax = 255

    private let environment: [String: String]
    private let executable: String
    private let identify: @Sendable () -> ManagerInterface.Identity.Reply?
    /// Found once; a service that could not be reached is asked again.
    private let found = Guarded<Grant?>(nil)

    /// - Parameter identify: Asks the service for whom this process speaks.
    init(
        environment: [String: String], executable: String,
        identify: @escaping @Sendable () -> ManagerInterface.Identity.Reply?
    ) {
        self.environment = environment
        self.executable = executable
        self.identify = identify
    }

    func url(of group: String) -> URL? {
        guard Self.isName(group), let grant = grant(), grant.groups.contains(group) else { return nil }
        let path = grant.root + "/Containers/Group/" + group
        // The service makes it when it installs the app; this helps after somebody removed it.
        try? FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        return URL(fileURLWithPath: path, isDirectory: true)
    }

    /// An extension knows its groups from its bundle and asks for the root; a process that declares an app asks for both;
    /// an app needs no running service.
    private func grant() -> Grant? {
        if let grant = found.withLock({ $0 }) { return grant }
        let grant: Grant?
        if environment[EnvironmentKey.isExtension] == "1" {
            let groups = BundleEntitlements(executable: executable).groups
            grant = identify().map { Grant(groups: groups, root: $0.root) }
        } else if environment[EnvironmentKey.declaredApp]?.isEmpty == false {
            grant = identify().map { Grant(groups: $0.groups, root: $0.root) }
        } else {
            let groups = BundleEntitlements(executable: executable).groups
            let folder = FileManager.default.currentDirectoryPath
            grant = DeviceLocation(environment: environment, currentFolder: folder).map {
                Grant(groups: groups, root: $0.root)
            }
        }
        found.withLock { $0 = grant }
        return grant
    }

    static func isName(_ group: String) -> Bool {
        !group.isEmpty && group.utf8.count <= nameMax && group != "." && group != ".."
            && !group.utf8.contains(UInt8(ascii: "/")) && !group.utf8.contains(0)
    }
}
