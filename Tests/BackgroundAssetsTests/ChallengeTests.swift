// Challenges between the service and the app's code.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import ExtensionFoundation
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

private typealias Answer = ManagerInterface.AnswerChallenge.Parameters
private typealias Reply = ExtensionInterface.Challenged.Reply

private func challenge(_ method: String = "basic", failures: Int64 = 0) -> WireChallenge {
    WireChallenge(
        scheme: "https", host: "a.example", port: 8443, realm: "the room", method: method,
        url: "https://a.example:8443/x", offer: "Basic realm=\"the room\"", previousFailures: failures,
        proposedUser: failures > 0 ? "before" : nil, proposedPassword: failures > 0 ? "wrong" : nil)
}

/// A delegate that lacks the method.
private final class Deaf: NSObject, BADownloadManagerDelegate {}

/// Takes the handler away and uses it as a test wants, or drops it.
private final class WithHandler: NSObject, BADownloadManagerDelegate {
    typealias Use = @Sendable (URLAuthenticationChallenge, HandedOver<Handler>) -> Void
    typealias Handler = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    private let use: Use
    init(_ use: @escaping Use) { self.use = use }

    func download(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) { use(challenge, HandedOver(completionHandler)) }
}

private final class OnMain: NSObject, BADownloadManagerDelegate {
    @MainActor func download(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        MainActor.assertIsolated()
        await Task.yield()
        return (.useCredential, URLCredential(user: "u", password: "p", persistence: .permanent))
    }
}

private struct Knowing: BADownloaderExtension {
    func backgroundDownload(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        MainActor.assertIsolated()
        let space = challenge.protectionSpace
        guard challenge.previousFailureCount == 0 else { return (.cancelAuthenticationChallenge, nil) }
        return (.useCredential, URLCredential(user: space.host, password: space.realm ?? "", persistence: .none))
    }
}

private struct Empty: BADownloaderExtension {}

@Suite("Challenges in a process", .timeLimit(.minutes(10))) struct ChallengeTests {
    /// What the service is answered when it asks a delegate.
    private func answer(
        of delegate: any BADownloadManagerDelegate, _ challenge: WireChallenge = challenge()
    ) async throws -> Answer {
        let service = FakeService()
        let answers = EventLog<Answer>()
        service.on(ManagerInterface.AnswerChallenge.self) { call in
            answers.add(try call.parameters(ManagerInterface.AnswerChallenge.self))
            call.reply(ManagerInterface.AnswerChallenge.self, Nothing())
        }
        let manager = BADownloadManager(connector: service)
        defer { manager.session.close() }
        manager.delegate = delegate
        await service.asked.wait { $0.contains(.delegate("s1", true)) }
        service.send(.init(kind: "challenge", number: 7, download: makeWire(), challenge: challenge))
        let all = await answers.wait { !$0.isEmpty }
        withExtendedLifetime(delegate) {}
        return try #require(all.first)
    }

    @Test("A delegate without the method says so, and one that drops the handler counts as without")
    func withoutMethod() async throws {
        let deaf = try await answer(of: Deaf())
        #expect(deaf == Answer(session: "s1", number: 7, disposition: "not-implemented", keep: false))
        #expect(try await answer(of: WithHandler { _, _ in }).disposition == "not-implemented")
    }

    @Test("The first call of the handler counts, from whatever thread and however late")
    func handler() async throws {
        let reply = try await answer(
            of: WithHandler { challenge, handler in
                #expect(!Thread.isMainThread)
                let space = challenge.protectionSpace
                #expect(space.host == "a.example" && space.port == 8443 && space.realm == "the room")
                #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
                #expect(space.receivesCredentialSecurely && challenge.proposedCredential == nil)
                #expect((challenge.failureResponse as? HTTPURLResponse)?.statusCode == 401)
                Thread {
                    handler.value(.useCredential, URLCredential(user: "u", password: "p", persistence: .forSession))
                    handler.value(.cancelAuthenticationChallenge, nil)
                }.start()
            })
        #expect(
            reply
                == Answer(
                    session: "s1", number: 7, disposition: "use-credential", user: "u", password: "p", keep: true))
    }

    @Test("Failures are told with the credential that was refused last")
    func failures() async throws {
        _ = try await answer(
            of: WithHandler { challenge, handler in
                #expect(challenge.previousFailureCount == 3 && challenge.proposedCredential?.user == "before")
                #expect(challenge.proposedCredential?.password == "wrong")
                #expect(challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPDigest)
                handler.value(.performDefaultHandling, nil)
            }, challenge("digest", failures: 3))
    }

    @Test(
        "Every disposition has its word, and a credential goes with one only",
        arguments: [
            (URLSession.AuthChallengeDisposition.performDefaultHandling, "default"),
            (.cancelAuthenticationChallenge, "cancel"), (.rejectProtectionSpace, "reject"),
        ])
    func words(disposition: URLSession.AuthChallengeDisposition, word: String) async throws {
        let reply = try await answer(
            of: WithHandler { _, handler in
                handler.value(disposition, URLCredential(user: "u", password: "p", persistence: .forSession))
            })
        #expect(reply == Answer(session: "s1", number: 7, disposition: word, keep: false))
    }

    @Test("The asynchronous method is enough, also of a delegate of the main actor")
    func asynchronous() async throws {
        let reply = try await answer(of: OnMain())
        #expect(reply.user == "u" && reply.password == "p" && reply.keep)
    }

    @Test("The extension answers on the main actor, or has no method")
    func inExtension() async throws {
        func ask(_ instance: any BADownloaderExtension & Sendable, failures: Int64 = 0) async throws -> Reply {
            var pair = try UnixSocket.pair()
            let socket = pair.takeFirst()
            let connection = ServiceConnection(descriptor: pair.takeSecond())
            await ExtensionHost(instance, socket: socket) {}.start()
            return try await blocking {
                defer { connection.close() }
                return try connection.call(
                    ExtensionInterface.Challenged.self,
                    .init(download: makeWire(), challenge: challenge(failures: failures)))
            }
        }
        #expect(
            try await ask(Knowing())
                == Reply(disposition: "use-credential", user: "a.example", password: "the room", keep: false))
        #expect(try await ask(Knowing(), failures: 1) == Reply(disposition: "cancel", keep: false))
        #expect(try await ask(Empty()) == Reply(disposition: "not-implemented", keep: false))
    }
}
