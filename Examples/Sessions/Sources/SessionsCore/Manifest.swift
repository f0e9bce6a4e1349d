// The list of sessions that the server publishes.
public import BackgroundAssets

/// Every session there is, in the order of the server.
///
/// A manifest comes over the network: what it names becomes names of files and text on a terminal, so every value is checked
/// before anything is made of it.
public struct Manifest: Codable, Hashable, Sendable {
    /// The sessions, no two with the same id or file name.
    public let sessions: [Session]

    /// Bytes of a manifest. The extension reads it into its little memory.
    public static let sizeMax = 1 << 20
    /// Sessions in one manifest.
    public static let sessionsMax = 1000
    /// Bytes of one session's file: 1 TiB, far above any video.
    public static let fileSizeMax: Int64 = 1 << 40
    /// Bytes of identifiers, titles and file names; a file system takes no longer name.
    static let textMax = 255

    /// Makes a manifest and checks it.
    public init(sessions: [Session]) throws(ManifestError) {
        self.sessions = sessions
        try check()
    }

    /// Decodes a manifest and checks it.
    public init(json: Data) throws(ManifestError) {
        guard json.count <= Self.sizeMax else { throw ManifestError("it is larger than \(Self.sizeMax) bytes") }
        do {
            self = try JSONDecoder().decode(Manifest.self, from: json)
        } catch {
            throw ManifestError("it is no list of sessions in JSON")
        }
        try check()
    }

    /// The session that a download belongs to.
    public subscript(id: String) -> Session? { sessions.first { $0.id == id } }

    private func check() throws(ManifestError) {
        guard sessions.count <= Self.sessionsMax else {
            throw ManifestError("it has more than \(Self.sessionsMax) sessions")
        }
        var ids: Set<String> = []
        var fileNames: Set<String> = []
        for (index, session) in sessions.enumerated() {
            if let problem = session.problem { throw ManifestError("session \(index + 1) \(problem)") }
            guard ids.insert(session.id).inserted else {
                throw ManifestError("session \(index + 1) has the id of another one")
            }
            guard fileNames.insert(session.fileName).inserted else {
                throw ManifestError("session \(index + 1) has the file name of another one")
            }
        }
    }
}

/// Why a manifest cannot be used.
public struct ManifestError: LocalizedError, Hashable {
    /// The reason, to follow a colon.
    public let reason: String

    init(_ reason: String) { self.reason = reason }

    /// The reason as a sentence.
    public var failureReason: String? { "the manifest cannot be used: \(reason)" }
}

extension Session {
    /// What is wrong with the values; nil when they can be used.
    fileprivate var problem: String? {
        if !Self.isName(id) { return "has an id that is not made of letters, digits and \".-_\"" }
        if !Self.isName(fileName) { return "has a file name that is not made of letters, digits and \".-_\"" }
        if title.isEmpty || title.utf8.count > Manifest.textMax || !Self.isShowable(title) {
            return "has a title that cannot be shown"
        }
        if size < 1 || size > Manifest.fileSizeMax { return "has a size that no session has" }
        if sha256.utf8.count != 64 || !sha256.allSatisfy(\.isHexDigit) { return "has no SHA-256 digest" }
        if url.scheme?.lowercased() != "https" || url.host?.isEmpty != false { return "has no https address" }
        return nil
    }

    /// Whether a text is safe as the name of a file. A leading dot would hide it, or name a folder.
    static func isName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= Manifest.textMax && !text.hasPrefix(".")
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// Control characters would steer the terminal; those of direction would turn the rest of the line around.
    private static func isShowable(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .surrogate: false
            default: true
            }
        }
    }
}
