// A protocol wrapped round the manager, so that an app's tests can do without it.
import BackgroundAssets

protocol DownloadManaging: AnyObject, Sendable {
    var delegate: (any BADownloadManagerDelegate)? { get set }
    var currentDownloads: [BADownload] { get async throws }
    func fetchCurrentDownloads() throws -> [BADownload]
    func fetchCurrentDownloads(completionHandler: @escaping ([BADownload], (any Error)?) -> Void)
    func scheduleDownload(_ download: BADownload) throws
    func startForegroundDownload(_ download: BADownload) throws
    func cancel(_ download: BADownload) throws
}

extension BADownloadManager: DownloadManaging {}

protocol ExclusiveControlling {
    func withExclusiveControl(_ performHandler: @escaping (Bool, (any Error)?) -> Void)
    func withExclusiveControl(beforeDate date: Date, perform performHandler: @escaping (Bool, (any Error)?) -> Void)
}

extension BADownloadManager: ExclusiveControlling {}

/// Nothing is downloaded in tests and previews.
final class NoDownloads: DownloadManaging, @unchecked Sendable {
    weak var delegate: (any BADownloadManagerDelegate)?
    private(set) var scheduled: [BADownload] = []

    var currentDownloads: [BADownload] { get async throws { scheduled } }
    func fetchCurrentDownloads() throws -> [BADownload] { scheduled }
    func fetchCurrentDownloads(completionHandler: @escaping ([BADownload], (any Error)?) -> Void) {
        completionHandler(scheduled, nil)
    }
    func scheduleDownload(_ download: BADownload) throws { scheduled.append(download) }
    func startForegroundDownload(_ download: BADownload) throws { delegate?.downloadDidBegin(download) }
    func cancel(_ download: BADownload) throws { scheduled.removeAll { $0 == download } }
}

struct AssetFetcher {
    var manager: any DownloadManaging = BADownloadManager.shared

    /// Schedules what is not on its way.
    func fetch(_ downloads: [BADownload]) throws -> Int {
        let current = Set(try manager.fetchCurrentDownloads().map(\.identifier))
        let missing = downloads.filter { !current.contains($0.identifier) }
        try missing.forEach(manager.scheduleDownload)
        return missing.count
    }

    func cancelAll() async throws {
        for download in try await manager.currentDownloads { try manager.cancel(download) }
    }
}
