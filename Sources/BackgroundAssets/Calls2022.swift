// Calls of the methods of 2022 from code that is not deprecated itself.

internal import Foundation

/// The methods of 2022 by names that are not deprecated.
protocol MethodsOf2022: Sendable {
    /// Tells a delegate of progress.
    func tell(
        _ delegate: any BADownloadManagerDelegate, of download: BADownload, written: Int64, total: Int64,
        expected: Int64)
    /// Tells an extension of the occasion of a content request.
    func tell(_ instance: any BADownloaderExtension, of request: BAContentRequest, _ metadata: BAAppExtensionInfo)
    /// Tells an extension of a failed download.
    func tell(_ instance: any BADownloaderExtension, ofFailed download: BADownload)
    /// Tells an extension of a finished download.
    func tell(_ instance: any BADownloaderExtension, ofFinished download: BADownload, at file: URL)
    /// Tells an extension that it is about to be ended.
    func tellOfEnd(_ instance: any BADownloaderExtension)
}

/// Calls them. What is deprecated itself may call what is deprecated without a warning.
struct Calls2022: MethodsOf2022 {
    static let shared: any MethodsOf2022 = Calls2022()

    @available(*, deprecated)
    func tell(
        _ delegate: any BADownloadManagerDelegate, of download: BADownload, written: Int64, total: Int64,
        expected: Int64
    ) {
        delegate.download(
            download, bytesWritten: written, totalBytesWritten: total, totalExpectedBytes: expected)
    }

    @available(*, deprecated)
    func tell(_ instance: any BADownloaderExtension, of request: BAContentRequest, _ metadata: BAAppExtensionInfo) {
        switch request {
        case .install: instance.applicationDidInstall(metadata: metadata)
        case .update: instance.applicationDidUpdate(metadata: metadata)
        case .periodic: instance.checkForUpdates(metadata: metadata)
        case .languageChange: MissingMethod.note(.applicationEvent)
        }
    }

    @available(*, deprecated)
    func tell(_ instance: any BADownloaderExtension, ofFailed download: BADownload) {
        instance.backgroundDownloadDidFail(failedDownload: download)
    }

    @available(*, deprecated)
    func tell(_ instance: any BADownloaderExtension, ofFinished download: BADownload, at file: URL) {
        instance.backgroundDownloadDidFinish(finishedDownload: download, fileURL: file)
    }

    @available(*, deprecated)
    func tellOfEnd(_ instance: any BADownloaderExtension) { instance.extensionWillTerminate() }
}
