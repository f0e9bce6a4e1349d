// The extension: decides what is downloaded while the app does not run, and takes what arrives meanwhile.
import BackgroundAssets
import SessionsCore

/// The system runs it when the app is installed or updated, now and then in between, and when downloads end. It keeps
/// nothing in memory: it may be ended whenever a method has returned.
@main
struct SessionsDownloader: BADownloaderExtension {
    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        guard let library = SessionLibrary() else { return refuse("the extension is not entitled to its app group") }
        do {
            let manifest = try SessionLibrary.readManifest(at: manifestURL)
            try library.save(manifest)
            return downloads(of: library.missing(of: manifest), for: request)
        } catch {
            return refuse("\(error.sentence)")
        }
    }

    /// The app can be launched when the essential ones are there. That is only possible while it is installed or updated.
    private func downloads(of sessions: [Session], for request: BAContentRequest) -> Set<BADownload> {
        let isEssentialPermitted = request == .install || request == .update
        var downloads: Set<BADownload> = []
        for (index, session) in sessions.enumerated() {
            downloads.insert(
                session.makeDownload(
                    essential: session.essential && isEssentialPermitted,
                    // In the order of the manifest.
                    priority: BADownload.Priority(BADownload.Priority.max.rawValue - index)))
        }
        print("asking for \(downloads.count) of the sessions")
        return downloads
    }

    private func refuse(_ reason: String) -> Set<BADownload> {
        print("asking for nothing: \(reason)")
        return []
    }

    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        guard let library = SessionLibrary() else { return }
        let identifier = finishedDownload.identifier
        let file: URL
        do {
            // Exclusive control may come only after this method has returned.
            file = try library.takeOver(fileURL, of: identifier)
        } catch {
            print("\(identifier) was lost: \(error.sentence)")
            return
        }
        Task {
            defer { try? FileManager.default.removeItem(at: file) }
            do {
                try await BADownloadManager.shared.withExclusiveControl {
                    // The manifest may have changed while the file was on its way.
                    guard let session = try library.savedManifest()?[identifier] else {
                        print("\(identifier) is not in the manifest any more")
                        return
                    }
                    try library.keep(file, as: session)
                    print("\(identifier) is on this machine")
                }
            } catch {
                print("\(identifier) was lost: \(error.sentence)")
            }
        }
    }

    func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error) {
        // A failed fetch of the manifest is told, too. Its class is a private one; there is nothing to schedule again.
        guard type(of: failedDownload) == BAURLDownload.self else {
            print("there is no manifest: \(error.sentence)")
            return
        }
        print("\(failedDownload.identifier) failed: \(error.sentence)")
        guard failedDownload.isEssential else { return }
        // The installation did not wait any longer. Later will do, too.
        do {
            try BADownloadManager.shared.scheduleDownload(failedDownload.removingEssential())
        } catch {
            print("\(failedDownload.identifier) cannot be scheduled again: \(error.sentence)")
        }
    }
}
