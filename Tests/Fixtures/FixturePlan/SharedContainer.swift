// The container that app and extension share.
package import Foundation
internal import Glibc

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

/// Waits until a test lets the caller pass.
package func passTurnstile(in container: URL) {
    let path = container.appendingPathComponent(FixtureName.turnstile).path
    _ = mkfifo(path, 0o600)
    let descriptor = open(path, O_RDONLY)
    defer { close(descriptor) }
    var byte: UInt8 = 0
    _ = read(descriptor, &byte, 1)
}

/// Adds a line to a file of the container, in one piece.
package func append(line: String, to name: String, in container: URL) {
    let descriptor = open(container.appendingPathComponent(name).path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    defer { close(descriptor) }
    let bytes = Array((line + "\n").utf8)
    _ = write(descriptor, bytes, bytes.count)
}

/// Moves a file to its place in the container; throws where it is gone.
package func moveAsset(_ file: URL, as identifier: String, in container: URL) throws {
    let assets = container.appendingPathComponent(FixtureName.assets)
    try FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
    try FileManager.default.moveItem(at: file, to: assets.appendingPathComponent(identifier))
}
