// The app: shows what is there, and waits for what is still on its way.
import BackgroundAssets
import OSLog

@main
final class App: NSObject, BADownloadManagerDelegate {
    private static let group = "group.com.example.template"
    private let logger = Logger(subsystem: Bundle.main.bundleIdentifier ?? "", category: "app")

    static func main() throws {
        let app = App()
        app.show()
        BADownloadManager.shared.delegate = app
        for download in try BADownloadManager.shared.fetchCurrentDownloads() {
            try BADownloadManager.shared.startForegroundDownload(download)
        }
        while try !BADownloadManager.shared.fetchCurrentDownloads().isEmpty {
            RunLoop.main.run(until: Date(timeIntervalSinceNow: 1))
        }
    }

    private func show() {
        let kept = UserDefaults(suiteName: Self.group)?.dictionaryRepresentation().filter { $0.value is Date } ?? [:]
        for (name, date) in kept.sorted(by: { $0.key < $1.key }) { print("\(name): \(date)") }
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        logger.info("\(download.identifier, privacy: .public) is here")
        BADownloadManager.shared.withExclusiveControl { isAcquired, error in
            guard isAcquired, let container = self.container else { return }
            let place = container.appendingPathComponent("Library/Caches/Assets/" + download.identifier)
            _ = try? FileManager.default.replaceItemAt(place, withItemAt: fileURL)
        }
    }

    private var container: URL? {
        FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: Self.group)
    }
}
