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

@Suite struct ManagerCallTests {
    let service = FakeService()
    let manager: BADownloadManager

    init() { manager = BADownloadManager(connector: service) }

    private func answerSchedule(state: Int64) {
        service.on(ManagerInterface.Schedule.self) { call in
            call.reply(ManagerInterface.Schedule.self, ManagerInterface.Schedule.Reply(state: state))
        }
    }

    @Test("A scheduled download waits when the call returns")
    func schedule() async throws {
        answerSchedule(state: 1)
        let download = makeDownload()
        try await blocking { [manager] in try manager.scheduleDownload(download) }
        #expect(download.state == .waiting)
        #expect(service.asked.entries == [.connected, .other(ManagerInterface.Schedule.name)])
    }

    @Test("A refusal is an error with the service's code, reason and remedy")
    func refusal() async throws {
        service.on(ManagerInterface.StartForeground.self) {
            $0.refuse(.callFromExtensionNotAllowed, "no", remedy: "ask the app")
        }
        let error = await failure { [manager] in try manager.startForegroundDownload(makeDownload()) }
        #expect(error?.domain == BAErrorDomain)
        #expect(error?.code == BAErrorCode.callFromExtensionNotAllowed.rawValue)
        #expect(error?.localizedFailureReason == "no")
        #expect(error?.localizedRecoverySuggestion == "ask the app")
    }

    @Test("A refusal leaves the connection, and the foreground downloads on it, as they are")
    func connectionStays() async throws {
        answerSchedule(state: 1)
        service.on(ManagerInterface.Cancel.self) { $0.refuse(.downloadNotScheduled) }
        try await blocking { [manager] in
            try manager.scheduleDownload(makeDownload())
            #expect(throws: NSError.self) { try manager.cancel(makeDownload()) }
            try manager.scheduleDownload(makeDownload())
        }
        #expect(service.asked.entries.count { $0 == .connected } == 1)
    }

    @Test("Without a service a call fails with an invalid connection")
    func unreachable() async throws {
        service.die()
        let error = await failure { [manager] in _ = try manager.fetchCurrentDownloads() }
        #expect(error?.code == BAErrorCode.callerConnectionInvalid.rawValue)
        #expect(error?.localizedFailureReason?.contains("down") == true)
    }

    @Test("A call after the service died goes to the new one")
    func reconnect() async throws {
        answerSchedule(state: 1)
        try await blocking { [manager, service] in
            try manager.scheduleDownload(makeDownload())
            service.drop()
            try manager.scheduleDownload(makeDownload())
        }
        #expect(service.asked.entries.count { $0 == .connected } == 2)
    }

    @Test("A download that the service took before it died is not refused the second time")
    func repeated() async throws {
        let download = makeDownload()
        let calls = Guarded(0)
        service.on(ManagerInterface.Schedule.self) { [service] call in
            let count = calls.withLock { calls in
                calls += 1
                return calls
            }
            switch count {
            case 1: call.reply(ManagerInterface.Schedule.self, ManagerInterface.Schedule.Reply(state: 1))
            case 2: service.drop()
            default: call.refuse(.downloadAlreadyScheduled)
            }
        }
        service.on(ManagerInterface.CurrentDownloads.self) { call in
            let wire = makeWire(unique: download.uniqueIdentifier, state: 1)
            call.reply(
                ManagerInterface.CurrentDownloads.self, ManagerInterface.CurrentDownloads.Reply(downloads: [wire]))
        }
        try await blocking { [manager] in
            try manager.scheduleDownload(makeDownload("first"))
            try manager.scheduleDownload(download)
        }
        #expect(calls.withLock { $0 } == 3)
        #expect(download.state == .waiting)
    }

    @Test("Another download of that identifier is refused the second time, too")
    func repeatedButAnother() async throws {
        let calls = Guarded(0)
        service.on(ManagerInterface.Cancel.self) { $0.refuse(.downloadNotScheduled) }
        service.on(ManagerInterface.Schedule.self) { [service] call in
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            if isFirst { service.drop() } else { call.refuse(.downloadAlreadyScheduled) }
        }
        service.on(ManagerInterface.CurrentDownloads.self) { call in
            call.reply(
                ManagerInterface.CurrentDownloads.self,
                ManagerInterface.CurrentDownloads.Reply(downloads: [makeWire()]))
        }
        let error = await failure { [manager] in
            // Opens the connection.
            #expect(throws: NSError.self) { try manager.cancel(makeDownload()) }
            try manager.scheduleDownload(makeDownload())
        }
        #expect(error?.code == BAErrorCode.downloadAlreadyScheduled.rawValue)
    }

    @Test("What has ended is refused without asking")
    func ended() async throws {
        let failed = makeDownload()
        failed.life.noteEvent(.failed, number: 1)
        let finished = makeDownload()
        finished.life.noteEvent(.finished, number: 1)
        let first = #expect(throws: NSError.self) { try manager.scheduleDownload(failed) }
        let second = #expect(throws: NSError.self) { try manager.startForegroundDownload(finished) }
        #expect(first?.code == BAErrorCode.downloadAlreadyFailed.rawValue)
        #expect(second?.code == BAErrorCode.downloadFailedToStart.rawValue)
        #expect(service.asked.entries == [])
    }

    @Test("What no message can carry is refused without asking, with a reason that is short")
    func impossible() throws {
        var streamed = makeRequest()
        streamed.httpBodyStream = InputStream(data: Data([1]))
        let large = String(repeating: "x", count: WireLimit.messageMax)
        for (identifier, request) in [("a", streamed), (large, makeRequest()), ("", streamed)] {
            let download = BAURLDownload(
                identifier: identifier, request: request, fileSize: 0, applicationGroupIdentifier: "g")
            for call in [manager.scheduleDownload, manager.startForegroundDownload] {
                let error = try #require(#expect(throws: NSError.self) { try call(download) })
                #expect(error.domain == BAErrorDomain && error.code == BAErrorCode.downloadFailedToStart.rawValue)
                #expect((1..<300).contains(error.localizedFailureReason?.utf8.count ?? 0))
                #expect(error.localizedRecoverySuggestion?.isEmpty == false)
            }
            #expect(download.state == .created)
        }
        #expect(service.asked.entries == [])
    }

    @Test("What the service has no code for is a download that failed to start, with the service's word as the cause")
    func unknownCode() async throws {
        for call in [ManagerInterface.Schedule.name, ManagerInterface.StartForeground.name] {
            let refusal: FakeService.Handler = { call in
                call.socket.write(
                    try WireCodec.error(
                        ManagerInterface.refused, Refusal(code: 1010, reason: "the disk is full", remedy: "free some")))
            }
            service.on(ManagerInterface.Schedule.self, refusal)
            service.on(ManagerInterface.StartForeground.self, refusal)
            let isSchedule = call == ManagerInterface.Schedule.name
            let error = await failure { [manager] in
                let download = makeDownload()
                try isSchedule ? manager.scheduleDownload(download) : manager.startForegroundDownload(download)
            }
            #expect(error?.domain == BAErrorDomain && error?.code == BAErrorCode.downloadFailedToStart.rawValue)
            #expect(error?.localizedFailureReason == "the disk is full")
            #expect((error?.userInfo[NSUnderlyingErrorKey] as? NSError)?.code == 1010)
        }
    }

    @Test("All three forms fetch all pages, and the objects that live")
    func fetch() async throws {
        let mine = makeDownload("mine")
        service.on(ManagerInterface.CurrentDownloads.self) { call in
            let first = [makeWire("mine", unique: mine.uniqueIdentifier, state: 2), makeWire("other")]
            call.reply(
                ManagerInterface.CurrentDownloads.self, ManagerInterface.CurrentDownloads.Reply(downloads: first),
                continues: true)
            call.reply(
                ManagerInterface.CurrentDownloads.self,
                ManagerInterface.CurrentDownloads.Reply(downloads: [makeWire("last")]))
        }
        let sync = try await blocking { [manager] in try manager.fetchCurrentDownloads() }
        let async = try await manager.currentDownloads
        let log = EventLog<[BADownload]>()
        manager.fetchCurrentDownloads { downloads, error in
            #expect(error == nil)
            #expect(!Thread.isMainThread)
            log.add(downloads)
        }
        let completed = await log.wait { !$0.isEmpty }
        for downloads in [sync, async, completed[0]] {
            #expect(downloads.map(\.identifier) == ["mine", "other", "last"])
            #expect(downloads.first === mine)
        }
        #expect(mine.state == .downloading)
    }

    @Test("A fetch that fails tells its handler, with no downloads")
    func fetchFails() async {
        service.on(ManagerInterface.CurrentDownloads.self) { $0.refuse(.callerConnectionNotAccepted) }
        let log = EventLog<Int>()
        manager.fetchCurrentDownloads { downloads, error in
            #expect(downloads.isEmpty)
            log.add((error as NSError?)?.code ?? 0)
        }
        #expect(await log.wait { !$0.isEmpty } == [BAErrorCode.callerConnectionNotAccepted.rawValue])
    }

    @Test("Threads that call at once wait for each other", .timeLimit(.minutes(1)))
    func concurrentCalls() async throws {
        answerSchedule(state: 1)
        service.on(ManagerInterface.CurrentDownloads.self) { call in
            for continues in [true, true, false] {
                call.reply(
                    ManagerInterface.CurrentDownloads.self,
                    ManagerInterface.CurrentDownloads.Reply(downloads: [makeWire()]), continues: continues)
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { [manager] group in
            for number in 0..<8 {
                group.addTask {
                    try await blocking {
                        for _ in 0..<20 {
                            if number % 2 == 0 {
                                #expect(try manager.fetchCurrentDownloads().count == 3)
                            } else {
                                try manager.scheduleDownload(makeDownload())
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(service.asked.entries.count { $0 == .connected } == 1)
    }

    @Test("In an extension a lost connection is lost for good")
    func noReconnect() async throws {
        let service = FakeService(canReconnect: false)
        let manager = BADownloadManager(connector: service)
        service.on(ManagerInterface.Cancel.self) { $0.reply(ManagerInterface.Cancel.self, Nothing()) }
        try await blocking { try manager.cancel(makeDownload()) }
        service.drop()
        let error = await failure { try manager.cancel(makeDownload()) }
        #expect(error?.code == BAErrorCode.callerConnectionInvalid.rawValue)
        #expect(service.asked.entries.count { $0 == .connected } == 1)
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

    @Test("A callback may block on calls and on exclusive control", .timeLimit(.minutes(1)))
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
