// Occasions after the installation on which an extension is asked: by the clock, and by a developer.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Testing

@Suite("Simulated events")
struct EventSimulationTests {
    private static let hour = Duration.seconds(3600)
    private static let day = hour * 24

    /// A device whose app is installed and told of everything; the network has one more file for it.
    private static func device(seed: UInt64 = 1) throws -> SimulatedDevice {
        let scenario = Scenario()
        let device = scenario.device(seed: seed)
        try device.installAndSettle(scenario)
        device.server.set(url, ScriptedResource(.generated(length: 5000, seed: 77), bytesPerSecond: 5000))
        return device
    }

    private static let url = "https://cdn.example.com/new"

    /// What an extension answers that wants that file.
    private static func answer(essential: Bool = false, _ digit: Character = "1") -> ScriptedExtension.ContentAnswer {
        .downloads([
            DownloadRequest(
                identifier: "new", uniqueIdentifier: "01234567-89AB-4CDE-8F01-23456789ABC\(digit)", url: url,
                group: Scenario.group, isEssential: essential, size: 5000)
        ])
    }

    private func requests(_ device: SimulatedDevice) -> [ContentRequest] {
        device.extensions.calls.compactMap { $0.kind == .content ? $0.request : nil }
    }

    private func rows(_ device: SimulatedDevice, _ events: JournalEvent...) throws -> [JournalEntry] {
        try device.journal().filter { events.contains($0.event) }
    }

    private func isAtRest(_ device: SimulatedDevice) throws -> Bool {
        let (events, intents, downloads) = try device.query { store in
            (try store.events(), try store.intents(), try store.downloads(limit: 10))
        }
        return events.isEmpty && intents.isEmpty && downloads.isEmpty
    }

    private func due(_ device: SimulatedDevice) throws -> Duration {
        try #require(try device.query { try $0.plans()[Scenario.app] }).due
    }

    private func simulate(_ request: ContentRequest, on device: SimulatedDevice, app: String = Scenario.app) throws {
        try device.call { try await $0.simulate(request, of: app) }
    }

    private func refusal(_ body: () throws -> Void) -> AssetsError? {
        do { try body() } catch { return error as? AssetsError }
        return nil
    }

    // MARK: By the clock

    @Test("When the time has come the manifest is fetched, then the extension asked, and what it wants arrives")
    func check() throws {
        let device = try Self.device()
        device.extensions.answerChecks([Self.answer()])
        #expect(requests(device) == [.install])
        let before = try device.journal().count
        try device.loop.advance(by: Self.hour * 4)
        #expect(requests(device) == [.install])
        try device.loop.advance(by: Self.hour * 4)
        try device.settle()
        #expect(requests(device) == [.install, .periodic])
        #expect(device.server.log(of: Scenario.manifestURL).count == 2)
        #expect(device.moved("new") == device.server.content(of: Self.url))
        #expect(try isAtRest(device))
        let told = try device.journal().dropFirst(before).map(\.event)
        let order: [JournalEvent] = [
            .eventBegan, .manifestFetched, .extensionCalled, .extensionAnswered, .eventEnded, .eventPlanned,
            .messageClosed,
        ]
        let places = order.map { event in told.firstIndex(of: event) ?? .max }
        #expect(places == places.sorted() && places.allSatisfy { $0 < .max }, "\(told)")
        #expect(try rows(device, .eventBegan).map(\.reason) == [.interval])
        // Its class is that of work that nobody waits for.
        #expect(
            try rows(device, .downloadBegan).filter { $0.detail.contains("Manifest") }.last?.detail.contains(
                "background") == true)
    }

    @Test("An app that is used every day is asked several times a day, one that nobody opens seldom")
    func frequency() throws {
        let used = try Self.device(seed: 2)
        for _ in 0..<20 {
            _ = try used.call { try await $0.launchPlan(for: Scenario.app) }
            try used.loop.advance(by: Self.day)
        }
        let unused = try Self.device(seed: 2)
        try unused.loop.advance(by: Self.day * 60)
        let often = requests(used).count - 1
        let seldom = requests(unused).count - 1
        #expect((60...100).contains(often), "\(often) in 20 days")
        #expect((12...25).contains(seldom), "\(seldom) in 60 days")
    }

    @Test("A plan outlives the service, also when its time comes while none runs", arguments: [true, false])
    func restart(isKilled: Bool) throws {
        let device = try Self.device()
        let due = try due(device)
        if isKilled { device.kill() } else { try device.stop() }
        try device.start()
        #expect(try self.due(device) == due)
        // A service that ends again at once does not ask.
        try device.loop.advance(by: .seconds(10))
        #expect(requests(device) == [.install])
        if isKilled { device.kill() } else { try device.stop() }
        try device.loop.advance(by: Self.day * 3)
        try device.start()
        try device.loop.advance(by: .seconds(60))
        #expect(requests(device) == [.install, .periodic])
        #expect(try self.due(device) > due + Self.day)
    }

    @Test("Without a network the check waits for it, and is made once")
    func offline() throws {
        let device = try Self.device()
        device.isOnline = false
        try device.loop.advance(by: Self.hour * 12)
        #expect(requests(device) == [.install])
        let waiting = try device.query { try $0.downloads(limit: 10) }
        #expect(waiting.map(\.request.kind) == [.manifest] && waiting.first?.reason == .offline)
        device.isOnline = true
        try device.settle()
        #expect(requests(device) == [.install, .periodic])
        #expect(try isAtRest(device))
    }

    @Test("A manifest that cannot be had is told as a failure, and the next check comes in its time")
    func noManifest() throws {
        let device = try Self.device()
        device.server.set(Scenario.manifestURL, ScriptedResource(.bytes([]), answers: [.status(404)]))
        try device.loop.advance(by: Self.hour * 8)
        try device.settle()
        #expect(requests(device) == [.install])
        #expect(device.extensions.calls.last?.kind == .failed)
        #expect(try rows(device, .eventEnded).map(\.reason) == [.manifest])
        #expect(try isAtRest(device))
        try device.loop.advance(by: Self.hour * 8)
        try device.settle()
        #expect(requests(device) == [.install, .periodic])
    }

    @Test("An essential download in the answer refuses all of it", arguments: [ContentRequest.periodic, .update])
    func essential(request: ContentRequest) throws {
        let device = try Self.device()
        let answer = Self.answer(essential: true)
        if request == .periodic { device.extensions.answerChecks([answer]) }
        if request == .update { device.extensions.answerContent([answer]) }
        try simulate(request, on: device)
        try device.settle()
        #expect(requests(device) == [.install, request])
        #expect((device.moved("new") != nil) == (request == .update))
        let refused = try rows(device, .downloadRefused)
        #expect(refused.count == (request == .periodic ? 1 : 0))
        if let row = refused.first { #expect(row.detail.contains("code 109")) }
        #expect(try isAtRest(device))
    }

    @Test("An answer with what is scheduled already is refused, and its charge given back")
    func duplicate() throws {
        let device = try Self.device()
        device.server.set(Self.url, ScriptedResource(.generated(length: 5000, seed: 77), bytesPerSecond: 1))
        device.extensions.answerChecks([Self.answer(), Self.answer(essential: false, "2")])
        try simulate(.periodic, on: device)
        try device.loop.run(until: { requests(device).count == 2 })
        try device.loop.run(until: { device.inspect { $0.hasEvents } == false })
        let ledger = try device.query { try $0.apps().first?.ledger }
        #expect(ledger?.nonEssential == 37_000)
        try simulate(.periodic, on: device)
        try device.loop.run(until: { requests(device).count == 3 })
        try device.loop.run(until: { device.inspect { $0.hasEvents } == false })
        try device.loop.advance(by: .seconds(1))
        let refused = try rows(device, .downloadRefused)
        #expect(refused.count == 1 && refused.first?.reason == .duplicate)
        let after = try device.query { try $0.apps().first?.ledger }
        #expect(after?.nonEssential == ledger?.nonEssential)
        #expect(try device.query { try $0.downloads(limit: 10) }.map(\.request.identifier) == ["new"])
    }

    @Test("An extension that dies or hangs when it is asked ends the event, and is asked again in its time")
    func death() throws {
        for answer in [ScriptedExtension.ContentAnswer.died, .hangs] {
            let device = try Self.device()
            device.extensions.answerChecks([answer, Self.answer()])
            try device.loop.advance(by: Self.hour * 8)
            try device.settle()
            #expect(requests(device) == [.install, .periodic])
            #expect(try rows(device, .eventEnded).map(\.reason) == [.crash])
            #expect(try isAtRest(device))
            try device.loop.advance(by: Self.hour * 8)
            try device.settle()
            #expect(device.moved("new") != nil)
        }
    }

    // MARK: By a developer

    @Test("A simulated event comes at once and before the first launch, and the plan goes by it")
    func simulated() throws {
        let device = try Self.device()
        device.extensions.answerContent([Self.answer(essential: true)])
        let due = try due(device)
        try simulate(.install, on: device)
        try device.settle()
        #expect(requests(device) == [.install, .install])
        #expect(device.moved("new") != nil)
        #expect(try rows(device, .eventBegan).map(\.reason) == [.requested])
        #expect(try device.query { try $0.apps().first?.launchedAt } == nil)
        #expect(try self.due(device) != due)
        #expect(try isAtRest(device))
    }

    @Test("Simulated events are refused with the reason and the next step where they cannot be")
    func refusals() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 1)
        try device.start()
        #expect(refusal { try simulate(.install, on: device) }?.code == .notInstalled)
        _ = try device.install(scenario.source)
        try device.wait(for: .essential, of: Scenario.app)
        #expect(refusal { try simulate(.install, on: device) }?.code == .busy)
        try device.settle()
        let ofExtension = refusal { try simulate(.install, on: device, app: "\(Scenario.app).Downloader") }
        #expect(ofExtension?.code == .notInstalled && ofExtension?.remedy.contains(Scenario.app) == true)
        try device.call { try await $0.setDeveloperMode(false) }
        let off = refusal { try simulate(.install, on: device) }
        #expect(off?.code == .developerModeOff && off?.remedy.contains("settings developer-mode on") == true)
        #expect(requests(device) == [.install])
        try device.call { try await $0.setDeveloperMode(true) }
        try simulate(.update, on: device)
        #expect(refusal { try simulate(.install, on: device) }?.code == .busy)
        try device.settle()
        #expect(try isAtRest(device))
    }

    @Test("A planned check whose manifest does not come gives way to an event that somebody wants to see")
    func givesWay() throws {
        let device = try Self.device()
        device.isOnline = false
        try device.loop.advance(by: Self.hour * 8)
        device.extensions.answerContent([Self.answer()])
        try simulate(.update, on: device)
        device.isOnline = true
        try device.settle()
        #expect(requests(device) == [.install, .update])
        #expect(device.moved("new") != nil)
        #expect(try rows(device, .eventBegan).count == 2 && rows(device, .eventEnded).count == 2)
        #expect(try isAtRest(device))
    }

    @Test("While the extension is asked it schedules nothing, and the running app does")
    func window() throws {
        let device = try Self.device()
        device.extensions.latency = .seconds(20)
        try simulate(.periodic, on: device)
        try device.loop.run(until: { requests(device).count == 2 })
        guard case .downloads(let wanted) = Self.answer() else { return }
        let byExtension = refusal {
            _ = try device.call { try await $0.schedule(wanted[0], for: Scenario.app, byExtension: true) }
        }
        #expect(byExtension?.code == .downloadFailedToStart)
        let byApp = refusal { _ = try device.call { try await $0.schedule(wanted[0], for: Scenario.app) } }
        #expect(byApp == nil)
        try device.settle()
        guard case .downloads(let again) = Self.answer(essential: false, "9") else { return }
        let later = refusal {
            _ = try device.call { try await $0.schedule(again[0], for: Scenario.app, byExtension: true) }
        }
        #expect(later == nil)
    }

    @Test("Killed after any line of an event, the service goes on with it", arguments: [true, false])
    func kills(isPowerCut: Bool) throws {
        var number = 1
        while true {
            let device = try Self.device()
            device.extensions.answerContent([Self.answer(), Self.answer()])
            let end = device.loop.noteCount + number
            device.spawn { service, _ in try await service.simulate(.update, of: Scenario.app) }
            let isDone = { device.inspect { !$0.isBusy } == true && requests(device).count > 1 }
            try device.loop.run(until: { device.loop.noteCount >= end || isDone() })
            guard device.loop.noteCount >= end else { break }
            if isPowerCut { device.powerCut() } else { device.kill() }
            try device.start()
            try device.settle()
            #expect(try isAtRest(device), "line \(number)")
            // Unless it was killed before the event was written down.
            if try !rows(device, .eventBegan).isEmpty {
                #expect(device.moved("new") != nil, "line \(number)")
                #expect(try rows(device, .eventEnded).count == 1, "line \(number)")
            }
            number += 1
        }
        #expect(number > 12)
    }

    @Test("An app that is removed takes its plan and its event along")
    func uninstalled() throws {
        let device = try Self.device()
        device.isOnline = false
        try device.loop.advance(by: Self.hour * 8)
        try device.call { try await $0.uninstall(Scenario.app) }
        let (plans, events) = try device.query { (try $0.plans(), try $0.events()) }
        #expect(plans.isEmpty && events.isEmpty)
        device.isOnline = true
        try device.loop.advance(by: Self.day * 30)
        #expect(requests(device) == [.install])
    }
}
