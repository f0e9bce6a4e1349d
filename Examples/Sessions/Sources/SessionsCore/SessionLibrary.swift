// Where app and extension keep what they share.
public import BackgroundAssets

/// The sessions on this machine: a folder in the container of the app group.
public struct SessionLibrary: Sendable {
    /// The app group that both entitlements name.
    public static let groupIdentifier = "group.org.example.sessions"

    /// The latest manifest.
    let manifestURL: URL
    /// Sessions lie among the caches: the system may delete them when space is needed, and they can be fetched again.
    let sessionsURL: URL
    /// Files on their way from the system's hands to their final place.
    let incomingURL: URL

    /// The library in the app group's container; nil when this program is not entitled to the group.
    public init?() {
        guard
            let container = FileManager.default.containerURL(
                forSecurityApplicationGroupIdentifier: Self.groupIdentifier)
        else { return nil }
        self.init(container: container)
    }

    /// The library in a folder.
    public init(container: URL) {
        let caches = container.appending(path: "Library/Caches", directoryHint: .isDirectory)
        manifestURL = container.appending(path: "Library/Application Support/manifest.json")
        sessionsURL = caches.appending(path: "Sessions", directoryHint: .isDirectory)
        incomingURL = caches.appending(path: "Incoming", directoryHint: .isDirectory)
    }

    // MARK: Manifest

    /// The manifest that was saved last; nil when there is none yet.
    public func savedManifest() throws -> Manifest? {
        guard FileManager.default.fileExists(atPath: manifestURL.path) else { return nil }
        return try Self.readManifest(at: manifestURL)
    }

    /// Reads a manifest that may be anything.
    public static func readManifest(at url: URL) throws -> Manifest {
        let file = try FileHandle(forReadingFrom: url)
        defer { try? file.close() }
        // One byte more than allowed, so that a larger file is noticed without reading it.
        return try Manifest(json: file.read(upToCount: Manifest.sizeMax + 1) ?? Data())
    }

    /// Saves a manifest. Whoever reads at the same time sees the old one or the new one, so nobody needs exclusive control.
    public func save(_ manifest: Manifest) throws {
        try Self.makeFolder(manifestURL.deletingLastPathComponent())
        try JSONEncoder().encode(manifest).write(to: manifestURL, options: .atomic)
    }

    // MARK: Sessions

    /// The session on this machine; nil when it is not there, or not whole.
    public func local(_ session: Session) -> LocalSession? {
        LocalSession(session, at: sessionsURL.appending(path: session.fileName))
    }

    /// Sessions that are not on this machine.
    public func missing(of manifest: Manifest) -> [Session] { manifest.sessions.filter { local($0) == nil } }

    /// Moves a file that arrived to its final place. It stays one that the system may delete when space is needed.
    @discardableResult
    public func keep(_ file: URL, as session: Session) throws -> LocalSession {
        try Self.makeFolder(sessionsURL)
        let place = sessionsURL.appending(path: session.fileName)
        _ = try FileManager.default.replaceItemAt(place, withItemAt: file)
        guard let local = LocalSession(session, at: place) else {
            // The manifest has changed since the download began, or the server has another file than it says.
            try? FileManager.default.removeItem(at: place)
            throw LibraryError.wrongSize(session.id)
        }
        return local
    }

    /// Moves a file that the system lends for the time of a callback to a place where it stays until it is removed.
    ///
    /// A program that was ended in the middle is told of the file again: then it lies at that place already.
    public func takeOver(_ file: URL, of identifier: String) throws -> URL {
        guard Session.isName(identifier) else { throw LibraryError.unknown(identifier) }
        try Self.makeFolder(incomingURL)
        let place = incomingURL.appending(path: identifier)
        let files = FileManager.default
        if files.fileExists(atPath: file.path) || !files.fileExists(atPath: place.path) {
            _ = try files.replaceItemAt(place, withItemAt: file)
        }
        return place
    }

    private static func makeFolder(_ url: URL) throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }
}

/// A session whose file is on this machine.
public struct LocalSession: Hashable, Sendable {
    /// What the manifest says of it.
    public let session: Session
    /// Where it is.
    public let fileURL: URL

    /// Nil when there is no file of the session's size.
    init?(_ session: Session, at url: URL) {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: url.path),
            attributes[.type] as? FileAttributeType == .typeRegular,
            (attributes[.size] as? NSNumber)?.int64Value == session.size
        else { return nil }
        self.session = session
        fileURL = url
    }
}

/// Why a file did not become a session.
public enum LibraryError: LocalizedError, Hashable {
    /// It has not the size of the session of that id.
    case wrongSize(String)
    /// There can be no session of that id.
    case unknown(String)

    /// The reason as a sentence.
    public var failureReason: String? {
        switch self {
        case .wrongSize(let id): "the file of \(id) has not the size that the manifest says"
        case .unknown(let id): "\(id.debugDescription) is no session"
        }
    }
}
