// What a downloader extension is.

public import ExtensionFoundation
public import Foundation
public import FoundationNetworking

/// Decides what an app downloads before it is launched, after it was updated and while nobody uses it.
///
/// Mark a type that conforms with `@main`:
///
///     @main
///     struct Downloader: BADownloaderExtension {
///         func downloads(
///             for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
///         ) -> Set<BADownload> { ... }
///     }
///
/// The system starts the extension when it has something to ask or to tell, calls one method at a time on the main thread,
/// and suspends or ends the process afterwards. It has no network and little memory: schedule downloads instead of fetching,
/// and keep what must last in the app group's container.
///
/// Every method has a default, so implement those you need. A default tells the system that the method is missing. A
/// finished file for which neither app nor extension has a method stays where it is, and may be deleted when space is
/// needed.
///
/// The methods of 2022 are there too, deprecated. They are called where the newer method of the same purpose is missing. Not
/// among them is `download(_:didReceive:)`: a class that is both extension and delegate would have two of that name. Rename
/// it to ``backgroundDownload(_:didReceive:)``.
public protocol BADownloaderExtension: AppExtension {
    /// Answers the downloads that the app needs on this occasion.
    ///
    /// While it runs nothing can be scheduled with ``BADownloadManager``; return everything instead. Essential downloads are
    /// permitted for ``BAContentRequest/install`` and ``BAContentRequest/update`` only.
    ///
    /// - Parameters:
    ///   - request: The occasion.
    ///   - manifestURL: The file that was fetched from the app's `BAManifestURL`. It can only be read, and it is gone after
    ///     the method has returned.
    ///   - extensionInfo: How much may be downloaded before the app is first launched.
    /// - Returns: What to download. A set that the system does not admit is refused as a whole, with the reason in the
    ///   device's journal.
    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload>

    /// The server wants to know who asks, HTTP Basic or Digest, and no running process has a delegate that answered. Called on
    /// the main actor, also for the manifest and before the app can be launched. Without an answer within 30 seconds the
    /// process is ended and the download fails.
    ///
    /// - Parameters:
    ///   - download: The download that is held up.
    ///   - challenge: What the server asks.
    /// - Returns: What to do, and a credential only with `.useCredential`.
    func backgroundDownload(_ download: BADownload, didReceive challenge: URLAuthenticationChallenge) async -> (
        URLSession.AuthChallengeDisposition, URLCredential?
    )

    /// A download ended without its file, and no running process has a delegate that took the message.
    ///
    /// - Parameters:
    ///   - failedDownload: The download. To try again later, schedule ``BADownload/removingEssential()`` of it.
    ///   - error: Why: a `URLError`, or an error of ``BAErrorDomain``.
    func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error)

    /// The file of a download is complete, and no running process has a delegate that took the message.
    ///
    /// Move the file within its container before this method has returned, every exclusive control asked for in it has
    /// finished, and every `Task` started in it has ended. Then it is deleted where it lay.
    ///
    /// - Parameters:
    ///   - finishedDownload: The download.
    ///   - fileURL: Where the file lies, in the container of the download's app group.
    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL)

    /// The extension is about to be ended. It may be ended without this call, too.
    @available(*, deprecated, message: "the extension may end without this call; do the work in the other methods")
    func extensionWillTerminate()

    // MARK: 2022

    /// The app is being installed. Called where ``downloads(for:manifestURL:extensionInfo:)`` is missing.
    ///
    /// Schedule what is needed with ``BADownloadManager``; essential downloads are not permitted here.
    ///
    /// - Parameter metadata: How much may be downloaded before the app is first launched.
    @available(*, deprecated, renamed: "downloads(for:manifestURL:extensionInfo:)")
    func applicationDidInstall(metadata: BAAppExtensionInfo)

    /// The app is being updated. Called where ``downloads(for:manifestURL:extensionInfo:)`` is missing.
    ///
    /// Schedule what is needed with ``BADownloadManager``; essential downloads are not permitted here.
    ///
    /// - Parameter metadata: How much may be downloaded before the app is first launched.
    @available(*, deprecated, renamed: "downloads(for:manifestURL:extensionInfo:)")
    func applicationDidUpdate(metadata: BAAppExtensionInfo)

    /// Time has passed; there may be something new. Called where ``downloads(for:manifestURL:extensionInfo:)`` is missing.
    ///
    /// Schedule what is needed with ``BADownloadManager``; essential downloads are not permitted here.
    ///
    /// - Parameter metadata: How much may be downloaded before the app is first launched.
    @available(*, deprecated, renamed: "downloads(for:manifestURL:extensionInfo:)")
    func checkForUpdates(metadata: BAAppExtensionInfo)

    /// A download ended without its file. Called where ``backgroundDownload(_:failedWithError:)`` is missing.
    ///
    /// - Parameter failedDownload: The download; ``BADownload/error`` says why.
    @available(*, deprecated, renamed: "backgroundDownload(_:failedWithError:)")
    func backgroundDownloadDidFail(failedDownload: BADownload)

    /// The file of a download is complete. Called where ``backgroundDownload(_:finishedWithFileURL:)`` is missing; the file
    /// is to be moved as is said there.
    ///
    /// - Parameters:
    ///   - finishedDownload: The download.
    ///   - fileURL: Where the file lies, in the container of the download's app group.
    @available(*, deprecated, renamed: "backgroundDownload(_:finishedWithFileURL:)")
    func backgroundDownloadDidFinish(finishedDownload: BADownload, fileURL: URL)
}

extension BADownloaderExtension {
    /// Downloads nothing. The system then calls the method of 2022 for the occasion.
    public func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        MissingMethod.note(.contentRequest)
        return []
    }

    /// Leaves the answer to the system.
    public func backgroundDownload(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        MissingMethod.note(.challenge)
        return (.performDefaultHandling, nil)
    }

    /// Calls the method of 2022, which does nothing unless implemented.
    public func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error) {
        Calls2022.shared.tell(self, ofFailed: failedDownload)
    }

    /// Calls the method of 2022. Where that is missing too the file stays where it is and may be deleted when space is
    /// needed.
    public func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        Calls2022.shared.tell(self, ofFinished: finishedDownload, at: fileURL)
    }

    /// Does nothing.
    public func extensionWillTerminate() {}

    /// Does nothing.
    public func applicationDidInstall(metadata: BAAppExtensionInfo) { MissingMethod.note(.applicationEvent) }

    /// Does nothing.
    public func applicationDidUpdate(metadata: BAAppExtensionInfo) { MissingMethod.note(.applicationEvent) }

    /// Does nothing.
    public func checkForUpdates(metadata: BAAppExtensionInfo) { MissingMethod.note(.applicationEvent) }

    /// Does nothing.
    public func backgroundDownloadDidFail(failedDownload: BADownload) { MissingMethod.note(.failed) }

    /// Does nothing.
    public func backgroundDownloadDidFinish(finishedDownload: BADownload, fileURL: URL) {
        MissingMethod.note(.finished)
    }

    /// The set-up of a downloader extension; there is nothing to choose.
    @MainActor @preconcurrency public var configuration: some BADownloaderExtensionConfiguration {
        DownloaderExtensionConfiguration()
    }

    /// The extension point of background downloads.
    @MainActor @preconcurrency public var extensionPoint: AppExtensionPoint {
        AppExtensionPoint(identifier: "com.apple.background-asset-downloader-extension")
    }
}

/// The configuration of a downloader extension.
@MainActor @preconcurrency public protocol BADownloaderExtensionConfiguration: AppExtensionConfiguration {}

/// The one configuration there is.
struct DownloaderExtensionConfiguration: BADownloaderExtensionConfiguration {
    nonisolated func accept(connection: NSXPCConnection) -> Bool { false }
}
