// What the extension is asked, and what it is told with the question.

public import Foundation

/// The occasion on which an extension is asked for downloads.
///
/// Later versions may have more occasions: give your `switch` an `@unknown default` that returns nothing.
@nonexhaustive
public enum BAContentRequest: Int, Hashable, Sendable, BitwiseCopyable {
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
/// The system makes it. Both sizes are bytes as they are transferred, that is, compressed where the server compresses. They
/// count down from the allowances of the app's property list with everything that was admitted.
///
/// `@unchecked Sendable`: both properties are constants.
open class BAAppExtensionInfo: NSObject, NSSecureCoding, @unchecked Sendable {
    /// Bytes that non-essential downloads may still transfer before the app is first launched; `nil` when nothing is
    /// restricted, because the app was launched.
    public let restrictedDownloadSizeRemaining: Int?

    /// Bytes that essential downloads may still transfer before the app is first launched; `nil` when nothing is
    /// restricted, because the app was launched.
    public let restrictedEssentialDownloadSizeRemaining: Int?

    /// Not available: the system makes it.
    @available(*, unavailable, message: "the system makes it")
    public override init() { preconditionFailure("BAAppExtensionInfo.init() is unavailable") }

    init(remaining: Int?, essentialRemaining: Int?) {
        restrictedDownloadSizeRemaining = remaining
        restrictedEssentialDownloadSizeRemaining = essentialRemaining
        super.init()
    }

    /// Both sizes in bytes, or that there is no restriction.
    open override var description: String {
        func shown(_ size: Int?) -> String { size.map { "\($0) bytes" } ?? "unrestricted" }
        return "<\(type(of: self)) remaining: \(shown(restrictedDownloadSizeRemaining)), "
            + "essential remaining: \(shown(restrictedEssentialDownloadSizeRemaining))>"
    }

    // MARK: Coding

    private static let remainingKey = "restrictedDownloadSizeRemaining"
    private static let essentialRemainingKey = "restrictedEssentialDownloadSizeRemaining"

    /// Whether it can be archived securely: it can.
    open class var supportsSecureCoding: Bool { true }

    /// Writes both sizes into a keyed archive; other archives get nothing.
    open func encode(with coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return }
        if let size = restrictedDownloadSizeRemaining { coder.encode(Int64(size), forKey: Self.remainingKey) }
        if let size = restrictedEssentialDownloadSizeRemaining {
            coder.encode(Int64(size), forKey: Self.essentialRemainingKey)
        }
    }

    /// Reads both sizes; `nil` from an archive without keys.
    public required init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return nil }
        func size(_ key: String) -> Int? {
            coder.containsValue(forKey: key) ? Int(clamping: coder.decodeInt64(forKey: key)) : nil
        }
        restrictedDownloadSizeRemaining = size(Self.remainingKey)
        restrictedEssentialDownloadSizeRemaining = size(Self.essentialRemainingKey)
        super.init()
    }
}
