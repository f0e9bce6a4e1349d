// Which methods of a delegate count as implemented.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

/// A delegate in front of another one that lacks the method.
private final class Proxy: NSObject, BADownloadManagerDelegate, Sendable {
    private let other = Half()
    func download(_ download: BADownload, failedWithError error: any Error) {
        other.download(download, failedWithError: error)
    }
    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        self.download(download, failedWithError: CocoaError(.fileNoSuchFile))
        downloadDidPause(download)
    }
}

/// A class to inherit the conformance from.
///
/// `@unchecked Sendable`: nothing is stored here.
private class Base: NSObject, BADownloadManagerDelegate, @unchecked Sendable {
    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {}
}
/// Overrides what its base class has, and has one method that the base class lacks.
///
/// `@unchecked Sendable`: the one stored property is Sendable.
private final class Derived: Base, @unchecked Sendable {
    let heard = EventLog<String>()
    override func download(_ download: BADownload, finishedWithFileURL fileURL: URL) { heard.add("finished") }
    func download(_ download: BADownload, failedWithError error: any Error) { heard.add("failed") }
}

/// Answers challenges, in one of the two ways.
private final class Handler: NSObject, BADownloadManagerDelegate {
    func download(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        completionHandler(.useCredential, URLCredential(user: "a", password: "b", persistence: .none))
        completionHandler(.cancelAuthenticationChallenge, nil)
    }
}
private final class Asynchronous: NSObject, BADownloadManagerDelegate {
    func download(_ download: BADownload, didReceive challenge: URLAuthenticationChallenge) async -> (
        URLSession.AuthChallengeDisposition, URLCredential?
    ) {
        await Task.yield()
        return (.rejectProtectionSpace, nil)
    }
}

/// Nobody takes what is sent to it.
private final class NoSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}

@Suite(.timeLimit(.minutes(10))) struct OptionalMethodTests {
    let service = FakeService()
    let manager: BADownloadManager

    init() { manager = BADownloadManager(connector: service) }

    /// What the service is answered for a failed and a finished download.
    private func answers(of delegate: any BADownloadManagerDelegate & Sendable) async throws -> [Asked] {
        manager.delegate = delegate
        await service.asked.wait { $0.contains(.delegate("s1", true)) }
        service.send(
            .init(
                kind: "failed", number: 1, download: makeWire(state: -1),
                failure: .init(domain: "BAErrorDomain", code: 204, reason: "")),
            .init(kind: "finished", number: 2, download: makeWire(state: 3), path: "/f"))
        let asked = await service.asked.wait { asked in
            asked.filter { if case .answer = $0 { true } else { false } }.count == 2
        }
        withExtendedLifetime(delegate) {}
        return asked.filter { if case .answer = $0 { true } else { false } }
    }

    @Test("A delegate that passes a message on has handled it, whatever the other one lacks")
    func proxy() async throws {
        #expect(try await answers(of: Proxy()) == [.answer("s1", 1, true), .answer("s1", 2, true)])
    }

    @Test("What only a subclass of the conforming class has is not seen; what it overrides is")
    func subclass() async throws {
        let delegate = Derived()
        #expect(
            try await answers(of: delegate)
                == [.answer("s1", 1, false), .answer("s1", 2, true)])
        #expect(delegate.heard.entries == ["finished"])
        #expect(Diagnostics.inheritedConformance(of: delegate)?.hasSuffix("Base") == true)
    }

    @Test("A challenge reaches whichever form the delegate has, and says when it has none")
    func challenges() async {
        let space = URLProtectionSpace(
            host: "assets.example.com", port: 443, protocol: "https", realm: "assets",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        func ask(_ delegate: any BADownloadManagerDelegate) async -> (URLSession.AuthChallengeDisposition, Bool) {
            let challenge = URLAuthenticationChallenge(
                protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
                error: nil, sender: NoSender())
            let download = makeDownload()
            let (answer, isImplemented) = await MissingMethod.checking(.challenge, of: delegate) {
                await delegate.download(download, didReceive: challenge)
            }
            return (answer.0, isImplemented)
        }
        #expect(await ask(Handler()) == (.useCredential, true))
        #expect(await ask(Asynchronous()) == (.rejectProtectionSpace, true))
        #expect(await ask(Half()) == (.performDefaultHandling, false))
    }
}
