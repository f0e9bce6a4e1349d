// The current downloads in every form, and completion forms made asynchronous by hand.
import BackgroundAssets

enum Fetching {
    static func now() throws -> [BADownload] {
        try BADownloadManager.shared.fetchCurrentDownloads()
    }

    static func later(_ completion: @escaping @Sendable ([String]) -> Void) {
        BADownloadManager.shared.fetchCurrentDownloads { downloads, error in
            if let error { print("Cannot fetch: \(error.localizedDescription)") }
            completion(downloads.map(\.identifier))
        }
    }

    static func soon() async throws -> [BADownload] {
        let downloads = try await BADownloadManager.shared.currentDownloads
        return downloads.sorted { $0.priority.rawValue > $1.priority.rawValue }
    }

    /// As code has it that was written before there was an asynchronous form.
    static func wrapped() async throws -> [BADownload] {
        try await withCheckedThrowingContinuation { continuation in
            BADownloadManager.shared.fetchCurrentDownloads { downloads, error in
                if let error { continuation.resume(throwing: error) } else { continuation.resume(returning: downloads) }
            }
        }
    }

    static func promoteAll() async throws {
        for download in try await BADownloadManager.shared.currentDownloads where download.state == .waiting {
            try BADownloadManager.shared.startForegroundDownload(download)
        }
    }

    static func promoteExclusively() async throws -> Int {
        let manager = BADownloadManager.shared
        return try await manager.withExclusiveControl {
            let downloads = try manager.fetchCurrentDownloads()
            try downloads.forEach { try manager.startForegroundDownload($0) }
            return downloads.count
        }
    }

    /// A stream of finished downloads.
    static func finished(in folder: URL) -> AsyncStream<String> {
        AsyncStream { continuation in
            let listener = StreamListener(folder: folder, continuation)
            BADownloadManager.shared.delegate = listener
            continuation.onTermination = { _ in _ = listener }
        }
    }
}

private final class StreamListener: NSObject, BADownloadManagerDelegate, Sendable {
    private let folder: URL
    private let continuation: AsyncStream<String>.Continuation

    init(folder: URL, _ continuation: AsyncStream<String>.Continuation) {
        self.folder = folder
        self.continuation = continuation
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        let place = folder.appendingPathComponent(download.identifier)
        guard (try? FileManager.default.moveItem(at: fileURL, to: place)) != nil else { return }
        continuation.yield(download.identifier)
    }
}
