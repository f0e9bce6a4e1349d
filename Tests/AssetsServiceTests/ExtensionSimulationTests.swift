// Extensions that come to their limits: the real service, the simulated kernel and time.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Testing

@Suite("Simulated limits of extensions")
struct ExtensionSimulationTests {
    private func scenario(_ content: ScriptedExtension.ContentAnswer) -> Scenario {
        var scenario = Scenario()
        scenario.contentAnswers = [content]
        return scenario
    }

    private func runs(_ device: SimulatedDevice) throws -> [ExtensionRun] {
        try device.query { try $0.extensionRuns(app: Scenario.app, limit: 100) }
    }

    private func used(_ device: SimulatedDevice) throws -> Duration {
        try device.call { try await $0.extensionLedger(of: Scenario.app) }.used
    }

    private func settle(_ device: SimulatedDevice) throws {
        try device.settle()
        try device.loop.advance(by: .seconds(15))
        #expect(device.extensions.problems == [])
    }

    private func runUntilKilled(_ device: SimulatedDevice) throws {
        try device.loop.run(
            until: { device.extensions.processes.events.contains(.ended("killed by signal 9")) },
            limit: .seconds(1000))
    }

    @Test("It is stopped after each round of messages, goes on for the next, and is ended when none follows")
    func suspended() throws {
        let device = Scenario().device(seed: 1)
        try device.installAndSettle(Scenario())
        try device.loop.run(until: { device.extensions.processes.isStopped(Scenario.app) })
        try device.loop.advance(by: PolicyNumbers.extensionGrace - .seconds(2))
        #expect(device.extensions.processes.isAlive(Scenario.app))
        try device.loop.advance(by: .seconds(4))
        #expect(!device.extensions.processes.isAlive(Scenario.app))
        let events = device.extensions.processes.events
        #expect(events.first == .launched && events.contains(.stopped))
        #expect(Array(events.suffix(4)) == [.stopped, .resumed, .told, .ended("exited with 0")])
        #expect(try device.journal().contains { $0.event == .extensionSuspended })
        let run = try #require(try runs(device).first)
        #expect(run.reason == .none && run.endedAt != nil && run.calls > 0)
        #expect(device.extensions.problems == [])
    }

    @Test("What does not exit when it is asked is killed soon after")
    func ignoresEnd() throws {
        let device = Scenario().device(seed: 2)
        device.extensions.habits.ignoresEnd = true
        try device.installAndSettle(Scenario())
        try settle(device)
        #expect(device.extensions.processes.events.last == .ended("killed by signal 9"))
        #expect(try runs(device).allSatisfy { $0.reason == .none })
    }

    @Test("A lock that is let go of delays the stop, one that is kept ends the process", arguments: [0.3, 60])
    func locks(seconds: Double) throws {
        let device = Scenario().device(seed: 3)
        device.extensions.habits.lock = .seconds(seconds)
        try device.installAndSettle(Scenario())
        try settle(device)
        let events = device.extensions.processes.events
        #expect(events.contains(.locked))
        #expect(events.contains(.stopped) == (seconds < 1))
        #expect(try runs(device).contains { $0.reason == .lock } == (seconds > 1))
        if seconds > 1 {
            let row = try #require(try device.journal().first { $0.event == .extensionEnded && $0.reason == .lock })
            #expect(row.detail.contains("home/lock"))
        }
    }

    @Test("Too much memory ends it, half of it is warned of; both stand in the ledger with the peak")
    func memory() throws {
        let most = PolicyNumbers.extensionMemoryMax
        let (tooMuch, much) = (most + (1 << 20), most / 2 + (1 << 20))
        let device = scenario(.uses(tooMuch)).device(seed: 4)
        try device.installAndSettle(scenario(.uses(tooMuch)))
        try settle(device)
        #expect(try device.row(.gateOpened)?.detail == "extension-failed")
        let run = try #require(try runs(device).first)
        #expect(run.reason == .memory && run.memoryPeak == tooMuch && run.detail.contains("\(tooMuch >> 20) MiB"))
        let modest = scenario(.uses(much)).device(seed: 4)
        try modest.installAndSettle(scenario(.uses(much)))
        try settle(modest)
        #expect(try modest.row(.warning, .memory) != nil)
        #expect(try runs(modest).last?.warnings == [.memory])
        #expect(try modest.row(.gateOpened)?.detail == "complete")
    }

    @Test(
        "A death or nonsense at the install request opens the gate at once, a hang after a minute",
        arguments: [ScriptedExtension.ContentAnswer.died, .nonsense, .hangs])
    func deaths(answer: ScriptedExtension.ContentAnswer) throws {
        let device = scenario(answer).device(seed: 5)
        try device.start()
        _ = try device.install()
        try device.wait(for: .launchable, of: Scenario.app)
        try device.loop.advance(by: .seconds(1))
        let rows = try device.journal()
        let called = try #require(rows.first { $0.event == .extensionCalled })
        let opened = try #require(rows.first { $0.event == .gateOpened })
        let took = opened.time - called.time
        if answer == .hangs {
            #expect(took >= PolicyNumbers.contentRequestLimit && took < PolicyNumbers.contentRequestLimit + .seconds(1))
        } else {
            #expect(took < .seconds(1))
        }
        #expect(opened.detail == "extension-failed")
        try settle(device)
        #expect(device.extensions.processes.events.filter { $0 == .launched }.count == 1)
        #expect(try runs(device).count == 1)
    }

    @Test("A call costs what it takes, to the moment; a stopped extension costs nothing")
    func runtime() throws {
        let device = scenario(.slow(.seconds(3))).device(seed: 6)
        device.extensions.latency = .milliseconds(20)
        try device.start()
        _ = try device.install()
        try device.wait(for: .essential, of: Scenario.app)
        let expected = Duration.milliseconds(3020)
        #expect(try used(device) == expected)
        #expect(try runs(device).map(\.runtime) == [expected])
        #expect(device.extensions.calls.count == 1)
    }

    @Test("A callback that never returns is ended by the budget; messages wait for a new day and are told then")
    func budget() throws {
        var scenario = Scenario()
        scenario.assets = [Scenario.Asset(identifier: "one", length: 1000, isEssential: false)]
        scenario.assets[0].messageAnswers = [.hangs]
        let device = scenario.device(seed: 7)
        try device.start()
        _ = try device.install()
        try runUntilKilled(device)
        try device.loop.advance(by: .seconds(1))
        let ended = try #require(try device.row(.extensionEnded, .budget))
        let called = try #require(try device.journal().last { $0.event == .extensionCalled })
        #expect(ended.time - called.time <= .seconds(301))
        try device.loop.advance(by: .seconds(60))
        let refused = try #require(try device.row(.extensionRefused))
        #expect(refused.reason == .budget)
        #expect(try device.row(.warning, .budget)?.detail.contains("150 s") == true)
        #expect(device.messages(of: "one").count == 1)
        // A restart changes nothing of it.
        try device.restart()
        try device.loop.advance(by: .seconds(3600 * 20))
        #expect(device.messages(of: "one").count == 1)
        try settle(device)
        #expect(device.messages(of: "one").map(\.outcome) == [.died(.crash, "it ended inside the callback"), .handled])
        let told = try #require(try device.journal().last { $0.event == .extensionCalled })
        #expect(told.time - ended.time >= .seconds(86_400 - 600) && told.time - ended.time <= .seconds(86_400 + 1200))
    }

    @Test("A simulated event gives a new day: what waited is told at once")
    func reset() throws {
        var scenario = Scenario()
        scenario.assets = [Scenario.Asset(identifier: "one", length: 1000, isEssential: false)]
        scenario.assets[0].messageAnswers = [.hangs]
        let device = scenario.device(seed: 8)
        try device.start()
        _ = try device.install()
        try runUntilKilled(device)
        try device.loop.advance(by: .seconds(5))
        #expect(try device.row(.extensionRefused) != nil)
        try device.call { $0.resetRuntime(of: Scenario.app) }
        try device.loop.advance(by: .seconds(5))
        #expect(device.messages(of: "one").last?.outcome == .handled)
        #expect(try used(device) < .seconds(1))
        try settle(device)
    }

    @Test("While its session has exclusive control or waits for it, it is not stopped, and that counts")
    func control() throws {
        var scenario = Scenario()
        scenario.assets = []
        let device = scenario.device(seed: 9)
        try device.start()
        let sessions = try device.call { service in
            (
                service.openSession(app: Scenario.app, isExtension: false) { _ in },
                service.openSession(app: Scenario.app, isExtension: true) { _ in }
            )
        }
        _ = try device.install(kind: .sideload)
        try device.loop.run(until: { device.extensions.processes.isStopped(Scenario.app) })
        let before = try used(device)
        _ = try device.call { try $0.acquireControl(session: sessions.0, app: Scenario.app, within: nil) }
        #expect(device.extensions.processes.isStopped(Scenario.app))
        // What it asked for before it was stopped wakes it again.
        let ticket = try device.call { try $0.acquireControl(session: sessions.1, app: Scenario.app, within: nil) }
        #expect(!ticket.isGranted)
        try device.loop.advance(by: .seconds(60))
        #expect(device.extensions.processes.isAlive(Scenario.app))
        #expect(!device.extensions.processes.isStopped(Scenario.app))
        #expect(try used(device) - before == .seconds(60))
        try device.call { $0.closeSession(sessions.0) }
        try device.loop.advance(by: .seconds(5))
        #expect(!device.extensions.processes.isStopped(Scenario.app))
        try device.call { service in
            try service.releaseControl(session: sessions.1, app: Scenario.app, ticket: ticket.ticket)
        }
        try device.loop.advance(by: .seconds(1))
        #expect(device.extensions.processes.isStopped(Scenario.app))
        #expect(try used(device) - before == .seconds(65))
        try device.call { $0.closeSession(sessions.1) }
        try settle(device)
        #expect(!device.extensions.processes.isAlive(Scenario.app))
    }

    @Test("A delegate in the extension is told while it is awake, and keeps it awake until it has answered")
    func delegate() throws {
        var scenario = Scenario()
        scenario.assets = [
            Scenario.Asset(identifier: "first", length: 100, isEssential: false),
            Scenario.Asset(identifier: "second", length: 10_000, isEssential: false, bytesPerSecond: 2_000),
        ]
        scenario.assets[0].messageAnswers = [.slow(.seconds(20))]
        let device = scenario.device(seed: 10)
        try device.start()
        let number = Guarded<Int64?>(nil)
        let session = try device.call { service in
            let id = service.openSession(app: Scenario.app, isExtension: true) { event in
                if case .finished(_, _, let event) = event { number.withLock { $0 = event } }
            }
            try service.setDelegate(true, session: id, app: Scenario.app)
            return id
        }
        _ = try device.install(kind: .sideload)
        try device.loop.run(until: { number.withLock { $0 } != nil })
        // It slept when the first one came, so that went to its entry point; which has long returned.
        try device.loop.advance(by: .seconds(30))
        #expect(device.extensions.calls.map(\.identifier) == ["", "first"])
        #expect(device.extensions.calls.last?.outcome == .handled)
        #expect(device.extensions.processes.isAlive(Scenario.app))
        #expect(!device.extensions.processes.isStopped(Scenario.app))
        let event = try #require(number.withLock { $0 })
        try device.call { try $0.answer(session: session, app: Scenario.app, number: event, isHandled: true) }
        try device.loop.advance(by: .seconds(1))
        #expect(device.extensions.processes.isStopped(Scenario.app))
        try device.call { $0.closeSession(session) }
        try settle(device)
        #expect(!device.extensions.processes.isAlive(Scenario.app))
    }

    @Test("Containers that hold more than the app declares hold up its extension until they do not")
    func storage() throws {
        var scenario = Scenario()
        scenario.assets = [
            Scenario.Asset(identifier: "one", length: 40_000, isEssential: false, bytesPerSecond: 4_000)
        ]
        let device = scenario.device(seed: 11)
        var app = AppDescription.simulated(Scenario.app, manifestURL: Scenario.manifestURL)
        (app.maxInstallSize, app.essentialMaxInstallSize) = (100_000, nil)
        device.staging.set(scenario.source, app)
        let container = "Containers/Group/" + ContainerFolders.name(of: Scenario.group, 1, 2)
        let large = "\(container)/large"
        try device.tree.makeDirectory(container)
        let file = try device.tree.openAppendable(large)
        let bytes = [UInt8](repeating: 1, count: 200_000)
        try bytes.withUnsafeBytes { try file.append($0) }
        try device.start()
        _ = try device.install()
        try device.loop.advance(by: .seconds(100))
        #expect(try device.row(.warning, .size) != nil)
        #expect(device.messages(of: "one").isEmpty)
        #expect(try device.journal().contains { $0.event == .extensionRefused && $0.reason == .size })
        try device.tree.remove(large)
        try device.loop.advance(by: PolicyNumbers.storageLook + .seconds(5))
        #expect(device.messages(of: "one").map(\.outcome) == [.handled])
        try settle(device)
    }

    @Test("A service that is killed while an extension runs closes its row at the next start")
    func killed() throws {
        let device = scenario(.slow(.seconds(30))).device(seed: 12)
        try device.start()
        _ = try device.install()
        try device.loop.run(until: { device.extensions.calls.count == 1 })
        try device.loop.advance(by: .seconds(15))
        device.kill()
        try device.start()
        let first = try #require(try runs(device).last)
        #expect(first.reason == .restart && first.endedAt == nil)
        // What was written down of a long call is not lost.
        #expect(try used(device) >= PolicyNumbers.runtimeSaveTime)
        try settle(device)
    }
}
