// What ported code does beside downloading: it replaces files, keeps preferences and looks at its bundle.
import BackgroundAssets
import FixturePlan
import Foundation

extension Driver {
    /// Replaces files in every way in which sources do; `folder` says where the new ones come from.
    func replace(from folder: String) throws -> [String: String] {
        guard let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) else {
            throw CocoaError(.fileNoSuchFile)
        }
        let files = FileManager.default
        let ways: [(String, (URL, URL) throws -> Void)] = [
            ("two", { _ = try files.replaceItemAt($0, withItemAt: $1) }),
            ("all", { _ = try files.replaceItemAt($0, withItemAt: $1, backupItemName: "backup", options: []) }),
            (
                "kept",
                {
                    _ = try files.replaceItemAt(
                        $0, withItemAt: $1, backupItemName: "backup", options: .withoutDeletingBackupItem)
                }
            ),
            ("foundation", { try replaceWithFoundation($0, by: $1) }),
            ("library", { try replaceInLibrary($0, by: $1) }),
        ]
        var texts: [String: String] = [:]
        for (name, replace) in ways {
            for isThere in [true, false] {
                let place = container.appendingPathComponent("replace/\(name) \(isThere)")
                try files.createDirectory(at: place, withIntermediateDirectories: true)
                let original = place.appendingPathComponent("original")
                let new = URL(fileURLWithPath: folder).appendingPathComponent("new \(name) \(isThere)")
                if isThere { try Data("old".utf8).write(to: original) }
                try Data("new".utf8).write(to: new)
                do { try replace(original, new) } catch { texts["\(name) \(isThere)/error"] = "\(error)" }
                for file in try files.contentsOfDirectory(atPath: place.path) {
                    let text = try String(contentsOf: place.appendingPathComponent(file), encoding: .utf8)
                    texts["\(name) \(isThere)/\(file)"] = text
                }
                if files.fileExists(atPath: new.path) { texts["\(name) \(isThere)/left"] = "" }
            }
        }
        return texts
    }

    /// Memory of its own that the process gains by reading a file that may be mapped, in bytes.
    func memoryOfMapping(_ path: String) throws -> Int {
        let before = try Self.ownMemory()
        let data = try Data(contentsOf: URL(fileURLWithPath: path), options: .mappedIfSafe)
        let sum = stride(from: 0, to: data.count, by: 4096).reduce(0) { $0 &+ Int(data[$1]) }
        let after = try Self.ownMemory()
        return sum == .min ? 0 : after - before
    }

    private static func ownMemory() throws -> Int {
        let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("RssAnon:") } ?? ""
        return (line.split(separator: " ").dropLast().last.flatMap { Int($0) } ?? 0) << 10
    }
}
