// An extension in the spellings of the first betas; Apple's module has them no more, ours deprecates them.
import BackgroundAssets

@main
final class FirstRelease: BADownloaderExtension {
    private let group = "group.org.example.fixture"

    required init() {}

    // expected-warning@+2 {{'BAApplicationExtensionInfo' is deprecated}}
    // expected-note@+1 {{use 'BAAppExtensionInfo' instead}}
    func applicationDidInstall(metadata: BAApplicationExtensionInfo) { schedule() }
    func applicationDidUpdate(metadata: BAAppExtensionInfo) { schedule() }
    func checkForUpdates(metadata: BAAppExtensionInfo) { schedule() }

    private func schedule() {
        guard let server = Bundle.main.object(forInfoDictionaryKey: "Server") as? String,
            let url = URL(string: server + "/one")
        else { return }
        // expected-warning@+1 {{'init(identifier:request:applicationGroupIdentifier:)' is deprecated}}
        let download = BAURLDownload(
            identifier: "one", request: URLRequest(url: url), applicationGroupIdentifier: group)
        do {
            // expected-warning@+2 {{'schedule' is deprecated}}
            // expected-note@+1 {{use 'scheduleDownload(_:)' instead}}
            try BADownloadManager.shared.schedule(download)
        } catch {
            print("Failed to schedule download. \(error)")
        }
    }

    func backgroundDownloadDidFail(failedDownload: BADownload) {
        print("\(failedDownload.identifier) failed")
    }

    func backgroundDownloadDidFinish(finishedDownload: BADownload, fileURL: URL) {
        guard let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) else {
            return
        }
        // expected-warning@+1 {{'withExclusiveControl' is deprecated}}
        BADownloadManager.shared.withExclusiveControl { error in
            guard error == nil else { return }
            let folder = container.appendingPathComponent("Library/Caches")
            try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try? FileManager.default.moveItem(
                at: fileURL, to: folder.appendingPathComponent(finishedDownload.identifier))
        }
    }

    func extensionWillTerminate() {}
}
