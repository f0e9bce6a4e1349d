// A file of the manifest. It imports Foundation only, as such files do on Apple's systems.
import Foundation

struct Asset: Codable {
    static let group = "group.com.example.template"

    var name: String
    var url: URL
    var size: Int

    var request: URLRequest { URLRequest(url: url) }

    static func read(_ manifest: URL) throws -> [Asset] {
        try JSONDecoder().decode([Asset].self, from: Data(contentsOf: manifest, options: .mappedIfSafe))
    }

    /// Puts a finished file in the place of an older one, and notes when.
    static func keep(_ file: URL, as name: String) throws {
        guard let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) else {
            throw CocoaError(.fileNoSuchFile)
        }
        let folder = container.appendingPathComponent("Library/Caches/Assets", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        _ = try FileManager.default.replaceItemAt(folder.appendingPathComponent(name), withItemAt: file)
        UserDefaults(suiteName: group)?.set(Date(), forKey: "kept " + name)
    }
}
