// What an app asks of the manager, against a service that the test plays.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

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

    @Test("Threads that call at once wait for each other", .timeLimit(.minutes(10)))
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
