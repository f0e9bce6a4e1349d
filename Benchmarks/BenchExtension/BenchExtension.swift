// The extension of the app that the benches install: small, as extensions are.
import BackgroundAssets
import Foundation
import FoundationNetworking

/// Wants every file of its manifest. A line of it holds a URL, a size and, where the app can be launched without the file,
/// the word "later".
@main
struct BenchExtension: BADownloaderExtension {
    private static let group = "group.org.backgroundassets.bench"

    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        guard request == .install, let manifest = try? String(contentsOf: manifestURL, encoding: .utf8) else {
            return []
        }
        var wanted: Set<BADownload> = []
        for line in manifest.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count >= 2, let url = URL(string: String(fields[0])), let size = Int(fields[1]) else {
                continue
            }
            wanted.insert(
                BAURLDownload(
                    identifier: url.lastPathComponent, request: URLRequest(url: url),
                    essential: fields.count < 3 || fields[2] != "later", fileSize: size,
                    applicationGroupIdentifier: Self.group, priority: .default))
        }
        return wanted
    }

    // Where the app keeps no assets the file stays where it was vended: purgeable, as for every app that leaves it there.
    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: Self.group)
        if let container, finishedDownload.identifier == "visits" { Visits(in: container).run() }
        guard let assets = container?.appending(path: "Assets"), FileManager.default.fileExists(atPath: assets.path)
        else {
            return
        }
        // Moved already where it is told of a second time.
        try? FileManager.default.moveItem(at: fileURL, to: assets.appending(path: finishedDownload.identifier))
    }
}
