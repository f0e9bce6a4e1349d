// The names of the first year, for sources that still use them.

/// The first name of ``BAAppExtensionInfo``.
@available(*, deprecated, renamed: "BAAppExtensionInfo")
public typealias BAApplicationExtensionInfo = BAAppExtensionInfo

extension BADownloadManager {
    /// Queues a download; the spelling of 2022.
    ///
    /// - Parameter download: The download.
    /// - Throws: What ``scheduleDownload(_:)`` throws.
    @available(*, deprecated, renamed: "scheduleDownload(_:)")
    public func schedule(_ download: BADownload) throws { try scheduleDownload(download) }

    /// Asks for exclusive control; the spelling of 2022.
    ///
    /// - Parameter performHandler: Called once on the framework's queue: without an error while this process has exclusive
    ///   control, else with it.
    @available(*, deprecated, message: "use the asynchronous withExclusiveControl(_:)")
    public func withExclusiveControl(_ performHandler: @escaping ((any Error)?) -> Void) {
        withExclusiveControl { (_: Bool, error: (any Error)?) in performHandler(error) }
    }
}

extension BADownload {
    /// Why the download failed, in a process that was told; `nil` before. The spelling of 2022.
    @available(*, deprecated, message: "the callbacks for failed downloads carry the error")
    public var error: (any Error)? { life.failure }
}
