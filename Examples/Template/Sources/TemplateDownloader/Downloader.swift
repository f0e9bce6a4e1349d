// What is fetched: decided before the app was ever opened, after updates, and from time to time.
import BackgroundAssets
import ExtensionFoundation
import os.log

@main
struct Downloader: BADownloaderExtension {
    private let logger = Logger(subsystem: "com.example.template", category: "downloader")

    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        do {
            let assets = try Asset.read(manifestURL)
            logger.info("request \(request.rawValue): \(assets.count) assets")
            return Set(assets.map { $0.download(isEssential: request == .install) })
        } catch {
            logger.error("the manifest cannot be read: \(error.localizedDescription, privacy: .public)")
            return []
        }
    }

    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        do {
            try Asset.keep(fileURL, as: finishedDownload.identifier)
        } catch {
            logger.error("\(finishedDownload.identifier, privacy: .public): \(error.localizedDescription)")
        }
    }

    func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error) {
        logger.notice("\(failedDownload.identifier, privacy: .public) failed: \(error.localizedDescription)")
        // What the app can do without is tried again while it runs.
        guard failedDownload.isEssential else { return }
        try? BADownloadManager.shared.scheduleDownload(failedDownload.removingEssential())
    }
}

extension Asset {
    fileprivate func download(isEssential: Bool) -> BADownload {
        BAURLDownload(
            identifier: name, request: request, essential: isEssential, fileSize: size,
            applicationGroupIdentifier: Asset.group, priority: .default)
    }
}
