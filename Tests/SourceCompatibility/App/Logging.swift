// An app's logger, with the module that most sources import for it.
import BackgroundAssets
import os

extension Logger {
    static let downloads = Logger(subsystem: Bundle.main.bundleIdentifier ?? "org.example", category: "downloads")
}

final class LoggingDelegate: NSObject, BADownloadManagerDelegate {
    private let count = OSAllocatedUnfairLock(initialState: 0)

    func downloadDidBegin(_ download: BADownload) {
        Logger.downloads.debug("Began \(download.identifier, privacy: .public)")
    }

    func download(_ download: BADownload, failedWithError error: Error) {
        let failures = count.withLock { count in
            count += 1
            return count
        }
        Logger.downloads.error("\(failures): \(error.localizedDescription)")
        os_log(.fault, "%{public}@ failed", download.identifier)
    }
}
