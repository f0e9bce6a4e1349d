// The container that app and extension share.
internal import Foundation

/// The app group of this process's bundle, by its entitlements.
package func declaredGroup() -> String {
    let executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let list = (executable as NSString).deletingLastPathComponent + "/Entitlements.plist"
    let values =
        FileManager.default.contents(atPath: list).flatMap {
            try? PropertyListSerialization.propertyList(from: $0, format: nil) as? [String: Any]
        } ?? [:]
    return (values["com.apple.security.application-groups"] as? [String])?.first ?? ""
}
