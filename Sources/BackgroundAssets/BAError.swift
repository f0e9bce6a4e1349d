// Errors of the framework, and how those of the wire become them.

internal import AssetsClient
internal import AssetsWire
internal import Foundation
internal import FoundationNetworking

/// The domain of the errors that the framework throws. Their codes are those of ``BAErrorCode``.
///
/// Apple's first version had another text; the one here is that of its later versions. Compare with this constant.
public let BAErrorDomain: String = "BAErrorDomain"

/// What went wrong.
///
/// Errors arrive as `NSError` with the domain ``BAErrorDomain``; this type is not an `Error` itself. Their
/// `localizedFailureReason` names the thing and says what happened, their `localizedRecoverySuggestion` what to do, where
/// there is something to do. What the transport could not do arrives as `URLError` with the usual codes.
///
/// Later versions may have more codes: give your `switch` an `@unknown default`.
@nonexhaustive
public enum BAErrorCode: Int, Hashable, Sendable, BitwiseCopyable {
    /// None of the codes fits. The underlying error says more.
    case downloadInvalid = 0
    /// The extension may not make this call.
    case callFromExtensionNotAllowed = 50
    /// A process that is not active may not make this call.
    case callFromInactiveProcessNotAllowed = 51
    /// The service does not know the caller as an app or extension, or does not accept it now.
    case callerConnectionNotAccepted = 55
    /// The connection to the service could not be made, or broke.
    case callerConnectionInvalid = 56
    /// A download of that identifier is queued already.
    case downloadAlreadyScheduled = 100
    /// The download is not queued.
    case downloadNotScheduled = 101
    /// The download could not be started.
    case downloadFailedToStart = 102
    /// The download has failed already; make a new one.
    case downloadAlreadyFailed = 103
    /// An essential download is not permitted here.
    case downloadEssentialDownloadNotPermitted = 109
    /// The user's settings forbid background downloads now.
    case downloadBackgroundActivityProhibited = 111
    /// The download would pass the allowance that holds until the app is first launched.
    case downloadWouldExceedAllowance = 112
    /// There is no such download.
    case downloadDoesNotExist = 113
    /// Until the app is first launched its allow list does not admit the host.
    case sessionDownloadDisallowedByDomain = 202
    /// The allowance that holds until the app is first launched is used up.
    case sessionDownloadDisallowedByAllowance = 203
    /// The download passed the allowance while it ran.
    case sessionDownloadAllowanceExceeded = 204
    /// The download is not permitted before the app was launched.
    case sessionDownloadNotPermittedBeforeAppLaunch = 206
}

/// Makes the errors that leave the framework.
enum AssetsFailure {
    /// Domain of an underlying error: what the service says that ``BAErrorCode`` has no word for.
    static let serviceDomain = "org.backgroundassets.service"

    static func error(
        _ code: BAErrorCode, _ reason: String, remedy: String = "", underlying: NSError? = nil
    ) -> NSError {
        var information: [String: Any] = [NSLocalizedFailureReasonErrorKey: reason]
        if !remedy.isEmpty { information[NSLocalizedRecoverySuggestionErrorKey] = remedy }
        if let underlying { information[NSUnderlyingErrorKey] = underlying }
        return NSError(domain: BAErrorDomain, code: code.rawValue, userInfo: information)
    }

    /// What a call to the service threw, as callers of the framework see it.
    ///
    /// - Parameter otherwise: The code for what has none.
    static func error(_ error: any Error, otherwise: BAErrorCode = .downloadInvalid) -> NSError {
        guard let failure = error as? ClientError else { return error as NSError }
        switch failure.kind {
        case .refused(let code, let reason, let remedy):
            return Self.error(code, reason, remedy: remedy, otherwise: otherwise)
        case .unreachable(let reason):
            return Self.error(.callerConnectionInvalid, reason)
        case .violation(let reason):
            return Self.error(.callerConnectionInvalid, "the service broke the protocol: \(reason)")
        }
    }

    /// Why a download failed: a `URLError` where the transport failed, else an error of ``BAErrorDomain``.
    static func error(_ failure: WireFailure, url: String) -> any Error {
        let code = Int(clamping: failure.code)
        guard failure.domain == NSURLErrorDomain else {
            return error(code, failure.reason, remedy: "", otherwise: .downloadInvalid)
        }
        var information: [String: Any] = [NSLocalizedFailureReasonErrorKey: failure.reason]
        if let url = URL(string: url) { information[NSURLErrorFailingURLErrorKey] = url }
        guard let known = URLError.Code(rawValue: code) else {
            return NSError(domain: NSURLErrorDomain, code: code, userInfo: information)
        }
        return URLError(known, userInfo: information)
    }

    /// A refusal with the service's number for it.
    private static func error(_ code: Int, _ reason: String, remedy: String, otherwise: BAErrorCode) -> NSError {
        if let known = BAErrorCode(rawValue: code) { return error(known, reason, remedy: remedy) }
        return error(
            otherwise, reason, remedy: remedy, underlying: NSError(domain: Self.serviceDomain, code: code))
    }
}
