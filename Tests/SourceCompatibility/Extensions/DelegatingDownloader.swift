// An extension that is an object and the manager's delegate as well, with the work in asynchronous functions.
import BackgroundAssets
import Foundation

@main
final class DelegatingDownloader: NSObject, BADownloaderExtension, BADownloadManagerDelegate {
    private let store = AssetStore()

    override required init() {
        super.init()
        BADownloadManager.shared.delegate = self
    }

    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        let manifest = try? JSONDecoder().decode([String: [Entry]].self, from: Data(contentsOf: manifestURL))
        return Set((manifest?["downloads"] ?? []).map(\.download))
    }

    /// The delegate hears of it, and so does the extension: what is done twice must not matter.
    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        keep(fileURL, of: download)
    }

    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        keep(fileURL, of: finishedDownload)
    }

    private func keep(_ file: URL, of download: BADownload) {
        Task { [store] in
            try await BADownloadManager.shared.withExclusiveControl {
                guard FileManager.default.fileExists(atPath: file.path) else { return }
                try AssetStore.move(file, to: download.identifier)
            }
            await store.note(download)
        }
    }
}

private struct Entry: Decodable {
    let identifier: String
    let url: URL
    let size: Int

    var download: BADownload {
        BAURLDownload(
            identifier: identifier, request: URLRequest(url: url), fileSize: size,
            applicationGroupIdentifier: "group.org.example.fixture")
    }
}

private actor AssetStore {
    private var kept: Set<BADownload> = []

    func note(_ download: BADownload) { kept.insert(download) }

    static func move(_ file: URL, to name: String) throws {
        let group = "group.org.example.fixture"
        guard let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) else {
            return
        }
        let folder = container.appendingPathComponent("Library/Caches", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        _ = try FileManager.default.replaceItemAt(folder.appendingPathComponent(name), withItemAt: file)
    }
}
