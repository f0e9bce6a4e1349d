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
    /// - Returns: What to download.
    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload>

    /// The server wants to know who asks. Answer soon.
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
}

extension BADownloaderExtension {
    /// Nothing is downloaded.
    public func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        MissingMethod.note()
        return []
    }

    /// Leaves the answer to the system.
    public func backgroundDownload(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        MissingMethod.note()
        return (.performDefaultHandling, nil)
    }

    /// Does nothing.
    public func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error) {
        MissingMethod.note()
    }

    /// Does nothing; the file stays where it is and may be deleted when space is needed.
    public func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        MissingMethod.note()
    }

    /// Does nothing.
    public func extensionWillTerminate() { MissingMethod.note() }

    /// The set-up of a downloader extension; there is nothing to choose.
    @MainActor @preconcurrency public var configuration: some BADownloaderExtensionConfiguration {
        DownloaderExtensionConfiguration()
    }

    /// The extension point of background downloads.
    public var extensionPoint: AppExtensionPoint {
        AppExtensionPoint(identifier: "com.apple.background-asset-downloader-extension")
    }
}

/// The configuration of a downloader extension.
@MainActor @preconcurrency public protocol BADownloaderExtensionConfiguration: AppExtensionConfiguration {}

/// The one configuration there is.
struct DownloaderExtensionConfiguration: BADownloaderExtensionConfiguration {
    nonisolated func accept(connection: NSXPCConnection) -> Bool { false }
}
