// Challenges of servers: from the wire to Foundation's types, to the app's code, and the answer back.

internal import AssetsOS
internal import AssetsWire
internal import Dispatch
internal import Foundation
internal import FoundationNetworking

/// What the app's code said about a challenge.
struct ChallengeAnswer: Sendable {
    /// There was nobody to ask.
    static let notImplemented = ChallengeAnswer(
        disposition: .performDefaultHandling, credential: nil, isImplemented: false)

    let disposition: URLSession.AuthChallengeDisposition
    let credential: URLCredential?
    /// False when the answer is that of a default body.
    let isImplemented: Bool

    /// As the service takes it.
    var word: String {
        guard isImplemented else { return WireDisposition.notImplemented }
        return switch disposition {
        case .useCredential: WireDisposition.useCredential
        case .performDefaultHandling: WireDisposition.performDefaultHandling
        case .cancelAuthenticationChallenge: WireDisposition.cancel
        case .rejectProtectionSpace: WireDisposition.reject
        @unknown default: WireDisposition.performDefaultHandling
        }
    }

    /// The name and password that go with `.useCredential`, and with nothing else.
    private var used: URLCredential? {
        isImplemented && disposition == .useCredential ? credential : nil
    }

    var user: String? { used?.user }
    var password: String? { used?.password }

    /// Other downloads may have it too. What Foundation would keep for good is kept as long as the service runs: nothing
    /// of a credential is ever written.
    var keep: Bool { used.map { $0.persistence != .none } ?? false }
}

extension WireChallenge {
    /// The challenge as apps know it. Its sender takes answers that nobody hears: the answer is what the method returns or
    /// its completion handler is given, as for a `URLSession`.
    var authenticationChallenge: URLAuthenticationChallenge {
        let isSecure = scheme == "https"
        let space = URLProtectionSpace(
            host: host, port: Int(clamping: port),
            protocol: isSecure ? NSURLProtectionSpaceHTTPS : NSURLProtectionSpaceHTTP, realm: realm,
            authenticationMethod: method == "digest"
                ? NSURLAuthenticationMethodHTTPDigest : NSURLAuthenticationMethodHTTPBasic)
        let response = URL(string: url).flatMap {
            HTTPURLResponse(
                url: $0, statusCode: 401, httpVersion: "HTTP/1.1", headerFields: ["WWW-Authenticate": offer])
        }
        let proposed = proposedUser.map {
            URLCredential(user: $0, password: proposedPassword ?? "", persistence: .none)
        }
        return URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: proposed, previousFailureCount: Int(clamping: previousFailures),
            failureResponse: response, error: nil, sender: DeafSender())
    }
}

/// The sender of every challenge.
private final class DeafSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}

/// Calls the delegate about challenges.
///
/// It lives on the queue of callbacks: the delegate's method begins there, and other messages come while it waits.
actor ChallengeCaller {
    private let executor: QueueExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(on queue: DispatchQueue) { executor = QueueExecutor(queue) }

    /// Asks the delegate, and answers once it has.
    func ask(
        _ delegate: HandedOver<any BADownloadManagerDelegate>, _ challenge: WireChallenge, of download: BADownload
    ) async -> ChallengeAnswer {
        let made = challenge.authenticationChallenge
        return await MissingMethod.answer(of: delegate.value) {
            await delegate.value.download(download, didReceive: made)
        }
    }
}

/// Runs an actor on a serial queue.
private final class QueueExecutor: SerialExecutor {
    private let queue: DispatchQueue

    init(_ queue: DispatchQueue) { self.queue = queue }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}

extension ManagerSession {
    /// Hands a challenge to the delegate and its answer to the service. Never blocks.
    func take(_ challenge: WireChallenge, of event: ManagerInterface.Event, session: String) {
        guard let wire = event.download else { return }
        let download = DownloadRegistry.shared.object(ofEvent: wire)
        let number = event.number
        callbacks.ask(challenge, of: download) { answer in
            self.answers.async {
                // A service that died has another question after it came back; there is nobody to tell.
                _ = try? self.requests.call(
                    ManagerInterface.AnswerChallenge.self,
                    ManagerInterface.AnswerChallenge.Parameters(
                        session: session, number: number, disposition: answer.word, user: answer.user,
                        password: answer.password, keep: answer.keep))
            }
        }
        if callbacks.delegate == nil { delegateChanged() }
    }
}

extension ExtensionHost {
    /// Asks the extension on the main actor and sends its answer.
    func challenged(_ parameters: ExtensionInterface.Challenged.Parameters) {
        let download = DownloadRegistry.shared.object(ofEvent: parameters.download)
        let challenge = parameters.challenge.authenticationChallenge
        Task { @MainActor in
            let answer = await MissingMethod.answer {
                await instance.backgroundDownload(download, didReceive: challenge)
            }
            reply(
                ExtensionInterface.Challenged.self,
                ExtensionInterface.Challenged.Reply(
                    disposition: answer.word, user: answer.user, password: answer.password, keep: answer.keep))
        }
    }
}
