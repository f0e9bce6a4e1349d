// A download as apps and extensions see it.

internal import AssetsWire
public import Foundation

/// An asset that the system fetches on behalf of an app.
///
/// This class is the common base; make a ``BAURLDownload``. A process has one object for each
/// ``uniqueIdentifier``: the object you scheduled is the one that callbacks and ``BADownloadManager/currentDownloads``
/// hand back for as long as you hold it. Two downloads are equal when their unique identifiers are.
///
/// `@unchecked Sendable`: every stored property is a constant of a Sendable type or guards itself with a lock.
open class BADownload: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// Where a download stands.
    ///
    /// Later versions may have more states: give your `switch` an `@unknown default`.
    @nonexhaustive
    public enum State: Int, Hashable, Sendable, BitwiseCopyable {
        /// It ended without its file.
        case failed = -1
        /// It was made, and not scheduled yet.
        case created = 0
        /// It is queued.
        case waiting = 1
        /// Its bytes are being fetched.
        case downloading = 2
        /// Its file is complete.
        case finished = 3
    }

    /// How urgent a download is among those of its app. The higher one goes first, whatever the order of scheduling.
    ///
    /// Apple does not publish the values of ``min``, ``default`` and ``max``; do not store numbers that came from there.
    public struct Priority: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
        /// The number that orders priorities.
        public let rawValue: Int

        /// Makes a priority of that number. Numbers outside ``min`` and ``max`` count as the nearer of the two.
        public init(_ rawValue: Int) { self.rawValue = rawValue }

        /// Makes a priority of that number. Numbers outside ``min`` and ``max`` count as the nearer of the two.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The lowest priority.
        public static let min = Priority(-1000)
        /// The priority of a download for which none was given.
        public static let `default` = Priority(0)
        /// The highest priority.
        public static let max = Priority(1000)
    }

    /// What was asked for; never changes.
    let content: DownloadContent
    /// What has become of it.
    let life: DownloadLife

    /// Not available: make a ``BAURLDownload``.
    @available(*, unavailable, message: "make a BAURLDownload")
    public override init() { preconditionFailure("BADownload.init() is unavailable") }

    /// Makes a new download, or the object of one that the service knows.
    init(content: DownloadContent, life: DownloadLife) {
        self.content = content
        self.life = life
        super.init()
    }

    deinit { DownloadRegistry.shared.forget(self) }

    /// Where the download stands, as far as this process was told.
    ///
    /// It is up to date before a callback or reply that concerns the download.
    open var state: State { life.state }

    /// The name that the app chose. One download of an app has it at a time; it is free again before the message about the
    /// download's end is delivered.
    open var identifier: String { content.identifier }

    /// The name that the framework chose: a UUID.
    open var uniqueIdentifier: String { content.uniqueIdentifier }

    /// How urgent the download is among those of its app. The system counts a number outside ``Priority/min`` and
    /// ``Priority/max`` as the nearer of the two.
    open var priority: Priority { Priority(content.priority) }

    /// Whether the app's installation or update waits for this download.
    open var isEssential: Bool { content.isEssential }

    /// A download of the same content that is not essential.
    ///
    /// Use it to schedule an essential download anew after it failed. The result is a new download, not scheduled, with
    /// its own ``uniqueIdentifier``.
    ///
    /// - Returns: The new download, of the same class.
    open func removingEssential() -> Self {
        var copy = content
        copy.isEssential = false
        copy.uniqueIdentifier = UUID().uuidString
        guard let download = Self(coder: DownloadContentCoder(copy)) else {
            preconditionFailure("\(Self.self).init(coder:) refused the values of a download")
        }
        return download
    }

    // MARK: Equality

    /// Whether the other object stands for the same download.
    open override func isEqual(_ object: Any?) -> Bool {
        (object as? BADownload)?.content.uniqueIdentifier == content.uniqueIdentifier
    }

    /// The hash of the unique identifier.
    open override var hash: Int { content.uniqueIdentifier.hashValue }

    /// Identifier, unique identifier, state, and what of priority and essential is not the usual. The address is left out:
    /// it may hold credentials.
    open override var description: String {
        var text = "<\(type(of: self)) identifier: \(identifier), uniqueIdentifier: \(uniqueIdentifier)"
        text += ", state: \(state)"
        if isEssential { text += ", essential" }
        if priority != .default { text += ", priority: \(priority)" }
        return text + ">"
    }

    // MARK: Copying and coding

    /// The same object: what was asked for never changes, and a process has one object for a download.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Downloads can be archived securely.
    open class var supportsSecureCoding: Bool { true }

    /// Writes what was asked for, and where it stood.
    open func encode(with coder: NSCoder) {
        content.encode(with: coder, state: state)
    }

    /// Reads an archived download; `nil` when the archive does not hold one.
    public required init?(coder: NSCoder) {
        guard let (content, state) = DownloadContent.decode(from: coder) else { return nil }
        self.content = content
        self.life = DownloadRegistry.shared.life(of: content.uniqueIdentifier, state: state)
        super.init()
        DownloadRegistry.shared.remember(self)
    }
}

extension BADownload.Priority: CustomStringConvertible {
    /// The name of ``min``, ``default`` or ``max``, else the number.
    public var description: String {
        switch self {
        case .min: "min"
        case .default: "default"
        case .max: "max"
        default: "\(rawValue)"
        }
    }
}

extension BADownload.State: CustomStringConvertible {
    /// The name of the case.
    public var description: String {
        switch self {
        case .failed: "failed"
        case .created: "created"
        case .waiting: "waiting"
        case .downloading: "downloading"
        case .finished: "finished"
        }
    }
}
