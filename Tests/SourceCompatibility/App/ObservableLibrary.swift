// A delegate in an observable class without Combine; its delegate is a small object of its own.
import BackgroundAssets
import Observation

@Observable
@MainActor
final class ObservableLibrary {
    var states: [String: BADownload.State] = [:]
    var isLoading: Bool { states.values.contains { $0 == .waiting || $0 == .downloading } }

    @ObservationIgnored private lazy var bridge = DelegateBridge(self)

    func connect() { BADownloadManager.shared.delegate = bridge }

    func load() async {
        do {
            for download in try await BADownloadManager.shared.currentDownloads {
                states[download.identifier] = download.state
            }
        } catch {
            states = [:]
        }
    }
}

private final class DelegateBridge: NSObject, BADownloadManagerDelegate {
    private weak let library: ObservableLibrary?

    init(_ library: ObservableLibrary) { self.library = library }

    func downloadDidBegin(_ download: BADownload) { note(download, .downloading) }
    func downloadDidPause(_ download: BADownload) { note(download, .waiting) }
    func download(_ download: BADownload, failedWithError error: any Error) { note(download, .failed) }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        try? FileManager.default.removeItem(at: fileURL)
        note(download, .finished)
    }

    private func note(_ download: BADownload, _ state: BADownload.State) {
        let identifier = download.identifier
        Task { @MainActor [weak library] in library?.states[identifier] = state }
    }
}

/// The class itself is observable and the delegate.
@Observable
final class ObservableDelegate: NSObject, BADownloadManagerDelegate, @unchecked Sendable {
    @MainActor var finished: [String] = []

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        try? FileManager.default.removeItem(at: fileURL)
        Task { @MainActor in self.finished.append(download.identifier) }
    }
}
