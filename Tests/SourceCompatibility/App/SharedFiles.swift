// A file that imports Foundation only: group container, preferences of the group, requests, replaced files.
import Foundation

struct SharedFiles {
    let group: String

    var container: URL? { FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) }
    var preferences: UserDefaults? { UserDefaults(suiteName: group) }

    func keep(_ file: URL, as name: String) throws -> URL? {
        guard let container else { throw CocoaError(.fileNoSuchFile) }
        let folder = container.appendingPathComponent("Library/Caches/Kept", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let kept = try FileManager.default.replaceItemAt(folder.appendingPathComponent(name), withItemAt: file)
        preferences?.set(Date(), forKey: name)
        return kept
    }

    func read(_ name: String) throws -> Data {
        guard let container else { return Data() }
        return try Data(contentsOf: container.appendingPathComponent(name), options: .mappedIfSafe)
    }

    func request(_ url: URL) -> URLRequest {
        var request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
        request.httpMethod = "GET"
        return request
    }
}
