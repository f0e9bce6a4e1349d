// A base class conforms, with every method empty; subclasses override what they need.
import BackgroundAssets

class DownloadListener: NSObject, BADownloadManagerDelegate {
    func downloadDidBegin(_ download: BADownload) {}
    func downloadDidPause(_ download: BADownload) {}
    func download(
        _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64
    ) {}
    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {}
    func download(_ download: BADownload, failedWithError error: any Error) {}
}

class RecordingListener: DownloadListener {
    private let lock = NSLock()
    private var _lines: [String] = []
    var lines: [String] {
        lock.lock()
        defer { lock.unlock() }
        return _lines
    }

    func record(_ line: String) {
        lock.lock()
        _lines.append(line)
        lock.unlock()
    }

    override func downloadDidBegin(_ download: BADownload) {
        super.downloadDidBegin(download)
        record("began \(download.identifier)")
    }

    override func download(_ download: BADownload, failedWithError error: Error) {
        record("failed \(download.identifier) \((error as NSError).code)")
    }
}

final class MovingListener: RecordingListener {
    let folder: URL
    private let finished: (String) -> Void

    init(folder: URL, finished: @escaping (String) -> Void) {
        self.folder = folder
        self.finished = finished
    }

    override func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        super.download(download, finishedWithFileURL: fileURL)
        do {
            try FileManager.default.moveItem(at: fileURL, to: folder.appendingPathComponent(download.identifier))
            record("moved \(download.identifier)")
        } catch {
            record("not moved \(error)")
        }
        finished(download.identifier)
    }
}
