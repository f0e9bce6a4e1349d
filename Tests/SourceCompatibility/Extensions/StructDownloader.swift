// An extension as a structure: a manifest in JSON, essential files, failed ones again, moves under exclusive control.
import BackgroundAssets
import ExtensionFoundation
import os.log

@main
struct StructDownloader: BADownloaderExtension {
    private let logger = Logger(subsystem: "org.example.corpus", category: "extension")

    func downloads(
        for request: BAContentRequest,
        manifestURL: URL,
        extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        guard let manifest = try? Manifest(contentsOf: manifestURL) else {
            logger.error("The manifest is invalid.")
            return []
        }
        try? manifest.save()
        let isEssential = request == .install || request == .update
        var downloads: Set<BADownload> = []
        for item in manifest.downloads {
            guard let url = URL(string: item.url) else { continue }
            downloads.insert(
                BAURLDownload(
                    identifier: item.identifier,
                    request: URLRequest(url: url),
                    essential: isEssential && item.essential,
                    fileSize: item.size,
                    applicationGroupIdentifier: Manifest.group,
                    priority: .default))
        }
        return downloads
    }

    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        let kept = Manifest.folder.appendingPathComponent(UUID().uuidString)
        do {
            try FileManager.default.moveItem(at: fileURL, to: kept)
        } catch {
            logger.error("\(error)")
            return
        }
        // expected-warning@+1 {{'withExclusiveControl' is deprecated}}
        BADownloadManager.shared.withExclusiveControl { acquired, error in
            defer { try? FileManager.default.removeItem(at: kept) }
            guard acquired else {
                logger.warning("No exclusive control: \(String(describing: error))")
                return
            }
            let place = Manifest.folder.appendingPathComponent(finishedDownload.identifier)
            do {
                _ = try FileManager.default.replaceItemAt(place, withItemAt: kept)
            } catch {
                logger.error("\(error)")
            }
        }
    }

    func backgroundDownload(_ failedDownload: BADownload, failedWithError error: Error) {
        // The manifest's own download is of another class.
        guard type(of: failedDownload) == BAURLDownload.self else { return }
        guard failedDownload.isEssential else { return }
        do {
            let optional = failedDownload.removingEssential()
            try BADownloadManager.shared.scheduleDownload(optional)
        } catch {
            logger.warning("\(failedDownload.identifier) cannot be scheduled: \(error)")
        }
    }
}

private struct Manifest: Codable {
    static let group = "group.org.example.fixture"
    static var folder: URL {
        let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
        let folder = container ?? FileManager.default.temporaryDirectory
        return folder.appendingPathComponent("Library/Caches", isDirectory: true)
    }

    struct Item: Codable {
        var identifier: String
        var url: String
        var size: Int
        var essential: Bool
    }

    var downloads: [Item]

    init(contentsOf url: URL) throws {
        self = try JSONDecoder().decode(Manifest.self, from: Data(contentsOf: url, options: .mappedIfSafe))
    }

    func save() throws {
        try FileManager.default.createDirectory(at: Self.folder, withIntermediateDirectories: true)
        try JSONEncoder().encode(self).write(to: Self.folder.appendingPathComponent("manifest"), options: .atomic)
    }
}
