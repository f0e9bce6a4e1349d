// One session, as the manifest on the server describes it.
public import BackgroundAssets

/// A recorded session that can be kept on this machine.
public struct Session: Codable, Hashable, Identifiable, Sendable {
    /// Names the session, and its download, for good.
    public let id: String
    /// What people call it.
    public let title: String
    /// The name of the file on this machine.
    public let fileName: String
    /// Bytes of the file. An essential download of another size fails.
    public let size: Int64
    /// The digest of the file in hexadecimal digits.
    public let sha256: String
    /// Whether the app is of no use without it.
    public let essential: Bool
    /// Where the server has the file.
    public let url: URL

    /// Makes a session; ``Manifest`` checks the values.
    public init(
        id: String, title: String, fileName: String, size: Int64, sha256: String, essential: Bool, url: URL
    ) {
        self.id = id
        self.title = title
        self.fileName = fileName
        self.size = size
        self.sha256 = sha256
        self.essential = essential
        self.url = url
    }
}

extension Session {
    /// The download of this session.
    ///
    /// - Parameters:
    ///   - essential: Whether the app's installation waits for it. Only the extension may ask for that, when the app is
    ///     installed or updated.
    ///   - priority: How urgent it is among the app's downloads.
    public func makeDownload(essential: Bool, priority: BADownload.Priority = .default) -> BAURLDownload {
        BAURLDownload(
            identifier: id, request: URLRequest(url: url), essential: essential, fileSize: Int(size),
            applicationGroupIdentifier: SessionLibrary.groupIdentifier, priority: priority)
    }
}
