// What the extension is asked, and what it is told with the question.

public import Foundation

/// The occasion on which an extension is asked for downloads.
@nonexhaustive
public enum BAContentRequest: Int, Sendable {
    /// The app is being installed.
    case install = 1
    /// The app is being updated.
    case update = 2
    /// Time has passed; there may be something new.
    case periodic = 3
    /// The user's preferred languages have changed.
    case languageChange = 4
}

/// What the system tells an extension beside a content request.
///
/// `@unchecked Sendable`: both properties are constants.
public final class BAAppExtensionInfo: NSObject, NSSecureCoding, @unchecked Sendable {
    /// Bytes that non-essential downloads may still transfer before the app is first launched; `nil` when nothing is
    /// restricted, because the app was launched.
    public let restrictedDownloadSizeRemaining: Int?

    /// Bytes that essential downloads may still transfer before the app is first launched; `nil` when nothing is
    /// restricted, because the app was launched.
    public let restrictedEssentialDownloadSizeRemaining: Int?

    @available(*, unavailable, message: "the system makes it")
    public override init() { preconditionFailure("BAAppExtensionInfo.init() is unavailable") }

    init(remaining: Int?, essentialRemaining: Int?) {
        restrictedDownloadSizeRemaining = remaining
        restrictedEssentialDownloadSizeRemaining = essentialRemaining
        super.init()
    }

    // MARK: Coding

    private static let remainingKey = "restrictedDownloadSizeRemaining"
    private static let essentialRemainingKey = "restrictedEssentialDownloadSizeRemaining"

    /// Can be archived securely.
    public static var supportsSecureCoding: Bool { true }

    /// Writes both sizes.
    public func encode(with coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return }
        if let size = restrictedDownloadSizeRemaining { coder.encode(Int64(size), forKey: Self.remainingKey) }
        if let size = restrictedEssentialDownloadSizeRemaining {
            coder.encode(Int64(size), forKey: Self.essentialRemainingKey)
        }
    }

    /// Reads both sizes.
    public init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return nil }
        func size(_ key: String) -> Int? {
            coder.containsValue(forKey: key) ? Int(clamping: coder.decodeInt64(forKey: key)) : nil
        }
        restrictedDownloadSizeRemaining = size(Self.remainingKey)
        restrictedEssentialDownloadSizeRemaining = size(Self.essentialRemainingKey)
        super.init()
    }
}
