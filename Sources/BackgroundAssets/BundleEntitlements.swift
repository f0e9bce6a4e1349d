// What the bundle of this process declares.

internal import Foundation

/// `Entitlements.plist` of the app or extension that an executable belongs to.
struct BundleEntitlements: Sendable {
    /// Bytes of the property list; more is not one.
    private static let sizeMax = 1 << 20
    private static let groupsKey = "com.apple.security.application-groups"

    /// The app groups, in the order of the file.
    let groups: [String]

    /// Reads the entitlements of the bundle around an executable: the nearest folder named `.app` or `.appex`.
    init(executable: String) {
        groups = Self.bundle(of: executable).map { Self.readGroups($0 + "/Entitlements.plist") } ?? []
    }

    /// The folder of the bundle that an executable belongs to.
    static func bundle(of executable: String) -> String? {
        var folder = executable[...]
        while let slash = folder.lastIndex(of: "/"), slash > folder.startIndex {
            folder = folder[..<slash]
            if folder.hasSuffix(".app") || folder.hasSuffix(".appex") { return String(folder) }
        }
        return nil
    }

    private static func readGroups(_ path: String) -> [String] {
        guard let size = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber,
            size.intValue <= sizeMax, let data = FileManager.default.contents(atPath: path),
            let list = try? PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any]
        else { return [] }
        return list[groupsKey] as? [String] ?? []
    }
}
