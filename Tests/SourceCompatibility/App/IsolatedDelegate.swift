// A delegate that is isolated to the main actor as a whole, by the two spellings that compile in both language modes.
@preconcurrency import BackgroundAssets

@MainActor
final class IsolatedDelegate: NSObject, @preconcurrency BADownloadManagerDelegate {
    private(set) var begun: [String] = []
    private(set) var finished: [String] = []

    func downloadDidBegin(_ download: BADownload) {
        begun.append(download.identifier)
    }

    func downloadDidPause(_ download: BADownload) {
        begun.removeAll { $0 == download.identifier }
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        finished.append(download.identifier)
        try? FileManager.default.removeItem(at: fileURL)
    }

    func download(_ download: BADownload, failedWithError error: any Error) {}
}

/// The conformance is isolated, not the class.
final class PartlyIsolatedDelegate: NSObject {
    @MainActor var count = 0
}

extension PartlyIsolatedDelegate: @preconcurrency BADownloadManagerDelegate {
    @MainActor func downloadDidBegin(_ download: BADownload) { count += 1 }
}
