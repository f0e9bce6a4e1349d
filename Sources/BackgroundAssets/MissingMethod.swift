// How the framework learns that a method is not implemented: there are no optional methods on Linux, so the default
// bodies leave a mark that the framework checks after its call.

internal import AssetsOS
internal import FoundationNetworking

/// A method that an app or extension may leave out, and whose absence the service has to know of.
enum OptionalMethod: Sendable {
    case contentRequest
    case applicationEvent
    case challenge
    case progress
    case progressOf2022
    case failed
    case finished
}

/// The mark of a default body, for one call of the framework.
///
/// It tells one method of one object. An app's method may itself call other methods that it leaves to their defaults, or
/// pass the message on to another object: it is implemented all the same.
final class MissingMethod: Sendable {
    @TaskLocal private static var current: MissingMethod?

    private let method: OptionalMethod
    private let receiver: ObjectIdentifier?
    private let noted = Guarded(false)

    private init(_ method: OptionalMethod, of receiver: AnyObject?) {
        self.method = method
        self.receiver = receiver.map(ObjectIdentifier.init)
    }

    private var isNoted: Bool { noted.withLock { $0 } }

    /// Called by default bodies.
    ///
    /// - Parameter receiver: The delegate; `nil` for an extension, of which a process has one.
    static func note(_ method: OptionalMethod, of receiver: AnyObject? = nil) {
        guard let current, current.method == method, current.receiver == receiver.map(ObjectIdentifier.init) else {
            return
        }
        current.noted.withLock { $0 = true }
    }

    /// Runs a call and says whether it reached an implementation.
    ///
    /// - Parameter receiver: The delegate that is called; `nil` for the extension.
    static func isImplemented(
        _ method: OptionalMethod, of receiver: AnyObject? = nil, _ call: () -> Void
    ) -> Bool {
        let mark = MissingMethod(method, of: receiver)
        $current.withValue(mark, operation: call)
        return !mark.isNoted
    }

    /// Runs an asynchronous call, and says with its result whether it reached an implementation.
    ///
    /// - Parameter receiver: The delegate that is called; `nil` for the extension.
    nonisolated(nonsending) static func checking<Result>(
        _ method: OptionalMethod, of receiver: AnyObject? = nil,
        _ call: nonisolated(nonsending) () async -> Result
    ) async -> (result: Result, isImplemented: Bool) {
        let mark = MissingMethod(method, of: receiver)
        let result = await $current.withValue(mark, operation: call)
        return (result, !mark.isNoted)
    }

    /// Runs a method that answers a challenge; the answer says whether it was an implementation's.
    nonisolated(nonsending) static func answer(
        of receiver: AnyObject? = nil, _ call: nonisolated(nonsending) () async -> OneAnswer.Answer
    ) async -> ChallengeAnswer {
        let (answer, isImplemented) = await checking(.challenge, of: receiver, call)
        return ChallengeAnswer(disposition: answer.0, credential: answer.1, isImplemented: isImplemented)
    }

    /// The mark of the running call, for a default body that ends later.
    static var mark: MissingMethod? { current }

    func note() { noted.withLock { $0 = true } }
}

/// Resumes a continuation with the first answer; an app may call a completion handler twice, or drop it, which counts as
/// having no method.
final class OneAnswer: Sendable {
    typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)

    private let continuation: Guarded<CheckedContinuation<Answer, Never>?>
    private let mark = MissingMethod.mark

    init(_ continuation: CheckedContinuation<Answer, Never>) { self.continuation = Guarded(continuation) }

    deinit {
        guard let left = continuation.withLock({ $0 }) else { return }
        mark?.note()
        left.resume(returning: (.performDefaultHandling, nil))
    }

    func resume(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
        let first = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        first?.resume(returning: (disposition, credential))
    }
}
