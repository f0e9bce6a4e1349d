// The delegates of the sample app.
import BackgroundAssets
import Dispatch
import FixturePlan
import Foundation
import FoundationNetworking
import Glibc

/// Hears nothing.
final class EmptyDelegate: NSObject, BADownloadManagerDelegate {}

/// Hears everything but the end of a download.
final class UnfinishedDelegate: NSObject, BADownloadManagerDelegate {
    func downloadDidBegin(_ download: BADownload) { Output.write(download.record("began")) }
    func downloadDidPause(_ download: BADownload) { Output.write(download.record("paused")) }
}

/// Hears everything, and takes finished files.
class FullDelegate: NSObject, BADownloadManagerDelegate {
    let container: URL
    private let label: String?

    init(container: URL, label: String?) {
        self.container = container
        self.label = label
    }

    func record(_ event: String, _ download: BADownload) -> FixtureRecord {
        var record = download.record(event)
        record.label = label
        return record
    }

    func downloadDidBegin(_ download: BADownload) { Output.write(record("began", download)) }
    func downloadDidPause(_ download: BADownload) { Output.write(record("paused", download)) }

    func download(
        _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64
    ) {
        var record = record("progress", download)
        record.written = bytesWritten
        record.total = totalBytesWritten
        record.expected = totalExpectedBytes
        Output.write(record)
    }

    func download(_ download: BADownload, failedWithError error: any Error) {
        var record = record("failed", download)
        record.note(error)
        Output.write(record)
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        var record = record("finished", download)
        record.path = fileURL.path
        record.bytes = (try? Data(contentsOf: fileURL))?.count
        do {
            try moveAsset(fileURL, as: download.identifier, in: container)
            record.moved = true
        } catch { record.note(error) }
        Output.write(record)
    }
}

/// Takes a finished file only when it is told to.
final class BlockingDelegate: FullDelegate {
    private let releases: DispatchSemaphore

    init(container: URL, releases: DispatchSemaphore) {
        self.releases = releases
        super.init(container: container, label: nil)
    }

    override func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        Output.write(record("entering", download))
        releases.wait()
        super.download(download, finishedWithFileURL: fileURL)
    }
}

/// Looks for a finished file, and moves it, inside exclusive control only.
final class ExclusiveDelegate: FullDelegate {
    override func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        let container = container
        BADownloadManager.shared.withExclusiveControl { [self] (isAcquired: Bool, error: (any Error)?) in
            var record = record("finished", download)
            record.acquired = isAcquired
            record.moved = false
            do {
                if let error { throw error }
                if FileManager.default.fileExists(atPath: fileURL.path) {
                    try moveAsset(fileURL, as: download.identifier, in: container)
                    record.moved = true
                }
            } catch { record.note(error) }
            Output.write(record)
        }
    }
}

/// Maps a finished file, removes it, and then writes what the mapping holds.
final class MappingDelegate: FullDelegate {
    override func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        var record = record("finished", download)
        do {
            let descriptor = open(fileURL.path, O_RDONLY)
            defer { close(descriptor) }
            let size = Int(lseek(descriptor, 0, SEEK_END))
            guard let bytes = mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0), bytes != MAP_FAILED else {
                throw CocoaError(.fileReadUnknown)
            }
            defer { munmap(bytes, size) }
            try FileManager.default.removeItem(at: fileURL)
            record.moved = FileManager.default.fileExists(atPath: fileURL.path)
            let assets = container.appendingPathComponent(FixtureName.assets)
            try FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
            try Data(bytes: bytes, count: size).write(to: assets.appendingPathComponent(download.identifier))
        } catch { record.note(error) }
        Output.write(record)
    }
}

/// Schedules what failed anew, from another place.
final class RetryingDelegate: FullDelegate {
    private let retries: String?
    private let group: String

    init(container: URL, label: String?, retries: String?, group: String) {
        self.retries = retries
        self.group = group
        super.init(container: container, label: label)
    }

    override func download(_ download: BADownload, failedWithError error: any Error) {
        super.download(download, failedWithError: error)
        guard let retries else { return }
        var record = record("scheduled", download)
        do {
            let anew = try FixturePlan.Item(download.identifier, url: retries).download(group: group)
            try BADownloadManager.shared.scheduleDownload(anew)
            record.download = anew.listed
        } catch { record.note(error) }
        Output.write(record)
    }
}

extension BADownload {
    func record(_ event: String) -> FixtureRecord {
        var record = FixtureRecord(event)
        record.download = listed
        record.byDelegate = true
        record.onMainThread = Thread.isMainThread
        return record
    }
}
