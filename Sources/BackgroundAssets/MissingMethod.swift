// How the framework learns that a method is not implemented: there are no optional methods on Linux, so the default
// bodies leave a mark that the framework checks after its call.

internal import AssetsOS
internal import FoundationNetworking

/// The mark of a default body, for one call of the framework.
final class MissingMethod: Sendable {
    @TaskLocal private static var current: MissingMethod?

    private let noted = Guarded(false)

    /// Called by default bodies.
    static func note() { current?.noted.withLock { $0 = true } }

    /// Runs a call and says whether it reached an implementation.
    static func isImplemented(_ call: () -> Void) -> Bool {
        let mark = MissingMethod()
        $current.withValue(mark, operation: call)
        return !mark.noted.withLock { $0 }
    }
}

/// Resumes a continuation with the first answer; an app may call a completion handler twice.
final class OneAnswer: Sendable {
    typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)

    private let continuation: Guarded<CheckedContinuation<Answer, Never>?>

    init(_ continuation: CheckedContinuation<Answer, Never>) { self.continuation = Guarded(continuation) }

    func resume(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
        let first = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        first?.resume(returning: (disposition, credential))
    }
}
