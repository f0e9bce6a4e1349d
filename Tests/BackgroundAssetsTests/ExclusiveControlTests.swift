internal import AssetsOS
internal import AssetsWire
internal import Foundation
internal import Testing

@testable import BackgroundAssets

@Suite struct ExclusiveControlTests {
    let service = FakeService()
    let manager: BADownloadManager

    init() { manager = BADownloadManager(connector: service) }

    /// Lets the service's word on a ticket overtake the reply that carries the ticket.
    private func answerAfterWord(_ word: @escaping @Sendable (Int64) -> ManagerInterface.Event) {
        service.on(ManagerInterface.AcquireControl.self) { [service] call in
            let ticket = service.nextTicket()
            service.send(word(ticket))
            // The word goes another way; this one is read first.
            service.send(.init(kind: "surprise", number: 0))
            call.reply(ManagerInterface.AcquireControl.self, .init(ticket: ticket))
        }
    }

    @Test("The asynchronous form waits, runs the body, and has given control back when it returns")
    func asynchronous() async throws {
        let task = Task { [manager, service] in
            let value = try await manager.withExclusiveControl {
                #expect(!service.asked.entries.contains(.release("s1", 1)))
                return 42
            }
            #expect(service.asked.entries.contains(.release("s1", 1)))
            return value
        }
        await service.asked.wait { $0.contains(.acquire("s1", nil)) }
        service.send(.granted(1))
        #expect(try await task.value == 42)
    }

    private func grantInReply(_ before: @escaping @Sendable () -> Void = {}) {
        service.on(ManagerInterface.AcquireControl.self) { [service] call in
            before()
            call.reply(ManagerInterface.AcquireControl.self, .init(ticket: service.nextTicket(), granted: true))
        }
    }

    @Test("A grant in the reply needs no event, and the caller's actor is not left once a session is open")
    @MainActor func grantInTheReply() async throws {
        grantInReply()
        try await manager.withExclusiveControl {}
        let turn = Guarded(0)
        let other = Task { @MainActor in turn.withLock { $0 += 1 } }
        // The main actor is not given away, so the task cannot have run.
        try await manager.withExclusiveControl { #expect(turn.withLock { $0 } == 0) }
        #expect(turn.withLock { $0 } == 0)
        await other.value
        #expect(service.asked.entries.filter { $0 == .release("s1", 1) || $0 == .release("s1", 2) }.count == 2)
    }

    @Test("A task that is cancelled while its ticket is on the way stops waiting", arguments: [false, true])
    func cancelledOnTheWay(isInSession: Bool) async throws {
        grantInReply()
        if isInSession { try await manager.withExclusiveControl {} }
        let task = Guarded<Task<Void, any Error>?>(nil)
        let gate = Gate()
        service.on(ManagerInterface.AcquireControl.self) { [service] call in
            task.withLock { $0 }?.cancel()
            call.reply(ManagerInterface.AcquireControl.self, .init(ticket: service.nextTicket()))
        }
        let started = Task { [manager] in
            await gate.wait()
            try await manager.withExclusiveControl { () -> Void in Issue.record("ran without control") }
        }
        task.withLock { $0 = started }
        gate.open()
        await #expect(throws: CancellationError.self) { try await started.value }
        await service.asked.wait { $0.contains(.release("s1", isInSession ? 2 : 1)) }
    }

    @Test("The body runs on the caller's actor", .timeLimit(.minutes(10)))
    @MainActor func isolation() async throws {
        answerAfterWord { .granted($0) }
        var count = 0
        try await manager.withExclusiveControl {
            MainActor.assertIsolated()
            count += 1
        }
        #expect(count == 1)
    }

    @Test("What the body throws comes out, and control is given back")
    func throwingBody() async {
        answerAfterWord { .granted($0) }
        await #expect(throws: CocoaError.self) {
            try await manager.withExclusiveControl { throw CocoaError(.fileNoSuchFile) }
        }
        #expect(service.asked.entries.contains(.release("s1", 1)))
    }

    @Test("A refusal is thrown with the service's reason, and the body does not run", arguments: ["busy", nil])
    func refused(reason: String?) async {
        answerAfterWord { .refused($0, reason) }
        let error = await #expect(throws: NSError.self) {
            try await manager.withExclusiveControl(before: Date()) { Issue.record("ran without control") }
        }
        #expect(error?.domain == BAErrorDomain && error?.code == BAErrorCode.downloadInvalid.rawValue)
        let cause = error?.userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(cause?.domain == NSPOSIXErrorDomain && cause?.code == Int(ETIMEDOUT))
        if let reason { #expect(error?.localizedFailureReason == reason) }
        #expect(error?.localizedFailureReason?.isEmpty == false)
        #expect(!service.asked.entries.contains(.release("s1", 1)))
    }

    @Test("A date travels as the time that remains")
    func deadlines() {
        func remaining(_ date: Date?) -> Int64? { ControlRequest(deadline: date) { _ in }.remainingMilliseconds }
        #expect(remaining(nil) == nil)
        #expect(remaining(Date()) == 0)
        #expect(remaining(.distantPast) == 0)
        #expect(remaining(.distantFuture) == nil)
        #expect(remaining(Date(timeIntervalSinceReferenceDate: .infinity)) == nil)
        #expect(remaining(Date(timeIntervalSinceReferenceDate: .nan)) == 0)
        let soon = remaining(Date(timeIntervalSinceNow: 60)) ?? 0
        #expect((59_000...60_000).contains(soon))
    }

    @Test("The completion form returns before its handler runs, and holds control until that has returned")
    @available(*, deprecated)
    func completion() async {
        let log = EventLog<String>()
        manager.withExclusiveControl { [service] isAcquired, error in
            #expect(!Thread.isMainThread)
            #expect(error == nil)
            #expect(!service.asked.entries.contains(.release("s1", 1)))
            log.add("handler \(isAcquired)")
        }
        log.add("returned")
        await service.asked.wait { $0.contains(.acquire("s1", nil)) }
        service.send(.granted(1))
        await service.asked.wait { $0.contains(.release("s1", 1)) }
        #expect(log.entries == ["returned", "handler true"])
    }

    @Test("The completion form with a date tells its handler of the refusal")
    @available(*, deprecated)
    func completionRefused() async {
        answerAfterWord { .refused($0) }
        let log = EventLog<Bool>()
        manager.withExclusiveControl(beforeDate: Date()) { isAcquired, error in
            #expect(error != nil)
            log.add(isAcquired)
        }
        #expect(await log.wait { !$0.isEmpty } == [false])
    }

    @Test("Handlers run one after the other, in the order of their requests")
    @available(*, deprecated)
    func handlersInOrder() async {
        answerAfterWord { .granted($0) }
        let running = Guarded(0)
        let log = EventLog<Int>()
        for number in 0..<20 {
            manager.withExclusiveControl { _, _ in
                let count = running.withLock { running in
                    running += 1
                    return running
                }
                #expect(count == 1)
                log.add(number)
                running.withLock { $0 -= 1 }
            }
        }
        #expect(await log.wait { $0.count == 20 } == Array(0..<20))
    }

    @Test("A request whose session is lost fails with an invalid connection")
    func sessionLost() async {
        let task = Task { [manager] in try await manager.withExclusiveControl {} }
        await service.asked.wait { $0.contains(.acquire("s1", nil)) }
        service.die()
        let error = await #expect(throws: NSError.self) { try await task.value }
        #expect(error?.code == BAErrorCode.callerConnectionInvalid.rawValue)
    }

    @Test("After the service died exclusive control can be had again")
    func again() async throws {
        answerAfterWord { .granted($0) }
        try await manager.withExclusiveControl {}
        service.drop()
        service.on(ManagerInterface.AcquireControl.self) { [service] call in
            let session = try call.parameters(ManagerInterface.AcquireControl.self).session
            guard service.hasSession(session) else { return call.refuse(.callerConnectionInvalid) }
            let ticket = service.nextTicket()
            call.reply(ManagerInterface.AcquireControl.self, .init(ticket: ticket))
            service.send(.granted(ticket), to: session)
        }
        // Whether or not the end of the old stream was noticed by now.
        try await manager.withExclusiveControl {}
        #expect(service.hasSession("s2"))
    }

    @Test("Without a service the handler gets the error")
    @available(*, deprecated)
    func noService() async {
        service.die()
        let log = EventLog<Int>()
        manager.withExclusiveControl { isAcquired, error in
            #expect(!isAcquired)
            log.add((error as NSError?)?.code ?? 0)
        }
        #expect(await log.wait { !$0.isEmpty } == [BAErrorCode.callerConnectionInvalid.rawValue])
    }

    @Test("A task that is cancelled while it waits stops waiting")
    func cancelled() async {
        let task = Task { [manager] in try await manager.withExclusiveControl { () -> Void in Issue.record("ran") } }
        await service.asked.wait { $0.contains(.acquire("s1", nil)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await service.asked.wait { $0.contains(.release("s1", 1)) }
    }

    @Test("A task that was cancelled before it asked does not run its body")
    func cancelledBefore() async {
        let gate = Gate()
        let task = Task { [manager] in
            await gate.wait()
            try await manager.withExclusiveControl { () -> Void in Issue.record("ran") }
        }
        task.cancel()
        gate.open()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("The first year's handler with one argument has no error while control is held")
    @available(*, deprecated)
    func firstYear() async {
        answerAfterWord { .granted($0) }
        let log = EventLog<Bool>()
        manager.withExclusiveControl { error in log.add(error == nil) }
        #expect(await log.wait { !$0.isEmpty } == [true])
    }
}

@Suite struct ControlTableTests {
    private func makeRequest() -> ControlRequest { ControlRequest(deadline: nil) { _ in } }

    @Test("The word on a ticket finds its request, before or after the ticket is known")
    func bothOrders() {
        var table = ControlTable()
        let first = makeRequest()
        table.begin()
        guard case (.none, []) = table.end(ticket: 1, request: first) else { return #expect(Bool(false)) }
        guard case .finish(let found, true, nil) = table.word(on: 1, granted: true, reason: nil) else {
            return #expect(Bool(false))
        }
        #expect(found === first)
        let second = makeRequest()
        table.begin()
        guard case .none = table.word(on: 2, granted: false, reason: "why") else { return #expect(Bool(false)) }
        guard case (.finish(let other, false, "why"), []) = table.end(ticket: 2, request: second) else {
            return #expect(Bool(false))
        }
        #expect(other === second)
        #expect(table.count == 0)
    }

    @Test("Of two that are asked for at once, neither takes the word on the other")
    func atOnce() {
        var table = ControlTable()
        table.begin()
        table.begin()
        _ = table.word(on: 2, granted: true, reason: nil)
        guard case (.none, []) = table.end(ticket: 1, request: makeRequest()) else { return #expect(Bool(false)) }
        let second = makeRequest()
        guard case (.finish(let found, true, nil), []) = table.end(ticket: 2, request: second) else {
            return #expect(Bool(false))
        }
        #expect(found === second)
        table.begin()
        _ = table.word(on: 3, granted: true, reason: nil)
        let third = table.endGranted(request: makeRequest())
        guard case (.finish(_, true, nil), [3]) = third else { return #expect(Bool(false)) }
    }

    @Test("A granted ticket that belongs to no request is given back")
    func strays() {
        var table = ControlTable()
        guard case .release([7]) = table.word(on: 7, granted: true, reason: nil) else { return #expect(Bool(false)) }
        guard case .none = table.word(on: 8, granted: false, reason: nil) else { return #expect(Bool(false)) }
        table.begin()
        _ = table.word(on: 9, granted: true, reason: nil)
        _ = table.word(on: 10, granted: false, reason: nil)
        #expect(table.endWithoutTicket() == [9])
        table.begin()
        _ = table.word(on: 11, granted: true, reason: nil)
        guard case (.none, [11]) = table.end(ticket: 12, request: makeRequest()) else { return #expect(Bool(false)) }
    }

    @Test("A lost session answers its requests, oldest first, and forgets them")
    func lost() {
        var table = ControlTable()
        let requests = (0..<5).map { _ in makeRequest() }
        for (ticket, request) in requests.enumerated() {
            table.begin()
            _ = table.end(ticket: Int64(ticket), request: request)
        }
        #expect(table.withdraw(requests[2]) == 2)
        #expect(table.withdraw(requests[2]) == nil)
        let lost = table.lost()
        #expect(lost.count == 4)
        #expect(zip(lost, [0, 1, 3, 4]).allSatisfy { $0 === requests[$1] })
        #expect(table.count == 0)
    }
}
