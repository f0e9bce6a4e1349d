// Knows every session's state, asks for what is missing and takes what arrives.
import BackgroundAssets
import SessionsCore
import Synchronization

/// The delegate of the download manager: while the app runs it is told of downloads in place of the extension.
final class SessionManager: NSObject, BADownloadManagerDelegate, Sendable {
    /// What is shown of a session.
    enum State: Equatable {
        case local
        case waiting(received: Int64)
        case downloading(received: Int64)
        case failed(String)
    }

    let manifest: Manifest
    /// Yields when a state has changed; several changes may come as one.
    let changes: AsyncStream<Void>
    private let library: SessionLibrary
    private let changed: AsyncStream<Void>.Continuation
    private let states = Mutex<[String: State]>([:])

    init(library: SessionLibrary, manifest: Manifest) {
        self.library = library
        self.manifest = manifest
        (changes, changed) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        super.init()
        // From here on the app gets the messages.
        BADownloadManager.shared.delegate = self
    }

    /// Brings every session that is not on this machine here as fast as possible.
    ///
    /// Runs under exclusive control, so that the extension does not take or ask for the same ones in the meantime.
    func startDownloads() async throws {
        try await BADownloadManager.shared.withExclusiveControl { [self] in
            let manager = BADownloadManager.shared
            let current = try manager.fetchCurrentDownloads()
            for session in manifest.sessions {
                if library.local(session) != nil {
                    set(.local, of: session.id)
                    continue
                }
                // What the extension has asked for goes on where it is, in the foreground.
                let download =
                    current.first { $0.identifier == session.id } ?? session.makeDownload(essential: false)
                states.withLock { states in
                    if states[session.id] == nil || states[session.id] == .local {
                        states[session.id] = .waiting(received: 0)
                    }
                }
                do {
                    try manager.startForegroundDownload(download)
                } catch {
                    set(.failed(error.sentence), of: session.id)
                }
            }
        }
        changed.yield()
    }

    /// Asks again for sessions that have gone, because the system needed their space, and notices those that the extension
    /// took just before this app was there to take them.
    func refresh() async throws {
        let isSettled = manifest.sessions.allSatisfy { session in
            switch state(of: session) {
            case .local: library.local(session) != nil
            case .waiting, .downloading: library.local(session) == nil
            case .failed: true
            }
        }
        if !isSettled { try await startDownloads() }
    }

    func state(of session: Session) -> State { states.withLock { $0[session.id] } ?? .waiting(received: 0) }

    func overview() -> [SessionRow] {
        manifest.sessions.map { SessionRow($0, state(of: $0), library.local($0)?.fileURL.path) }
    }

    private func set(_ state: State, of identifier: String) {
        states.withLock { $0[identifier] = state }
        changed.yield()
    }

    // MARK: Messages about downloads

    func downloadDidBegin(_ download: BADownload) {
        update(download) { .downloading(received: $0) }
    }

    func downloadDidPause(_ download: BADownload) {
        update(download) { .waiting(received: $0) }
    }

    func download(
        _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64
    ) {
        update(download) { _ in .downloading(received: totalBytesWritten) }
    }

    /// Only sessions that the manifest knows, and that are not here already, have progress.
    private func update(_ download: BADownload, _ next: (_ received: Int64) -> State) {
        guard manifest[download.identifier] != nil else { return }
        states.withLock { states in
            switch states[download.identifier] {
            case .waiting(let received), .downloading(let received): states[download.identifier] = next(received)
            case .failed, nil: states[download.identifier] = next(0)
            case .local: break
            }
        }
        changed.yield()
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        guard let session = manifest[download.identifier] else { return }
        do {
            try library.keep(fileURL, as: session)
            set(.local, of: session.id)
        } catch {
            set(.failed(error.sentence), of: session.id)
        }
    }

    func download(_ download: BADownload, failedWithError error: any Error) {
        guard let session = manifest[download.identifier] else { return }
        set(.failed(error.sentence), of: session.id)
    }
}
