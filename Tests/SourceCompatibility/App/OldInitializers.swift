// Calls of the first releases; Apple's module deprecates them too.
import BackgroundAssets

final class OldStyle: NSObject, BADownloadManagerDelegate {
    let group: String
    private let lock = NSLock()
    private var _lines: [String] = []
    var lines: [String] { lock.withLock { _lines } }

    private func note(_ line: String) { lock.withLock { _lines.append(line) } }

    init(group: String) { self.group = group }

    func start(_ url: URL) {
        // expected-warning@+1 {{'init(identifier:request:applicationGroupIdentifier:)' is deprecated}}
        let download = BAURLDownload(
            identifier: "old " + url.lastPathComponent,
            request: URLRequest(url: url),
            applicationGroupIdentifier: group)
        let manager = BADownloadManager.shared
        do {
            // expected-warning@+2 {{'schedule' is deprecated}}
            // expected-note@+1 {{use 'scheduleDownload(_:)' instead}}
            try manager.schedule(download)
        } catch {
            note("Failed to schedule download. \(error)")
        }
    }

    func startUrgently(_ url: URL) throws {
        // expected-warning@+1 {{'init(identifier:request:applicationGroupIdentifier:priority:)' is deprecated}}
        let download = BAURLDownload(
            identifier: "urgent " + url.lastPathComponent, request: URLRequest(url: url),
            applicationGroupIdentifier: group, priority: .max)
        try BADownloadManager.shared.scheduleDownload(download)
    }

    func download(
        _ download: BADownload, bytesWritten: Int64, totalBytesWritten: Int64, totalExpectedBytes: Int64
    ) {
        note("\(totalBytesWritten) of \(totalExpectedBytes)")
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        // expected-warning@+1 {{'withExclusiveControl' is deprecated}}
        BADownloadManager.shared.withExclusiveControl { error in
            guard error == nil else {
                print("Unable to acquire exclusive control \(String(describing: error))")
                return
            }
            do {
                let data = try Data(contentsOf: fileURL, options: .mappedIfSafe)
                self.note("\(data.count) bytes")
                try FileManager.default.removeItem(at: fileURL)
            } catch {
                print("Unable to read the file. \(error)")
            }
        }
    }
}
