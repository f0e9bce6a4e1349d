// A model of the main actor: its delegate methods run on the framework's queue, take the file there, and hop back.
import BackgroundAssets

@MainActor
final class LevelLibrary: NSObject {
    private(set) var progress: [String: Double] = [:]
    private(set) var ready: Set<String> = []
    private(set) var failures: [String: any Error] = [:]
    var onChange: () -> Void = {}

    nonisolated let folder: URL

    init(folder: URL) {
        self.folder = folder
        super.init()
        BADownloadManager.shared.delegate = self
    }

    func download(_ name: String, from url: URL, size: Int, group: String) throws {
        let download = BAURLDownload(
            identifier: name,
            request: URLRequest(url: url),
            fileSize: size,
            applicationGroupIdentifier: group
        )
        try BADownloadManager.shared.startForegroundDownload(download)
        progress[name] = 0
    }

    private func changed(_ change: () -> Void) {
        change()
        onChange()
    }
}

extension LevelLibrary: BADownloadManagerDelegate {
    nonisolated func download(
        _ download: BADownload,
        didWriteBytes bytesWritten: Int64,
        totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64
    ) {
        let part = Double(totalBytesWritten) / Double(max(totalExpectedBytes, 1))
        Task { @MainActor in changed { progress[download.identifier] = part } }
    }

    nonisolated func download(_ download: BADownload, failedWithError error: Error) {
        Task { @MainActor in changed { failures[download.identifier] = error } }
    }

    nonisolated func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        do {
            let place = folder.appendingPathComponent(download.identifier)
            _ = try FileManager.default.replaceItemAt(place, withItemAt: fileURL)
            Task { @MainActor [weak self] in self?.changed { self?.ready.insert(download.identifier) } }
        } catch {
            Task { @MainActor [weak self] in self?.changed { self?.failures[download.identifier] = error } }
        }
    }
}
