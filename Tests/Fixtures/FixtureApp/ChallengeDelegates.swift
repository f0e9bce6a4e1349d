// Delegates that answer servers: one with the completion handler, one with the asynchronous method.
import BackgroundAssets
import FixturePlan
import Foundation
import FoundationNetworking

/// The answers of a delegate in turn; the last one for good.
private final class Answers: @unchecked Sendable {
    // Sendable because the lock guards what changes.
    private let lock = NSLock()
    private var left: [FixtureAnswer]
    private var kept: [Any] = []

    init(_ answers: [FixtureAnswer]) { left = answers }

    func next() -> FixtureAnswer {
        lock.withLock { left.count > 1 ? left.removeFirst() : left.first ?? FixtureAnswer(.performDefault) }
    }

    /// Holds a handler that is never called.
    func keep(_ handler: Any) { lock.withLock { kept.append(handler) } }
}

/// Hears what every delegate hears, and ends downloads.
final class AnsweringDelegate: NSObject, BADownloadManagerDelegate {
    private let answers: Answers

    init(_ answers: [FixtureAnswer]) { self.answers = Answers(answers) }

    private func note(_ challenge: URLAuthenticationChallenge, of download: BADownload) {
        var record = FixtureRecord(challenge)
        record.download = download.listed
        record.byDelegate = true
        record.onMainThread = Thread.isMainThread
        Output.write(record)
    }

    func download(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note(challenge, of: download)
        let answer = answers.next()
        if let (disposition, credential) = answer.reply {
            completionHandler(disposition, credential)
            // Once too often.
            completionHandler(.cancelAuthenticationChallenge, nil)
        } else if answer.action == .silence {
            answers.keep(completionHandler)
        }
    }

    func download(_ download: BADownload, failedWithError error: any Error) {
        var record = download.record("failed")
        record.note(error)
        Output.write(record)
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        var record = download.record("finished")
        record.bytes = (try? Data(contentsOf: fileURL))?.count
        Output.write(record)
    }
}

/// The same with the asynchronous method only.
final class AsynchronousDelegate: NSObject, BADownloadManagerDelegate {
    private let answers: Answers

    init(_ answers: [FixtureAnswer]) { self.answers = Answers(answers) }

    func download(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        var record = FixtureRecord(challenge)
        record.download = download.listed
        record.byDelegate = true
        Output.write(record)
        await Task.yield()
        return answers.next().reply ?? (.performDefaultHandling, nil)
    }

    func download(_ download: BADownload, failedWithError error: any Error) {
        var record = download.record("failed")
        record.note(error)
        Output.write(record)
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        var record = download.record("finished")
        record.bytes = (try? Data(contentsOf: fileURL))?.count
        Output.write(record)
    }
}
