// What is to be fetched, as app, extension or installer said it.

/// One HTTP header field of a request.
package struct HeaderField: Hashable, Sendable, Codable {
    package var name: String
    package var value: String
    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// The values of one download that never change after it was made.
package struct DownloadRequest: Hashable, Sendable {
    /// Chosen by the app; one live download of an app has it at a time.
    package var identifier: String
    /// A UUID chosen by the framework.
    package var uniqueIdentifier: String
    package var url: String
    package var method: String
    package var headers: [HeaderField]
    package var body: [UInt8]
    /// The app group in whose container the file ends.
    package var group: String
    package var isEssential: Bool
    /// Bytes; 0 means unknown.
    package var size: Int64
    package var priority: Int
    package var kind: Kind
    /// The SHA-256 that the app declared; another number of bytes than 32 is refused when it is scheduled.
    package var sha256: [UInt8]?

    /// Who the download is for.
    package enum Kind: String, Hashable, Sendable, Codable {
        /// Asked for by app or extension.
        case url
        /// The manifest named by BAManifestURL.
        case manifest
        /// The archive of an app that is being installed.
        case archive
    }

    package init(
        identifier: String, uniqueIdentifier: String, url: String, method: String = "GET", headers: [HeaderField] = [],
        body: [UInt8] = [], group: String, isEssential: Bool = false, size: Int64 = 0, priority: Int = 0,
        kind: Kind = .url, sha256: [UInt8]? = nil
    ) {
        self.identifier = identifier
        self.uniqueIdentifier = uniqueIdentifier
        self.url = url
        self.method = method
        self.headers = headers
        self.body = body
        self.group = group
        self.isEssential = isEssential
        self.size = size
        self.priority = priority
        self.kind = kind
        self.sha256 = sha256
    }

    /// What the app says that the file comes to.
    package var digest: ContentDigest? { sha256.flatMap { ContentDigest(.sha256, $0) } }
}

/// How a transfer is treated.
package enum TransferClass: Int, Hashable, Sendable, Comparable, CaseIterable, CustomStringConvertible {
    /// At a moment the device picks.
    case background = 0
    /// At once.
    case foreground = 1
    /// Foreground inside an install or update.
    case essential = 2

    package static func < (left: TransferClass, right: TransferClass) -> Bool { left.rawValue < right.rawValue }

    package var description: String {
        switch self {
        case .background: "background"
        case .foreground: "foreground"
        case .essential: "essential"
        }
    }
}

/// What the extension is asked to answer.
package enum ContentRequest: Int, Hashable, Sendable, CaseIterable {
    case install = 1
    case update = 2
    case periodic = 3
    case languageChange = 4
}
