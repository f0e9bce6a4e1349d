// The one queue on which the app's code is called.

internal import AssetsOS
internal import AssetsWire
internal import Dispatch
internal import Foundation

/// What the service tells of a download.
enum DownloadMessage: Sendable {
    case began
    case paused
    case progress(written: Int64, total: Int64, expected: Int64)
    case failed(any Error)
    case finished(URL)

    /// `nil` for an event that is not of a download, or not whole.
    init?(_ event: ManagerInterface.Event) {
        switch event.kind {
        case "began": self = .began
        case "paused": self = .paused
        case "progress":
            self = .progress(
                written: event.written ?? 0, total: event.totalWritten ?? 0, expected: event.totalExpected ?? 0)
        case "failed":
            guard let failure = event.failure else { return nil }
            self = .failed(AssetsFailure.error(failure, url: event.download?.url ?? ""))
        case "finished":
            guard let path = event.path else { return nil }
            self = .finished(URL(fileURLWithPath: path, isDirectory: false))
        default: return nil
        }
    }

    /// Whose absence the service has to know of: it then wakes the extension, or tells no progress. Begin and pause are told
    /// all the same: the download's state changes with them.
    var optionalMethod: OptionalMethod? {
        switch self {
        case .began, .paused: nil
        case .progress: .progress
        case .failed: .failed
        case .finished: .finished
        }
    }
}

/// Calls the delegate's methods and the app's handlers one at a time, never on the main thread.
final class CallbackQueue: Sendable {
    /// Begin and pause messages that wait while the app's code blocks; more are dropped, as they are never kept.
    private static let waitingMax = 4096

    /// Progress that waits, as one message.
    private struct Progress {
        var written: Int64
        var total: Int64
        var expected: Int64
    }

    private struct Content {
        var delegate = WeakDelegate()
        var progress: [String: Progress] = [:]
        var waiting = 0
        /// Classes of delegates that have no method for progress.
        var deaf: Set<ObjectIdentifier> = []
    }

    /// `@unchecked Sendable`: the delegate's methods are called on the queue only; other threads compare it with nil.
    private struct WeakDelegate: @unchecked Sendable {
        weak var value: (any BADownloadManagerDelegate)?
    }

    private let queue = DispatchQueue(label: "org.backgroundassets.callbacks")
    private let content = Guarded(Content())
    private let challenges: ChallengeCaller

    init() { challenges = ChallengeCaller(on: queue) }

    var delegate: (any BADownloadManagerDelegate)? {
        get { content.withLock { HandedOver($0.delegate.value) }.value }
        set {
            let delegate = WeakDelegate(value: newValue)
            content.withLock { $0.delegate = delegate }
        }
    }

    /// False once a delegate of this class was called for progress and had no method for it.
    var hearsProgress: Bool {
        guard let delegate else { return true }
        let type = ObjectIdentifier(type(of: delegate))
        return content.withLock { !$0.deaf.contains(type) }
    }

    /// Runs code of the app.
    ///
    /// - Parameter scope: The callback that asked for it: it lasts until the code has returned.
    func run(in scope: CallbackScope?, _ body: @escaping @Sendable () -> Void) {
        queue.async { CallbackScope.resume(scope, body) }
    }

    /// Tells the delegate.
    ///
    /// - Parameter ended: Called when the callback has ended, on any thread, with whether there was a method for it. It
    ///   must not block.
    func deliver(
        _ message: DownloadMessage, of download: BADownload, ended: @escaping @Sendable (Bool) -> Void
    ) {
        switch message {
        case .began, .paused:
            guard count(1) else { return }
            queue.async {
                _ = self.count(-1)
                self.call(message, of: download, ended: ended)
            }
        case .progress(let written, let total, let expected):
            guard merge(written, total, expected, of: download.content.uniqueIdentifier) else { return }
            queue.async {
                let merged = self.content.withLock {
                    $0.progress.removeValue(forKey: download.content.uniqueIdentifier)
                }
                guard let merged else { return }
                self.call(
                    .progress(written: merged.written, total: merged.total, expected: merged.expected), of: download,
                    ended: ended)
            }
        case .failed, .finished:
            queue.async { self.call(message, of: download, ended: ended) }
        }
    }

    /// Asks the delegate about a challenge.
    ///
    /// - Parameter answered: Called on any thread with what it said. It must not block.
    func ask(
        _ challenge: WireChallenge, of download: BADownload, answered: @escaping @Sendable (ChallengeAnswer) -> Void
    ) {
        queue.async { [challenges] in
            guard let delegate = self.delegate else { return answered(.notImplemented) }
            let handed = HandedOver(delegate)
            Task { answered(await challenges.ask(handed, challenge, of: download)) }
        }
    }

    /// On the queue.
    private func call(
        _ message: DownloadMessage, of download: BADownload, ended: @escaping @Sendable (Bool) -> Void
    ) {
        guard let delegate else { return ended(false) }
        CallbackScope.run(
            {
                guard let method = message.optionalMethod else {
                    Self.tell(delegate, message, of: download)
                    return true
                }
                let isImplemented = MissingMethod.isImplemented(method, of: delegate) {
                    Self.tell(delegate, message, of: download)
                }
                if method == .progress, !isImplemented {
                    let type = ObjectIdentifier(type(of: delegate))
                    self.content.withLock { _ = $0.deaf.insert(type) }
                }
                return isImplemented
            }, ended: ended)
    }

    private static func tell(
        _ delegate: any BADownloadManagerDelegate, _ message: DownloadMessage, of download: BADownload
    ) {
        switch message {
        case .began: delegate.downloadDidBegin(download)
        case .paused: delegate.downloadDidPause(download)
        case .progress(let written, let total, let expected):
            delegate.download(
                download, didWriteBytes: written, totalBytesWritten: total, totalBytesExpectedToWrite: expected)
        case .failed(let error): delegate.download(download, failedWithError: error)
        case .finished(let url):
            RepairProbe.checkAtFinish()
            delegate.download(download, finishedWithFileURL: url)
        }
    }

    /// Counts a begin or pause message in or out; false when too many wait.
    private func count(_ change: Int) -> Bool {
        content.withLock { content in
            if change > 0 && content.waiting >= Self.waitingMax { return false }
            content.waiting += change
            return true
        }
    }

    /// Adds progress to what waits; true when nothing waited.
    private func merge(_ written: Int64, _ total: Int64, _ expected: Int64, of unique: String) -> Bool {
        content.withLock { content in
            let waiting = content.progress[unique]
            let sum = written.addingReportingOverflow(waiting?.written ?? 0)
            content.progress[unique] = Progress(
                written: sum.overflow ? .max : sum.partialValue, total: total, expected: expected)
            return waiting == nil
        }
    }
}
