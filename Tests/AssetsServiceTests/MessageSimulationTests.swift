// Messages: who gets them, how often, and what becomes of the files.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Testing

@Suite("Simulated messages")
struct MessageSimulationTests {
    private func scenario(_ answers: [ScriptedExtension.MessageAnswer]) -> Scenario {
        var scenario = Scenario()
        scenario.assets[1].messageAnswers = answers
        return scenario
    }

    private func settled(_ scenario: Scenario) throws -> SimulatedDevice {
        let device = scenario.device(seed: 1)
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        return device
    }

    @Test("An extension that dies in its callback gets the message again")
    func redelivery() throws {
        let device = try settled(scenario([.died, .hangs, .died]))
        let calls = device.messages(of: "e2")
        #expect(calls.count == 4)
        #expect(calls.last?.outcome == .handled)
        #expect(Set(calls.map(\.uniqueIdentifier)).count == 1)
    }

    @Test("A message that kills its extension every time is given up, its file stays")
    func givenUp() throws {
        let device = try settled(scenario(Array(repeating: .died, count: 20)))
        #expect(device.messages(of: "e2").count == PolicyNumbers.deliveriesMax)
        let folders = try device.tree.list(device.caches)
        #expect(folders.count == 1)
        let path = "\(device.caches)/\(try #require(folders.first))/e2"
        #expect(try device.tree.attribute(path, name: "user.backgroundassets.purgeable") != nil)
        #expect(try device.row(.messageClosed, .crash) != nil)
    }

    @Test("Deaths in a callback are counted across services, and so is the pause after them", arguments: [true, false])
    func deathsAcrossServices(isKilled: Bool) throws {
        let scenario = scenario(Array(repeating: .died, count: 20))
        let device = scenario.device(seed: 1)
        try device.start()
        _ = try device.install(scenario.source)
        let deaths = {
            device.messages(of: "e2").filter { if case .died = $0.outcome { true } else { false } }.count
        }
        for number in 1..<PolicyNumbers.deliveriesMax {
            try device.loop.run(until: { deaths() == number }, limit: .seconds(7200))
            try device.loop.advance(by: .milliseconds(200))
            let row = try device.query { try $0.downloads(limit: 10) }.first { $0.request.identifier == "e2" }
            #expect(row?.deaths == number)
            #expect(row?.detail.contains("died in the callback") == true)
            if isKilled { device.kill() } else { try device.stop() }
            let pause = PolicyNumbers.redeliveryPause(afterDeaths: number)
            try device.loop.advance(by: pause / 4)
            try device.start()
            // What is left of the pause is waited for.
            try device.loop.advance(by: pause / 4)
            #expect(deaths() == number)
        }
        try device.loop.run(until: { deaths() == PolicyNumbers.deliveriesMax }, limit: .seconds(7200))
        try device.settle()
        #expect(device.messages(of: "e2").count == PolicyNumbers.deliveriesMax)
        #expect(try device.row(.messageClosed, .crash) != nil)
        #expect(try device.tree.list(device.caches).count == 1)
        #expect(try device.query { try $0.downloads(limit: 10) } == [])
    }

    @Test("While the extension's pause lasts people are told why, and until when")
    func pauseIsShown() throws {
        let scenario = scenario([.died, .died])
        let device = scenario.device(seed: 1)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.run(until: { device.messages(of: "e2").count == 2 })
        try device.loop.advance(by: .seconds(1))
        let record = try #require(
            try device.query { try $0.downloads(limit: 10) }.first { $0.request.identifier == "e2" })
        let wait = device.inspect { $0.messageWait(of: record) }
        #expect(wait?.reason == .backoff && wait?.detail.contains("2 times of 8") == true)
        #expect(device.inspect { $0.nextTelling(of: record) } == record.notBefore)
        let left = try #require(record.notBefore) - device.calendar.now
        #expect(left > .seconds(6) && left < .seconds(8))
        let rows = try device.journal().filter { $0.event == .messageWaits }
        #expect(rows.count == 2 && rows.allSatisfy { $0.reason == .backoff && $0.download == record.id })
        try device.settle()
        #expect(device.moved("e2") != nil)
    }

    @Test("An extension that has moved its file and dies is told again and finds it moved")
    func movedAndDied() throws {
        let device = try settled(scenario([.movedAndDied, .movedAndDied]))
        #expect(device.messages(of: "e2").count == 3)
        #expect(device.moved("e2") != nil)
    }

    @Test("While one message waits for its pause the others are told")
    func othersGoOn() throws {
        let scenario = scenario([.died, .died, .died])
        let device = scenario.device(seed: 1)
        try device.installAndSettle(scenario)
        let calls = device.extensions.calls
        let last = try #require(calls.lastIndex { $0.identifier == "e2" })
        for name in ["e1", "l1", "l2"] {
            #expect(try #require(calls.firstIndex { $0.identifier == name }) < last)
        }
        #expect(try scenario.problems(of: device) == [])
    }

    @Test("An extension without the method is not asked twice, the file stays and may be purged")
    func notImplemented() throws {
        let device = try settled(scenario([.notImplemented]))
        #expect(device.messages(of: "e2").count == 1)
        #expect(try device.tree.list(device.caches).count == 1)
        #expect(try device.row(.messageClosed, .notImplemented) != nil)
    }

    @Test("A file that is not moved goes when the callback has ended")
    func unmoved() throws {
        let device = try settled(scenario([.left]))
        #expect(try device.tree.list(device.caches) == [])
        #expect(device.moved("e2") == nil)
        #expect(try device.row(.fileDeleted)?.reason == .unmoved)
    }

    @Test("A delegate that is taken away in its callback has handled the message, and the extension stays asleep")
    func delegateTakenAway() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 2)
        try device.start()
        let listener = try Listener(on: device)
        _ = try device.install(scenario.source)
        try device.loop.run(until: { listener.finished.count == 4 })
        try device.call { try $0.setDelegate(false, session: listener.session, app: Scenario.app) }
        for case .finished(_, _, let number) in listener.finished {
            try device.call {
                try $0.answer(session: listener.session, app: Scenario.app, number: number, isHandled: true)
            }
        }
        try device.call { $0.closeSession(listener.session) }
        try device.settle()
        #expect(device.extensions.calls.map(\.kind) == [.content])
        let closed = try device.journal().filter { $0.event == .messageClosed }
        #expect(closed.count == 4 && closed.allSatisfy { $0.reason == .none })
    }

    @Test("An extension without the content request is told of the occasion before the gate opens")
    func occasion() throws {
        var scenario = Scenario()
        scenario.contentAnswers = [.notImplemented]
        let device = scenario.device(seed: 4)
        try device.installAndSettle(scenario)
        #expect(device.extensions.calls.map(\.kind) == [.content, .event])
        let rows = try device.journal()
        let opened = try #require(rows.firstIndex { $0.event == .gateOpened })
        let called = try #require(rows.lastIndex { $0.event == .extensionCalled })
        #expect(called < opened && rows[called].detail == "applicationDidInstall(metadata:)")
        #expect(rows[opened].detail == "nothing-essential")
    }

    @Test("A delegate that handles a message keeps it from the extension")
    func delegate() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 2)
        try device.start()
        let listener = try Listener(on: device)
        _ = try device.install(scenario.source)
        try device.loop.run(until: { listener.finished.count == 4 })
        #expect(device.extensions.calls.map(\.kind) == [.content])
        for case .finished(let record, let path, let number) in listener.finished {
            #expect(path.hasPrefix("/device/\(device.caches)/") && path.hasSuffix("/\(record.request.identifier)"))
            try device.call {
                try $0.answer(session: listener.session, app: Scenario.app, number: number, isHandled: true)
            }
        }
        try device.call { $0.closeSession(listener.session) }
        try device.settle()
        #expect(try device.tree.list(device.caches) == [])
        #expect(device.extensions.calls.count == 1)
        for asset in scenario.assets { #expect(listener.written(of: asset.identifier) == asset.length) }
    }

    @Test("A delegate without a method for progress is told of everything else")
    func withoutProgress() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 2)
        try device.start()
        let listener = try Listener(on: device, hearsProgress: false)
        _ = try device.install(scenario.source)
        try device.loop.run(until: { listener.finished.count == 4 })
        #expect(listener.heard.count { if case .began = $0 { true } else { false } } >= 4)
        #expect(listener.heard.allSatisfy { if case .progress = $0 { false } else { true } })
        try device.call { $0.closeSession(listener.session) }
        try device.settle()
    }
}

/// A process of the app with a delegate.
private final class Listener: Sendable {
    let session: String
    private let events: EventList

    private final class EventList: Sendable {
        let all = Guarded<[SessionEvent]>([])
    }

    init(on device: SimulatedDevice, hearsProgress: Bool = true) throws {
        let events = EventList()
        self.events = events
        session = try device.call { service in
            let id = service.openSession(app: Scenario.app, isExtension: false) { event in
                events.all.withLock { $0.append(event) }
            }
            try service.setDelegate(true, hearsProgress: hearsProgress, session: id, app: Scenario.app)
            return id
        }
    }

    var heard: [SessionEvent] { events.all.withLock { $0 } }
    var finished: [SessionEvent] { heard.filter { if case .finished = $0 { true } else { false } } }

    /// Sum of what was told as written.
    func written(of identifier: String) -> Int {
        heard.reduce(0) { sum, event in
            guard case .progress(let record, let written, _, _) = event, record.request.identifier == identifier else {
                return sum
            }
            return sum + Int(written)
        }
    }
}
