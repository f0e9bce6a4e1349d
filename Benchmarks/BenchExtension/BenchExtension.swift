// The extension of the app that the benches install: small, as extensions are.
import BackgroundAssets
import Foundation
import FoundationNetworking

/// Wants every file of its manifest, as essential asset. A line of the manifest holds a URL and a size.
@main
struct BenchExtension: BADownloaderExtension {
    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        guard request == .install, let manifest = try? String(contentsOf: manifestURL, encoding: .utf8) else { return [] }
        var wanted: Set<BADownload> = []
        for line in manifest.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count == 2, let url = URL(string: String(fields[0])), let size = Int(fields[1]) else { continue }
            wanted.insert(
                BAURLDownload(
                    identifier: url.lastPathComponent, request: URLRequest(url: url), essential: true, fileSize: size,
                    applicationGroupIdentifier: "group.org.backgroundassets.bench", priority: .default))
        }
        return wanted
    }

    // The file stays where it was vended: purgeable, as for every app that leaves it there.
    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {}
}
