// The download of a URL: the one kind that apps make.

public import Foundation
public import FoundationNetworking

/// The download of a file that a web server has.
///
/// Making one never fails and never traps. What is wrong with it (a scheme other than https, a group the app is not
/// entitled to, a negative size, an empty identifier or one of more than 1024 bytes of UTF-8, a body that is a stream, a
/// SHA-256 of another length than 32 bytes) is said by the error of the call that schedules it.
open class BAURLDownload: BADownload, @unchecked Sendable {
    /// Makes a download.
    ///
    /// - Parameters:
    ///   - identifier: A name of the app's choice. One download of the app has it at a time.
    ///   - request: The https request to send, with its method, header fields and body.
    ///   - essential: Whether the app's installation or update waits for it. Essential downloads can only be returned
    ///     by the extension, for an install or update request.
    ///   - fileSize: The exact size of the file in bytes; 0 means unknown. An essential download whose file has another
    ///     size fails.
    ///   - applicationGroupIdentifier: The app group in whose container the file arrives.
    ///   - priority: How urgent it is among the app's downloads.
    public init(
        identifier: String, request: URLRequest, essential: Bool, fileSize: Int, applicationGroupIdentifier: String,
        priority: BADownload.Priority
    ) {
        let content = DownloadContent(
            identifier: identifier, request: request, group: applicationGroupIdentifier, isEssential: essential,
            size: Int64(fileSize), priority: priority.rawValue)
        super.init(content: content, life: DownloadLife(state: .created))
        DownloadRegistry.shared.remember(self)
    }

    /// Makes a download of a file whose SHA-256 is known. Not in Apple's framework.
    ///
    /// The file is handed over only if its bytes come to this; another file fails the download, whether it is essential or
    /// not, and nobody gets to see it. A server that names no version of its files (neither `ETag` nor `Last-Modified`) can
    /// be gone on with after an interruption because of it.
    ///
    /// - Parameters:
    ///   - identifier: A name of the app's choice. One download of the app has it at a time.
    ///   - request: The https request to send, with its method, header fields and body.
    ///   - essential: Whether the app's installation or update waits for it.
    ///   - fileSize: The exact size of the file in bytes; 0 means unknown, which an essential download may not have.
    ///   - applicationGroupIdentifier: The app group in whose container the file arrives.
    ///   - priority: How urgent it is among the app's downloads.
    ///   - sha256: The 32 bytes of the file's SHA-256, not their hexadecimal digits. With CryptoKit or swift-crypto:
    ///     `Data(SHA256.hash(data: content))`.
    public init(
        identifier: String, request: URLRequest, essential: Bool, fileSize: Int, applicationGroupIdentifier: String,
        priority: BADownload.Priority = .default, sha256: Data
    ) {
        let content = DownloadContent(
            identifier: identifier, request: request, group: applicationGroupIdentifier, isEssential: essential,
            size: Int64(fileSize), priority: priority.rawValue, sha256: [UInt8](sha256))
        super.init(content: content, life: DownloadLife(state: .created))
        DownloadRegistry.shared.remember(self)
    }

    /// Makes a download that is not essential and has the default priority.
    ///
    /// - Parameters:
    ///   - identifier: A name of the app's choice. One download of the app has it at a time.
    ///   - request: The https request to send.
    ///   - fileSize: The exact size of the file in bytes; 0 means unknown. A file of another size is a warning in the
    ///     device's journal: Apple's headers say that such a download fails, its samples pass 0.
    ///   - applicationGroupIdentifier: The app group in whose container the file arrives.
    public convenience init(
        identifier: String, request: URLRequest, fileSize: Int, applicationGroupIdentifier: String
    ) {
        self.init(
            identifier: identifier, request: request, essential: false, fileSize: fileSize,
            applicationGroupIdentifier: applicationGroupIdentifier, priority: .default)
    }

    /// Makes a download that is not essential, of unknown size, with the default priority.
    ///
    /// - Parameters:
    ///   - identifier: A name of the app's choice. One download of the app has it at a time.
    ///   - request: The https request to send.
    ///   - applicationGroupIdentifier: The app group in whose container the file arrives.
    @available(
        *, deprecated, message: "say the file's size: init(identifier:request:fileSize:applicationGroupIdentifier:)"
    )
    public convenience init(identifier: String, request: URLRequest, applicationGroupIdentifier: String) {
        self.init(
            identifier: identifier, request: request, essential: false, fileSize: 0,
            applicationGroupIdentifier: applicationGroupIdentifier, priority: .default)
    }

    /// Makes a download that is not essential, of unknown size.
    ///
    /// - Parameters:
    ///   - identifier: A name of the app's choice. One download of the app has it at a time.
    ///   - request: The https request to send.
    ///   - applicationGroupIdentifier: The app group in whose container the file arrives.
    ///   - priority: How urgent it is among the app's downloads.
    @available(
        *, deprecated,
        message: "say the file's size: init(identifier:request:essential:fileSize:applicationGroupIdentifier:priority:)"
    )
    public convenience init(
        identifier: String, request: URLRequest, applicationGroupIdentifier: String, priority: BADownload.Priority
    ) {
        self.init(
            identifier: identifier, request: request, essential: false, fileSize: 0,
            applicationGroupIdentifier: applicationGroupIdentifier, priority: priority)
    }

    /// Makes the object of a download that the service knows.
    override init(content: DownloadContent, life: DownloadLife) {
        super.init(content: content, life: life)
    }

    /// Reads an archived download; `nil` when the archive does not hold one.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }
}

/// The fetch of the manifest that the app's property list names.
///
/// Its failure reaches the extension like that of any download. The type is not public, so a check for exactly
/// `BAURLDownload` tells them apart.
///
/// `@unchecked Sendable`: adds nothing to its superclass.
final class BAManifestDownload: BAURLDownload, @unchecked Sendable {}
