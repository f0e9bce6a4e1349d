internal import AssetsOS
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

@Suite struct CallbackScopeTests {
    @Test("A callback that starts nothing ends when it returns")
    func plain() {
        let ended = Guarded<[Int]>([])
        CallbackScope.run(
            {
                #expect(CallbackScope.current != nil)
                #expect(ended.withLock { $0 } == [])
                return 7
            }, ended: { value in ended.withLock { $0.append(value) } })
        #expect(ended.withLock { $0 } == [7])
        #expect(CallbackScope.current == nil)
    }

    @Test("A callback ends after the Task it started")
    func task() async {
        let log = EventLog<String>()
        let gate = Gate()
        CallbackScope.run(
            {
                Task {
                    await gate.wait()
                    await Task { log.add("inner") }.value
                    log.add("task")
                }
                log.add("returned")
            }, ended: { log.add("ended") })
        log.add("after")
        gate.open()
        let entries = await log.wait { $0.contains("ended") }
        #expect(entries == ["returned", "after", "inner", "task", "ended"])
    }

    @Test("A callback ends after a Task that its Task started and did not wait for")
    func nestedTask() async {
        let log = EventLog<String>()
        let gate = Gate()
        CallbackScope.run(
            {
                Task {
                    Task {
                        await gate.wait()
                        log.add("inner")
                    }
                    log.add("outer")
                }
            }, ended: { log.add("ended") })
        await log.wait { $0.contains("outer") }
        gate.open()
        #expect(await log.wait { $0.contains("ended") } == ["outer", "inner", "ended"])
    }

    @Test("A callback ends after code that was handed to the queue in it, and after the Task that this code started")
    func handlerAndTask() async {
        let log = EventLog<String>()
        let queue = CallbackQueue()
        let gate = Gate()
        CallbackScope.run(
            {
                let scope = CallbackScope.current
                queue.run(in: scope) {
                    #expect(CallbackScope.current === scope)
                    log.add("handler")
                    Task {
                        await gate.wait()
                        log.add("task")
                    }
                }
            }, ended: { log.add("ended") })
        await log.wait { $0.contains("handler") }
        gate.open()
        #expect(await log.wait { $0.contains("ended") } == ["handler", "task", "ended"])
    }

    @Test("A detached task is not waited for")
    func detached() async {
        let gate = Gate()
        let ended = Gate()
        CallbackScope.run({ Task.detached { await gate.wait() } }, ended: { (_: Task<Void, Never>) in ended.open() })
        await ended.wait()
        gate.open()
    }

    @Test("A mark tells implemented from not implemented, one call at a time")
    func marks() {
        final class Empty: NSObject, BADownloadManagerDelegate {}
        final class Full: NSObject, BADownloadManagerDelegate {
            func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
                let empty = Empty()
                #expect(
                    !MissingMethod.isImplemented(.finished, of: empty) {
                        empty.download(download, finishedWithFileURL: fileURL)
                    })
            }
        }
        let download = makeDownload()
        let file = URL(fileURLWithPath: "/file")
        let empty: any BADownloadManagerDelegate = Empty()
        let full: any BADownloadManagerDelegate = Full()
        #expect(
            !MissingMethod.isImplemented(.finished, of: empty) { empty.download(download, finishedWithFileURL: file) })
        #expect(MissingMethod.isImplemented(.finished, of: full) { full.download(download, finishedWithFileURL: file) })
        #expect(
            !MissingMethod.isImplemented(.failed, of: full) {
                full.download(download, failedWithError: CancellationError())
            })
    }

    @Test("The asynchronous challenge method falls back on the one with a handler, and takes its first answer")
    func challenges() async {
        final class Empty: NSObject, BADownloadManagerDelegate {}
        final class Twice: NSObject, BADownloadManagerDelegate {
            func download(
                _ download: BADownload, didReceive challenge: URLAuthenticationChallenge,
                completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) {
                completionHandler(.cancelAuthenticationChallenge, nil)
                completionHandler(.useCredential, nil)
            }
        }
        let space = URLProtectionSpace(
            host: "a", port: 1, protocol: "https", realm: nil, authenticationMethod: NSURLAuthenticationMethodDefault)
        let challenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil,
            sender: NoSender())
        #expect(await Empty().download(makeDownload(), didReceive: challenge).0 == .performDefaultHandling)
        #expect(await Twice().download(makeDownload(), didReceive: challenge).0 == .cancelAuthenticationChallenge)
    }

    @Test("A delegate that inherits its conformance is noticed")
    func inheritedConformance() {
        class Base: NSObject, BADownloadManagerDelegate {}
        final class Derived: Base {}
        #expect(Diagnostics.inheritedConformance(of: Base()) == nil)
        #expect(Diagnostics.inheritedConformance(of: Derived())?.contains("Base") == true)
    }
}

/// A challenge needs a sender; nobody answers through it.
private final class NoSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
