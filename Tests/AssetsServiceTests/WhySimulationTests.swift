// What `why` answers, of the real service on a simulated device.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Testing

@Suite("Simulated answers of why")
struct WhySimulationTests {
    private static let app = Scenario.app

    private func standings(_ device: SimulatedDevice) throws -> [Standing] {
        try device.call { service in
            try await service.standings(of: Self.app)
                + service.heldDownloads(of: Self.app, after: 0, limit: 100).standings
        }
    }

    private func standing(_ device: SimulatedDevice, of name: String) throws -> Standing {
        let found = try device.call { try await $0.standings(of: Self.app, download: name) }
        return try #require(found.count == 1 ? found.first : nil, "\(found)")
    }

    private func settled(_ scenario: Scenario) throws -> SimulatedDevice {
        let device = scenario.device(seed: 1)
        try device.installAndSettle(scenario)
        return device
    }

    /// Assets that their server was asked for.
    private func requested(_ scenario: Scenario, _ device: SimulatedDevice) -> Int {
        scenario.assets.filter { !device.server.log(of: $0.url).isEmpty }.count
    }

    @Test("Of an app at rest nothing is held, and its next check is named")
    func rest() throws {
        let standings = try standings(settled(Scenario()))
        #expect(standings.map(\.subject) == [.gate, .extension, .control, .check])
        #expect(standings.allSatisfy { !$0.isHeld && $0.release == "" })
        #expect(standings.last?.latest != nil)
    }

    @Test("While the gate is shut its phase is named, other assets wait for it, and what arrives is not held")
    func gate() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 1)
        try device.start()
        _ = try device.install(scenario.source)
        try device.wait(for: .essential, of: Self.app)
        try device.loop.run(until: { requested(scenario, device) == 2 })
        let found = try standings(device)
        let gate = try #require(found.first)
        #expect(gate.reason == .gate && gate.detail.contains("still arriving"))
        #expect(gate.release.contains("nothing of them has come for 120 s"))
        let held = found.filter { $0.subject == .download }
        #expect(held.map(\.identifier).sorted() == ["l1", "l2"] && held.allSatisfy { $0.reason == .essentialFirst })
        let running = try standing(device, of: "e1")
        #expect(!running.isHeld && running.detail.hasPrefix("downloading, "))
        try device.settle()
        #expect(try standings(device).allSatisfy { !$0.isHeld })
    }

    @Test("Who keeps exclusive control is named with those who wait; of the extension also when it must end")
    func control() throws {
        let device = try settled(Scenario())
        let holder = try device.call { $0.openSession(app: Self.app, isExtension: false, process: 4711) { _ in } }
        let waiter = try device.call { $0.openSession(app: Self.app, isExtension: true) { _ in } }
        let first = try device.call { try $0.acquireControl(session: holder, app: Self.app, within: nil) }
        #expect(try standings(device).allSatisfy { !$0.isHeld })
        _ = try device.call { try $0.acquireControl(session: waiter, app: Self.app, within: nil) }
        try device.loop.advance(by: .seconds(45))
        let control = try #require(try standings(device).first { $0.subject == .control })
        #expect(control.reason == .control)
        #expect(control.detail.hasPrefix("process 4711 of the app has had exclusive control for 45 s"))
        #expect(control.detail.contains("the extension waits for it; that is long"))
        // The other way round.
        _ = try device.call { try $0.acquireControl(session: holder, app: Self.app, within: nil) }
        try device.call { try $0.releaseControl(session: holder, app: Self.app, ticket: first.ticket) }
        let bounded = try #require(try standings(device).first { $0.subject == .control })
        #expect(bounded.detail.hasPrefix("the extension has had") && bounded.detail.contains("4711 of the app waits"))
        #expect(try #require(bounded.latest) <= device.calendar.now + .seconds(301))
        try device.call { service in
            service.closeSession(waiter)
            service.closeSession(holder)
        }
        #expect(try standings(device).allSatisfy { !$0.isHeld })
    }

    @Test("A message pauses with its time, is given up after its limit, and its kept file is named until it was moved")
    func givenUp() throws {
        var scenario = Scenario()
        scenario.assets[1].messageAnswers = Array(repeating: .died, count: 20)
        let device = scenario.device(seed: 1)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.run(until: { device.messages(of: "e2").count == 3 })
        try device.loop.advance(by: .seconds(1))
        let paused = try standing(device, of: "e2")
        #expect(paused.subject == .message && paused.reason == .backoff)
        #expect(paused.detail.contains("3 times of 8") && paused.detail.contains("after 8 it is given up"))
        let latest = try #require(paused.latest)
        try device.loop.run(until: { device.messages(of: "e2").count == 4 }, limit: .seconds(3600))
        #expect(device.calendar.now >= latest && device.calendar.now < latest + .seconds(1))

        try device.settle()
        try device.restart()
        let kept = try #require(try standings(device).first { $0.isHeld })
        #expect(kept.subject == .keptFile && kept.reason == .crash && kept.identifier == "e2")
        #expect(kept.detail.contains("died in the callback 8 times") && kept.download == paused.download)
        let folder = try #require(try device.tree.list(device.caches).first)
        let path = "\(device.caches)/\(folder)/e2"
        #expect(kept.detail.hasSuffix("its file is kept: \(device.tree.root)/\(path)"))
        #expect(try standing(device, of: kept.download) == kept && standing(device, of: "e2") == kept)
        try device.tree.remove(path)
        #expect(try standings(device).allSatisfy { !$0.isHeld })
        try device.loop.advance(by: .seconds(1))
        #expect(try device.query { try $0.givenUpMessages(app: Self.app) } == [])
    }

    @Test("Without runtime the extension and what waits for it say when there is some again")
    func budget() throws {
        var scenario = Scenario()
        scenario.assets = [Scenario.Asset(identifier: "one", length: 1000, isEssential: false)]
        scenario.assets[0].messageAnswers = [.died, .hangs]
        let device = scenario.device(seed: 7)
        try device.start()
        _ = try device.install()
        let entered = { device.messages(of: "one").count == 2 }
        try device.loop.run(until: entered)
        try device.loop.advance(by: .seconds(10))
        let called = try standing(device, of: "one")
        #expect(called.reason == .answer && called.detail == "the extension has its message")
        try device.loop.run(
            until: { device.extensions.processes.events.contains(.ended("killed by signal 9")) }, limit: .seconds(1000))
        try device.loop.advance(by: .seconds(60))
        let found = try standings(device)
        let spent = try #require(found.first { $0.subject == .extension })
        #expect(spent.reason == .budget && spent.detail.contains("300 s"))
        let message = try #require(found.first { $0.subject == .message })
        #expect(message.reason == .budget && message.latest == spent.latest)
        let latest = try #require(spent.latest)
        try device.loop.run(until: { device.messages(of: "one").count == 3 }, limit: .seconds(100_000))
        #expect(device.calendar.now >= latest - .seconds(1) && device.calendar.now <= latest + .seconds(60))
    }

    @Test("A download without network waits for one, one without room for that")
    func waits() throws {
        let device = try settled(Scenario())
        let uniques = ["late": "8D1B4F0E-6A4C-4E0B-9A35-0C5B1B2E7F10", "large": "8D1B4F0E-6A4C-4E0B-9A35-0C5B1B2E7F11"]
        let request = { @Sendable (name: String, size: Int64) in
            DownloadRequest(
                identifier: name, uniqueIdentifier: uniques[name] ?? "", url: "https://cdn.example.com/\(name)",
                group: Scenario.group, size: size)
        }
        device.server.set("https://cdn.example.com/late", ScriptedResource(.generated(length: 100, seed: 1)))
        device.isOnline = false
        try device.loop.advance(by: .seconds(1))
        _ = try device.call { try await $0.schedule(request("late", 100), for: Self.app) }
        try device.loop.advance(by: .seconds(1))
        let offline = try standing(device, of: uniques["late"] ?? "")
        #expect(offline.reason == .offline && offline.release.hasPrefix("the device has a network"))
        #expect(try #require(offline.latest) > device.calendar.now + .seconds(86_000))
        device.isOnline = true
        try device.settle()
        #expect(try standings(device).allSatisfy { !$0.isHeld })

        device.tree.setCapacity(1 << 20)
        _ = try device.call { try await $0.schedule(request("large", 1 << 20), for: Self.app) }
        try device.loop.advance(by: .seconds(1))
        let lacking = try standing(device, of: "large")
        #expect(lacking.reason == .space && lacking.detail.contains("more bytes must be free"))
        #expect(lacking.release.hasPrefix("there is room") && lacking.latest != nil)
    }

    @Test("With all places taken the others wait for one of them")
    func places() throws {
        var scenario = Scenario()
        scenario.assets = (0..<6).map {
            Scenario.Asset(identifier: "b\($0)", length: 30_000, isEssential: false, bytesPerSecond: 3_000)
        }
        let device = scenario.device(seed: 1)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.run(until: { requested(scenario, device) == 3 })
        try device.loop.advance(by: .seconds(1))
        let held = try standings(device).filter(\.isHeld)
        #expect(held.count == 3 && held.allSatisfy { $0.reason == .concurrency && $0.subject == .download })
        #expect(held.allSatisfy { $0.detail == "all 3 places for background transfers are taken" })
        let pages = try device.call { service in
            var pages: [[Standing]] = []
            var last: Int64? = 0
            while let sequence = last {
                let page = try await service.heldDownloads(of: Self.app, after: sequence, limit: 2)
                pages.append(page.standings)
                last = page.next
            }
            return pages
        }
        #expect(pages.flatMap(\.self) == held)
        try device.settle()
    }

    @Test("An unknown app and an unknown download are refused with the next step")
    func unknown() throws {
        let device = try settled(Scenario())
        func refusal(_ body: @escaping @Sendable (isolated AssetsService) async throws -> Void) throws -> AssetsError? {
            do { try device.call { try await body($0) } } catch let error as AssetsError { return error }
            return nil
        }
        let app = try refusal { _ = try await $0.standings(of: "nobody") }
        #expect(app?.code == .notInstalled && app?.remedy == "list the apps with: backgroundassets apps")
        let other = try refusal { _ = try await $0.standings(of: "nobody", download: "x") }
        #expect(other == app)
        let download = try refusal { _ = try await $0.standings(of: Self.app, download: "nothing") }
        #expect(download?.code == .downloadDoesNotExist && download?.reason.contains("'nothing'") == true)
        #expect(download?.remedy == "list them with: backgroundassets downloads \(Self.app)")
    }
}
