// What a delegate hears, and what the service hears of it.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

/// What a delegate heard.
enum Heard: Hashable, Sendable {
    case began(String)
    case paused(String)
    case progress(String, Int64, Int64, Int64)
    case failed(String, String, Int)
    case finished(String, String)
}

/// Hears everything, and does what a test wants done in its callbacks.
final class Listener: NSObject, BADownloadManagerDelegate, Sendable {
    let heard = EventLog<Heard>()
    private let inCallback: @Sendable (BADownload) -> Void

    init(_ inCallback: @escaping @Sendable (BADownload) -> Void = { _ in }) { self.inCallback = inCallback }

    func downloadDidBegin(_ download: BADownload) {
        inCallback(download)
        heard.add(.began(download.identifier))
    }
    func downloadDidPause(_ download: BADownload) { heard.add(.paused(download.identifier)) }
    func download(
        _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64
    ) { heard.add(.progress(download.identifier, bytesWritten, totalBytesWritten, totalExpectedBytes)) }
    func download(_ download: BADownload, failedWithError error: any Error) {
        heard.add(.failed(download.identifier, (error as NSError).domain, (error as NSError).code))
    }
    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        #expect(!Thread.isMainThread)
        inCallback(download)
        heard.add(.finished(download.identifier, fileURL.path))
    }
}

/// Has no method but one.
final class Half: NSObject, BADownloadManagerDelegate, Sendable {
    func downloadDidBegin(_ download: BADownload) {}
}

/// Hears progress by the spelling of 2022.
@available(*, deprecated)
final class OldListener: NSObject, BADownloadManagerDelegate, Sendable {
    let heard = EventLog<Int64>()

    func download(
        _ download: BADownload, bytesWritten: Int64, totalBytesWritten: Int64, totalExpectedBytes: Int64
    ) {
        heard.add(totalBytesWritten)
    }
}

/// Hears progress, and passes it on to the spelling of 2022, which it has not.
@available(*, deprecated)
final class ForwardingListener: NSObject, BADownloadManagerDelegate, Sendable {
    let heard = EventLog<Int64>()

    func download(
        _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64
    ) {
        self.download(
            download, bytesWritten: bytesWritten, totalBytesWritten: totalBytesWritten,
            totalExpectedBytes: totalExpectedBytes)
        heard.add(totalBytesWritten)
    }
}

@Suite struct DelegateTests {
    let service = FakeService()
    let manager: BADownloadManager

    init() { manager = BADownloadManager(connector: service) }

    private func setDelegate(_ delegate: any BADownloadManagerDelegate) async {
        manager.delegate = delegate
        await service.asked.wait { $0.contains(.delegate("s1", true)) }
    }

    @Test("The delegate hears of downloads in order, its states up to date")
    func order() async {
        let mine = makeDownload("mine")
        let unique = mine.uniqueIdentifier
        let states = EventLog<BADownload.State>()
        let listener = Listener { states.add($0.state) }
        await setDelegate(listener)
        service.send(.init(kind: "began", number: 0, download: makeWire("mine", unique: unique, state: 2)))
        await listener.heard.wait { !$0.isEmpty }
        service.send(
            .init(
                kind: "progress", number: 0, download: makeWire("mine", unique: unique, state: 2), written: 3,
                totalWritten: 3, totalExpected: 7))
        await listener.heard.wait { $0.count == 2 }
        service.send(
            .init(kind: "paused", number: 0, download: makeWire("mine", unique: unique, state: 1)),
            .finished(makeWire("mine", unique: unique, state: 3), number: 5, path: "/a b/file"))
        let heard = await listener.heard.wait { $0.count == 4 }
        #expect(
            heard == [.began("mine"), .progress("mine", 3, 3, 7), .paused("mine"), .finished("mine", "/a b/file")])
        #expect(states.entries == [.downloading, .finished])
        await service.asked.wait { $0.contains(.answer("s1", 5, true)) }
    }

    @Test("A method that the delegate does not have is answered as not handled")
    func notHandled() async {
        let half = Half()
        await setDelegate(half)
        service.send(
            .finished(makeWire(state: 3), number: 1),
            .init(
                kind: "failed", number: 2, download: makeWire(state: -1),
                failure: WireFailure(domain: "BAErrorDomain", code: 203, reason: "used up")))
        let asked = await service.asked.wait { $0.contains(.answer("s1", 2, false)) }
        #expect(asked.contains(.answer("s1", 1, false)))
        withExtendedLifetime(half) {}
    }

    @Test("A delegate without a method for progress is spared it after the first time, its successor hears it again")
    func deaf() async {
        func progress(_ total: Int64) -> ManagerInterface.Event {
            .init(
                kind: "progress", number: 0, download: makeWire("a", state: 2), written: 1, totalWritten: total,
                totalExpected: 9)
        }
        let half = Half()
        await setDelegate(half)
        service.send(progress(1))
        await service.asked.wait { $0.contains(.deafDelegate("s1")) }
        let listener = Listener()
        manager.delegate = listener
        await service.asked.wait { $0.last == .delegate("s1", true) }
        service.send(progress(2))
        let heard = await listener.heard.wait { !$0.isEmpty }
        #expect(heard == [.progress("a", 1, 2, 9)])
        // Of a class that is known nothing has to be found out again.
        manager.delegate = half
        let asked = await service.asked.wait { $0.last == .deafDelegate("s1") }
        // Calls and events have a connection each, whose beginnings have no order.
        let calls = asked.filter { $0 != .connected && $0 != .events("s1") }
        #expect(
            calls == [.delegate("s1", true), .deafDelegate("s1"), .delegate("s1", true), .deafDelegate("s1")])
        withExtendedLifetime((half, listener)) {}
    }

    @Test("A delegate with one of both progress methods hears progress, also when it calls the other")
    @available(*, deprecated)
    func eitherProgress() async {
        let (old, forwarding) = (OldListener(), ForwardingListener())
        await setDelegate(old)
        func tell(_ total: Int64) {
            service.send(
                .init(
                    kind: "progress", number: 0, download: makeWire("a", state: 2), written: 1, totalWritten: total,
                    totalExpected: 9))
        }
        for total in Int64(1)...3 {
            tell(total)
            await old.heard.wait { $0.contains(total) }
        }
        manager.delegate = forwarding
        for total in Int64(4)...6 {
            tell(total)
            await forwarding.heard.wait { $0.contains(total) }
        }
        #expect(!service.asked.entries.contains(.deafDelegate("s1")))
    }

    @Test("Failures arrive as the errors they are, and the download knows its own")
    @available(*, deprecated)
    func failures() async {
        let download = makeDownload("a")
        let listener = Listener()
        await setDelegate(listener)
        func failed(_ domain: String, _ code: Int64, number: Int64) -> ManagerInterface.Event {
            .init(
                kind: "failed", number: number,
                download: makeWire("a", unique: download.uniqueIdentifier, state: -1),
                failure: WireFailure(domain: domain, code: code, reason: "why"))
        }
        service.send(
            failed("BAErrorDomain", 204, number: 1), failed("NSURLErrorDomain", -1005, number: 2),
            failed("NSURLErrorDomain", -424_242, number: 3))
        let heard = await listener.heard.wait { $0.count == 3 }
        #expect(
            heard == [
                .failed("a", BAErrorDomain, 204), .failed("a", NSURLErrorDomain, -1005),
                .failed("a", NSURLErrorDomain, -424_242),
            ])
        #expect(download.state == .failed)
        #expect((download.error as NSError?)?.code == -424_242)
    }

    @Test("A transport failure is a URLError with the failing address")
    func urlError() throws {
        let error = AssetsFailure.error(
            WireFailure(domain: "NSURLErrorDomain", code: -1009, reason: "offline"), url: "https://a.example/b")
        let failure = try #require(error as? URLError)
        #expect(failure.code == .notConnectedToInternet)
        #expect((failure as NSError).localizedFailureReason == "offline")
        #expect(failure.failingURL?.absoluteString == "https://a.example/b")
    }

    @Test("The answer waits for the exclusive control and the Task of the callback")
    @available(*, deprecated)
    func answerWaits() async {
        let gate = Gate()
        let log = EventLog<String>()
        let listener = Listener { [manager] _ in
            manager.withExclusiveControl { isAcquired, _ in
                log.add("control \(isAcquired)")
                Task {
                    await gate.wait()
                    log.add("task")
                }
            }
        }
        await setDelegate(listener)
        service.send(.finished(makeWire(state: 3), number: 9))
        await service.asked.wait { $0.contains(.acquire("s1", nil)) }
        await listener.heard.wait { !$0.isEmpty }
        #expect(log.entries.isEmpty)
        service.send(.granted(1))
        await service.asked.wait { $0.contains(.release("s1", 1)) }
        #expect(log.entries == ["control true"])
        // The queue goes on meanwhile, and later callbacks are answered.
        service.send(.init(kind: "paused", number: 10, download: makeWire()))
        await service.asked.wait { $0.contains(.answer("s1", 10, true)) }
        #expect(!service.asked.entries.contains(.answer("s1", 9, true)))
        gate.open()
        await service.asked.wait { $0.contains(.answer("s1", 9, true)) }
        #expect(log.entries == ["control true", "task"])
    }

    @Test("A callback may block on calls and on exclusive control", .timeLimit(.minutes(10)))
    func blockingCallback() async {
        service.on(ManagerInterface.CurrentDownloads.self) { call in
            call.reply(
                ManagerInterface.CurrentDownloads.self, ManagerInterface.CurrentDownloads.Reply(downloads: []))
        }
        let listener = Listener { [manager] _ in
            #expect(throws: Never.self) { try manager.fetchCurrentDownloads() }
            let done = DispatchSemaphore(value: 0)
            Task {
                let value = try await manager.withExclusiveControl { 42 }
                #expect(value == 42)
                done.signal()
            }
            done.wait()
        }
        await setDelegate(listener)
        service.send(.finished(makeWire(state: 3), number: 1))
        await service.asked.wait { $0.contains(.acquire("s1", nil)) }
        service.send(.granted(1))
        await service.asked.wait { $0.contains(.answer("s1", 1, true)) }
    }

    @Test("Progress that waits for a blocked callback arrives as one message")
    func mergedProgress() async {
        let gate = DispatchSemaphore(value: 0)
        let entered = Gate()
        let listener = Listener { download in
            if download.identifier == "blocker" {
                entered.open()
                gate.wait()
            }
        }
        await setDelegate(listener)
        service.send(.init(kind: "began", number: 0, download: makeWire("blocker")))
        await entered.wait()
        let wire = makeWire("a", state: 2)
        let other = makeWire("b", state: 2)
        for step in Int64(1)...5 {
            service.send(
                .init(
                    kind: "progress", number: 0, download: wire, written: 10, totalWritten: step * 10,
                    totalExpected: 100))
        }
        service.send(
            .init(kind: "progress", number: 0, download: other, written: 1, totalWritten: 1, totalExpected: 2),
            .granted(99))
        // The stray ticket is given back: so the events before it were read.
        await service.asked.wait { $0.contains(.release("s1", 99)) }
        gate.signal()
        let heard = await listener.heard.wait { $0.count == 3 }
        #expect(heard == [.began("blocker"), .progress("a", 50, 50, 100), .progress("b", 1, 1, 2)])
    }

    @Test("The delegate is held weakly; when it is gone the service is told")
    func weakDelegate() async {
        var listener: Listener? = Listener()
        weak let gone = listener
        if let listener { await setDelegate(listener) }
        listener = nil
        #expect(gone == nil)
        #expect(manager.delegate == nil)
        service.send(.finished(makeWire(state: 3), number: 4))
        let asked = await service.asked.wait { $0.contains(.delegate("s1", false)) }
        #expect(asked.contains(.answer("s1", 4, false)) || !asked.contains(.answer("s1", 4, true)))
        await service.asked.wait { $0.contains(.answer("s1", 4, false)) }
    }

    @Test("A new delegate silences the old one without another announcement")
    func replaced() async {
        let first = Listener()
        let second = Listener()
        await setDelegate(first)
        manager.delegate = second
        service.send(.finished(makeWire(state: 3), number: 1))
        await second.heard.wait { !$0.isEmpty }
        #expect(first.heard.entries.isEmpty)
        manager.delegate = nil
        let asked = await service.asked.wait { $0.contains(.delegate("s1", false)) }
        #expect(asked.count { $0 == .delegate("s1", true) } == 1)
    }

    @Test("A download started after the delegate was set finds it announced")
    func announcedFirst() async throws {
        service.on(ManagerInterface.Schedule.self) { call in
            call.reply(ManagerInterface.Schedule.self, ManagerInterface.Schedule.Reply(state: 1))
        }
        let listener = Listener()
        try await blocking { [manager] in
            manager.delegate = listener
            try manager.scheduleDownload(makeDownload())
        }
        let asked = service.asked.entries
        let announced = try #require(asked.firstIndex(of: .delegate("s1", true)))
        let scheduled = try #require(asked.firstIndex(of: .other(ManagerInterface.Schedule.name)))
        #expect(announced < scheduled)
        withExtendedLifetime(listener) {}
    }

    @Test("After the service died the delegate is announced to the new one by itself")
    func reannounced() async {
        let listener = Listener()
        await setDelegate(listener)
        service.die()
        service.restart()
        await service.asked.wait { $0.contains(.delegate("s2", true)) }
        service.send(.finished(makeWire("again", state: 3), number: 1), to: "s2")
        await listener.heard.wait { $0.contains(.finished("again", "/file")) }
        await service.asked.wait { $0.contains(.answer("s2", 1, true)) }
    }

    @Test("Events that make no sense are passed over")
    func nonsense() async {
        let listener = Listener()
        await setDelegate(listener)
        service.send(
            .init(kind: "surprise", number: 1), .init(kind: "finished", number: 2),
            .init(kind: "finished", number: 3, download: makeWire()),
            .init(kind: "control-granted", number: 0), .init(kind: "session", number: 0, session: "s9"),
            .finished(makeWire("real", state: 3), number: 4))
        let heard = await listener.heard.wait { !$0.isEmpty }
        #expect(heard == [.finished("real", "/file")])
        await service.asked.wait { $0.contains(.answer("s1", 4, true)) }
    }
}
