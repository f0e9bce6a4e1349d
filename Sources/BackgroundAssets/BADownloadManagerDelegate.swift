// What a running process is told of its downloads.

internal import AssetsOS
public import Foundation
public import FoundationNetworking

/// Takes messages about the downloads of an app and its extension.
///
/// Messages come one at a time on a queue of the framework, never on the main thread. They concern all downloads of the app,
/// whoever scheduled them; tell them apart by ``BADownload/uniqueIdentifier``. A method may block, call the manager and wait
/// for exclusive control: it holds up its own process only.
///
/// A message about a failed or finished download, or a challenge, for which no running process has a method goes to the
/// extension, which is started for it. For the others nobody is started, and nothing is kept for later.
///
/// On Apple's systems the methods are optional. There is no Objective-C here, so each has a default that tells the system
/// that it is missing; implement those you need. Two things differ. To call a method of a delegate yourself write
/// `delegate?.downloadDidBegin(download)`, without the second question mark. And a method counts as implemented where the
/// class declares its conformance: one that only a subclass adds is not seen. Write it, empty, in the base class and override
/// it; a line on standard error says so once.
public protocol BADownloadManagerDelegate: NSObjectProtocol {
    /// Bytes of the download begin to be fetched, or go on being fetched after a pause.
    ///
    /// - Parameter download: The download.
    func downloadDidBegin(_ download: BADownload)

    /// The download stopped for now; the system goes on with it later. Promotion to the foreground pauses a download, too.
    ///
    /// - Parameter download: The download.
    func downloadDidPause(_ download: BADownload)

    /// Bytes have arrived.
    ///
    /// Reported for every download, whether in the foreground or not, at most ten times a second each, and once more at the
    /// end. Reports that a busy callback has kept waiting arrive as one.
    ///
    /// - Parameters:
    ///   - download: The download they belong to.
    ///   - bytesWritten: Bytes since the last such message.
    ///   - totalBytesWritten: Bytes so far.
    ///   - totalExpectedBytes: Bytes of the whole file; 0 when unknown.
    func download(
        _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64)

    /// The server wants to know who asks: HTTP Basic or Digest. There are no challenges about a server's certificate here.
    ///
    /// A delegate without the method, or one that has not answered within 30 seconds, leaves the challenge to the
    /// extension. A credential serves all downloads of the app in its protection space as long as the service runs, with
    /// the persistence `.none` this download only; it is never written. One that the server refuses comes back with a
    /// higher `previousFailureCount`. The challenge's sender does nothing.
    ///
    /// Answer soon: a server does not wait for long. Linux's Foundation has challenges of passwords only, none of trust in a
    /// server.
    ///
    /// - Parameters:
    ///   - download: The download that is held up.
    ///   - challenge: What the server asks.
    ///   - completionHandler: Takes the answer, on any thread: what to do, and a credential only with `.useCredential`. The
    ///     first call counts. It is `@Sendable` in this requirement, so that implementations may have it either way.
    func download(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The server wants to know who asks; the asynchronous form of the method with a completion handler.
    ///
    /// For Objective-C both are one method; here they are two, and the framework calls this one. Its default calls the other.
    /// Implement one of the two.
    ///
    /// - Parameters:
    ///   - download: The download that is held up.
    ///   - challenge: What the server asks.
    /// - Returns: What to do, and a credential only with `.useCredential`.
    func download(_ download: BADownload, didReceive challenge: URLAuthenticationChallenge) async -> (
        URLSession.AuthChallengeDisposition, URLCredential?
    )

    /// The download ended without its file.
    ///
    /// - Parameters:
    ///   - download: The download; it cannot be scheduled again.
    ///   - error: Why: a `URLError`, or an error of ``BAErrorDomain``.
    func download(_ download: BADownload, failedWithError error: any Error)

    /// The file of the download is complete.
    ///
    /// Move the file within its container before this method has returned, every exclusive control asked for in it has
    /// finished, and every `Task` started in it has ended. Then it is deleted where it lay. Work sent to a dispatch queue
    /// is not waited for.
    ///
    /// - Parameters:
    ///   - download: The download.
    ///   - fileURL: Where the file lies, in the container of the download's app group.
    func download(_ download: BADownload, finishedWithFileURL fileURL: URL)

    /// The spelling of 2022 for progress. The default of the newer method calls it.
    ///
    /// - Parameters:
    ///   - download: The download that the bytes belong to.
    ///   - bytesWritten: Bytes since the last such message.
    ///   - totalBytesWritten: Bytes so far.
    ///   - totalExpectedBytes: Bytes of the whole file; 0 when unknown.
    @available(
        *, deprecated, renamed: "download(_:didWriteBytes:totalBytesWritten:totalBytesExpectedToWrite:)"
    )
    func download(
        _ download: BADownload, bytesWritten: Int64, totalBytesWritten: Int64, totalExpectedBytes: Int64)
}

extension BADownloadManagerDelegate {
    /// Does nothing.
    public func downloadDidBegin(_ download: BADownload) {}

    /// Does nothing.
    public func downloadDidPause(_ download: BADownload) {}

    /// Calls the method of 2022.
    public func download(
        _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64
    ) {
        let isImplemented = MissingMethod.isImplemented(.progressOf2022, of: self) {
            Calls2022.shared.tell(
                self, of: download, written: bytesWritten, total: totalBytesWritten, expected: totalExpectedBytes)
        }
        if !isImplemented { MissingMethod.note(.progress, of: self) }
    }

    /// Tells the system that there is no method for progress.
    public func download(
        _ download: BADownload, bytesWritten: Int64, totalBytesWritten: Int64, totalExpectedBytes: Int64
    ) {
        MissingMethod.note(.progressOf2022, of: self)
    }

    /// Leaves the answer to the system.
    public func download(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        MissingMethod.note(.challenge, of: self)
        completionHandler(.performDefaultHandling, nil)
    }

    /// Asks the method with a completion handler.
    public func download(_ download: BADownload, didReceive challenge: URLAuthenticationChallenge) async -> (
        URLSession.AuthChallengeDisposition, URLCredential?
    ) {
        await withCheckedContinuation { continuation in
            let once = OneAnswer(continuation)
            self.download(download, didReceive: challenge) { disposition, credential in
                once.resume(disposition, credential)
            }
        }
    }

    /// Leaves the message to the extension.
    public func download(_ download: BADownload, failedWithError error: any Error) {
        MissingMethod.note(.failed, of: self)
    }

    /// Leaves the message, and the file, to the extension.
    public func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        MissingMethod.note(.finished, of: self)
    }
}
