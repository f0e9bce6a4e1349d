// Servers and networks that fail: retries, patience, resumption.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Testing

@Suite("Simulated network")
struct NetworkSimulationTests {
    private func settled(_ scenario: Scenario, seed: UInt64 = 1) throws -> SimulatedDevice {
        let device = scenario.device(seed: seed)
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        return device
    }

    /// One essential asset that gets these answers first.
    private func scenario(essential answers: [ScriptedResource.Answer]) -> Scenario {
        var scenario = Scenario()
        scenario.assets[0].answers = answers
        return scenario
    }

    @Test("A server that is busy at first is asked again after a pause, and the gate waits")
    func busyServer() throws {
        let device = try settled(scenario(essential: [.status(503), .status(503)]))
        let log = device.server.log(of: "https://cdn.example.com/e1")
        #expect(log.map(\.status) == [503, 503, 200])
        #expect(log[1].time - log[0].time >= .seconds(1))
        #expect(log[1].time - log[0].time <= .seconds(3))
        #expect(log[2].time - log[1].time <= .seconds(5))
        #expect(try device.row(.gateOpened)?.detail == "complete")
        #expect(try device.journal().filter { $0.event == .downloadWaits }.map(\.reason) == [.http, .http])
    }

    @Test("A server's own word on when to come back is kept")
    func retryAfter() throws {
        let later = HeaderField(name: "Retry-After", value: "7")
        let device = try settled(scenario(essential: [.status(503, [later])]))
        let log = device.server.log(of: "https://cdn.example.com/e1")
        #expect(log.count == 2)
        #expect(log[1].time - log[0].time >= .seconds(7))
        #expect(log[1].time - log[0].time < .seconds(8))
    }

    @Test("An essential asset whose server stays away fails, its message follows the gate")
    func serverStaysAway() throws {
        let device = try settled(scenario(essential: Array(repeating: .status(500), count: 100)))
        #expect(device.messages(of: "e1").map(\.kind) == [.failed])
        #expect(try device.row(.gateOpened)?.detail == "complete")
        let log = device.server.log(of: "https://cdn.example.com/e1")
        let tried = try #require(log.last).time - log[0].time
        #expect(tried >= .seconds(30) && tried < .seconds(35))
    }

    @Test("Non-essential downloads are tried for a day, with ever longer pauses")
    func backgroundPatience() throws {
        var scenario = Scenario()
        scenario.assets[2].answers = Array(repeating: .status(503), count: 10_000)
        let device = try settled(scenario)
        #expect(device.messages(of: "l1").map(\.kind) == [.failed])
        let log = device.server.log(of: "https://cdn.example.com/l1")
        let pauses = zip(log.dropFirst(), log).map { $0.time - $1.time }
        #expect(pauses.allSatisfy { $0 >= .milliseconds(20) && $0 <= .seconds(301) })
        #expect(try #require(log.last).time - log[0].time >= .seconds(24 * 3600))
        #expect(log.count > 300 && log.count < 2000)
    }

    @Test("The gate opens by itself when essential assets come too slowly, and they go on afterwards")
    func gatePatience() throws {
        var scenario = Scenario()
        scenario.assets[0].bytesPerSecond = 200
        let device = try settled(scenario)
        let opened = try #require(try device.row(.gateOpened))
        #expect(opened.reason == .timeout)
        let shut = try #require(try device.row(.gateShut))
        let waited = opened.time - shut.time
        #expect(waited >= PolicyNumbers.gatePatience && waited < PolicyNumbers.gatePatience + .seconds(5))
        #expect(device.moved("e1") == device.server.content(of: "https://cdn.example.com/e1"))
    }

    @Test("A connection that breaks costs no byte")
    func brokenConnection() throws {
        let device = try settled(scenario(essential: [.cut(after: 20_000), .cut(after: 20_000)]))
        let log = device.server.log(of: "https://cdn.example.com/e1")
        #expect(log.map(\.status) == [200, 206, 206])
        #expect(log.map(\.offset) == [0, 20_000, 40_000])
        #expect(log.reduce(0) { $0 + $1.sent } == 60_000)
    }

    @Test("A file that changes on the server meanwhile is never spliced")
    func changedFile() throws {
        let scenario = scenario(essential: [.cut(after: 20_000)])
        let device = scenario.device(seed: 2)
        try device.start()
        _ = try device.install(scenario.source)
        let url = "https://cdn.example.com/e1"
        try device.loop.run(until: { device.server.log(of: url).first?.sent == 20_000 })
        device.server.set(
            url, ScriptedResource(.generated(length: 60_000, seed: 99), etag: "\"2\"", bytesPerSecond: 40_000))
        try device.settle()
        #expect(device.moved("e1") == device.server.content(of: url))
        #expect(device.server.log(of: url).map(\.status) == [200, 200])
    }

    @Test("A file of another size than announced fails when it is essential")
    func wrongSize() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 3)
        device.server.set("https://cdn.example.com/e1", ScriptedResource(.generated(length: 60_001, seed: 1)))
        try device.installAndSettle(scenario)
        #expect(device.messages(of: "e1").map(\.kind) == [.failed])
        #expect(device.moved("e1") == nil)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("A redirect within the allowed domains is followed, one out of them is not")
    func redirects() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 4)
        for (name, host) in [("e1", "other.example.com"), ("l1", "elsewhere.org")] {
            let url = "https://cdn.example.com/\(name)"
            var resource = ScriptedResource(.bytes(device.server.content(of: url) ?? []))
            device.server.set("https://\(host)/\(name)", resource)
            resource.redirect = "https://\(host)/\(name)"
            device.server.set(url, resource)
        }
        try device.installAndSettle(scenario)
        #expect(device.messages(of: "e1").map(\.kind) == [.finished])
        #expect(device.messages(of: "l1").map(\.kind) == [.failed])
        #expect(device.server.log.filter { $0.url.contains("elsewhere") } == [])
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("Without network the installation fails over in seconds; what is not essential waits for the network")
    func offline() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 5)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.run(until: { device.server.log.contains { $0.url.hasSuffix("/e1") } })
        device.server.isReachable = false
        try device.wait(for: .launchable, of: Scenario.app, limit: .seconds(10))
        try device.loop.advance(by: .seconds(1800))
        #expect(device.messages(of: "e1").map(\.kind) == [.failed])
        #expect(device.messages(of: "l1") == [])
        device.server.isReachable = true
        try device.settle(limit: .seconds(301))
        #expect(device.messages(of: "l1").map(\.kind) == [.finished])
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("Without network nothing is tried, and all of it at once when it is back")
    func networkComesBack() throws {
        var scenario = Scenario()
        scenario.assets = (0..<100).map { Scenario.Asset(identifier: "l\($0)", length: 100, isEssential: false) }
        let device = scenario.device(seed: 7)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.run(until: { device.server.log.contains { $0.url.hasSuffix("/l3") } })
        device.isOnline = false
        let tried = device.server.log.count
        try device.loop.advance(by: .seconds(3600))
        // Those that were running end, nothing else is asked for.
        #expect(device.server.log.count <= tried)
        #expect(device.messages(of: "l99") == [])
        #expect(try device.journal().filter { $0.event == .networkChanged }.map(\.reason) == [.offline])
        #expect(try device.journal().filter { $0.event == .downloadWaits }.count <= 8)
        let held = try device.query { try $0.liveDownloads(limit: 200) }
        #expect(held.allSatisfy { $0.reason == .offline && $0.notBefore != nil })
        let back = device.loop.now
        device.isOnline = true
        try device.loop.run(until: { device.server.log.count > tried })
        #expect(device.loop.now - back <= .milliseconds(600))
        try device.settle(limit: .seconds(60))
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("A download that breaks off with the network goes on at the same byte when it is back")
    func goesOnAtTheSameByte() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 8)
        try device.start()
        _ = try device.install(scenario.source)
        let url = "https://cdn.example.com/l1"
        try device.loop.run(until: { (device.server.log(of: url).first?.sent ?? 0) > 1000 })
        device.isOnline = false
        try device.loop.advance(by: .seconds(60))
        device.isOnline = true
        try device.settle(limit: .seconds(60))
        let log = device.server.log(of: url)
        #expect(log.count == 2 && log[1].status == 206 && log[1].offset == log[0].sent)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("An essential asset without network fails after five seconds, although nothing was tried")
    func essentialOffline() throws {
        let scenario = scenario(essential: [])
        let device = scenario.device(seed: 9)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.run(until: { (try? device.row(.extensionAnswered)) != nil })
        device.isOnline = false
        let start = device.calendar.now
        try device.wait(for: .launchable, of: Scenario.app, limit: .seconds(10))
        let waited = device.calendar.now - start
        #expect(waited >= .seconds(4) && waited <= .seconds(6))
        try device.loop.advance(by: .seconds(60))
        #expect(device.messages(of: "e1").map(\.kind) == [.failed])
        device.isOnline = true
        try device.settle(limit: .seconds(60))
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("Without network for good, background downloads are given up after a day")
    func offlineForGood() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 10)
        try device.start()
        _ = try device.install(scenario.source)
        try device.wait(for: .launchable, of: Scenario.app)
        device.isOnline = false
        let start = device.calendar.now
        try device.loop.run(until: { device.messages(of: "l1") != [] }, limit: .seconds(2 * 86400))
        #expect(device.messages(of: "l1").map(\.kind) == [.failed])
        let waited = device.calendar.now - start
        #expect(waited >= .seconds(86390) && waited < .seconds(86500))
    }

    @Test("A server's own pause is kept when the network changes, a network's is not")
    func pausesOfServersStay() throws {
        var scenario = Scenario()
        let later = HeaderField(name: "Retry-After", value: "300")
        scenario.assets[2].answers = [.status(503, [later])]
        let device = scenario.device(seed: 11)
        try device.start()
        _ = try device.install(scenario.source)
        let url = "https://cdn.example.com/l1"
        try device.loop.run(until: { device.server.log(of: url).count == 1 })
        try device.loop.advance(by: .seconds(30))
        device.isOnline = false
        try device.loop.advance(by: .seconds(30))
        device.isOnline = true
        try device.loop.advance(by: .seconds(30))
        #expect(device.server.log(of: url).count == 1)
        try device.settle()
        let log = device.server.log(of: url)
        #expect(log.count == 2 && log[1].time - log[0].time >= .seconds(300))
    }

    @Test("A network that flaps for an hour loses nothing, and servers are not flooded", arguments: [12, 13, 14])
    func flapping(seed: UInt64) throws {
        var scenario = Scenario()
        scenario.assets[2].length = 400_000
        let device = scenario.device(seed: seed)
        var dice = SeededSequence(seed: seed, stream: "flapping")
        try device.start()
        _ = try device.install(scenario.source)
        try device.wait(for: .launchable, of: Scenario.app)
        for _ in 0..<400 {
            device.isOnline.toggle()
            try device.loop.advance(by: .milliseconds(Int64(dice.next(below: 3000))))
        }
        device.isOnline = true
        try device.settle(limit: .seconds(3600))
        let log = device.server.log(of: "https://cdn.example.com/l1")
        #expect(log.count < 150)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("What waited for the network has not been tried all that time: the next day is another one")
    func secondOutage() throws {
        var scenario = Scenario()
        scenario.assets = (0..<40).map { Scenario.Asset(identifier: "l\(10 + $0)", length: 100, isEssential: false) }
        for index in 20..<40 { scenario.assets[index].answers = [.status(503)] }
        let device = scenario.device(seed: 22)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.run(until: { device.server.log.contains { $0.url.hasSuffix("/l13") } })
        device.isOnline = false
        try device.loop.advance(by: .seconds(60))
        device.isOnline = true
        try device.loop.run(until: { device.server.log.contains { $0.url.hasSuffix("/l20") } })
        device.isOnline = false
        device.calendar.set(to: device.calendar.now + .seconds(25 * 3600))
        try device.loop.advance(by: .seconds(300))
        device.isOnline = true
        try device.settle(limit: .seconds(3600))
        #expect(try device.journal().filter { $0.event == .downloadFailed } == [])
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("A machine that finds a sign-in page after days without network keeps what it has")
    func portalAfterDays() throws {
        var scenario = Scenario()
        scenario.assets[2].answers = [.content] + Array(repeating: .signIn, count: 6)
        let device = scenario.device(seed: 23)
        try device.start()
        _ = try device.install(scenario.source)
        let url = "https://cdn.example.com/l1"
        try device.loop.run(until: { (device.server.log(of: url).first?.sent ?? 0) > 1000 })
        device.isOnline = false
        try device.loop.advance(by: .seconds(1))
        device.calendar.set(to: device.calendar.now + .seconds(3 * 86_400))
        device.isOnline = true
        try device.settle(limit: .seconds(3600))
        let log = device.server.log(of: url)
        #expect(log.count == 8 && log.last?.offset == log.first?.sent)
        #expect(device.messages(of: "l1").map(\.kind) == [.finished])
    }

    @Test("A calendar that is set forward ends nothing that was tried twice")
    func calendarSetForward() throws {
        var scenario = Scenario()
        let unknown = TransportFailure(kind: .resolve, code: URLErrorCode.cannotFindHost, text: "no such name")
        scenario.assets[2].answers = [.failure(unknown), .failure(unknown)]
        let device = scenario.device(seed: 24)
        try device.start()
        _ = try device.install(scenario.source)
        let url = "https://cdn.example.com/l1"
        try device.loop.run(until: { device.server.log(of: url).count == 1 })
        try device.loop.advance(by: .milliseconds(100))
        device.calendar.set(to: device.calendar.now + .seconds(3 * 86_400))
        try device.settle(limit: .seconds(3600))
        #expect(device.messages(of: "l1").map(\.kind) == [.finished])
    }

    @Test(
        "A calendar that is set back keeps nothing waiting, also while no service runs",
        arguments: [Duration.seconds(7200), .seconds(400 * 86_400)], [true, false])
    func calendarSetBack(step: Duration, isKilled: Bool) throws {
        var scenario = Scenario()
        let later = HeaderField(name: "Retry-After", value: "60")
        scenario.assets[2].answers = [.status(503, [later])]
        let device = scenario.device(seed: 26)
        try device.start()
        _ = try device.install(scenario.source)
        let url = "https://cdn.example.com/l1"
        try device.loop.run(until: { device.server.log(of: url).count == 1 })
        try device.loop.advance(by: .seconds(10))
        if isKilled { device.kill() }
        device.calendar.set(to: device.calendar.now - step)
        if isKilled { try device.start() }
        try device.loop.run(until: { device.server.log(of: url).count == 2 }, limit: .seconds(90))
        let log = device.server.log(of: url)
        #expect(log[1].time - log[0].time >= .seconds(isKilled ? 0 : 60))
        try device.settle(limit: .seconds(3600))
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("A server that always breaks off at the same byte is asked ever less often, and given up after a day")
    func sameBytesAgain() throws {
        var scenario = Scenario()
        scenario.assets[2].answers = Array(repeating: .cut(after: 20_000), count: 10_000)
        scenario.assets[2].parts = .none
        let device = try settled(scenario)
        #expect(device.messages(of: "l1").map(\.kind) == [.failed])
        let log = device.server.log(of: "https://cdn.example.com/l1")
        #expect(log.count > 300 && log.count < 2000)
        #expect(try #require(log.last).time - log[0].time >= .seconds(24 * 3600))
    }

    @Test("Bytes end the history of failures, whatever ends the attempt that brought them", arguments: [true, false])
    func bytesEndHistory(isKilled: Bool) throws {
        var scenario = Scenario()
        scenario.assets[2].length = 400_000
        scenario.assets[2].answers = [.status(503), .content, .status(503)]
        let device = scenario.device(seed: 25)
        try device.start()
        _ = try device.install(scenario.source)
        let url = "https://cdn.example.com/l1"
        try device.loop.run(until: {
            device.server.log(of: url).count == 2 && device.server.log(of: url)[1].sent > 100_000
        })
        device.calendar.set(to: device.calendar.now + .seconds(25 * 3600))
        if isKilled {
            device.kill()
            try device.start()
        } else {
            try device.restart()
        }
        try device.settle(limit: .seconds(3600))
        #expect(device.server.log(of: url).map(\.status) == [503, 200, 503, 206])
        #expect(device.messages(of: "l1").map(\.kind) == [.finished])
    }

    @Test("A full disk fails what is essential at once, and the rest goes on when there is room")
    func fullDisk() throws {
        var scenario = Scenario()
        scenario.assets[0].length = 2_000_000
        scenario.assets[2].length = 1_700_000
        scenario.assets[2].bytesPerSecond = 400_000
        let device = scenario.device(seed: 6)
        device.tree.setCapacity(2 << 20)
        try device.start()
        _ = try device.install(scenario.source)
        try device.wait(for: .launchable, of: Scenario.app, limit: .seconds(60))
        try device.loop.advance(by: .seconds(3600))
        #expect(device.messages(of: "e1").map(\.kind) == [.failed])
        let failed = try device.journal().first { $0.event == .downloadFailed }
        #expect(failed?.reason == .space && failed?.detail.contains("more bytes must be free") == true)
        // What is small goes ahead of what does not fit.
        #expect(device.messages(of: "l2").map(\.kind) == [.finished])
        #expect(device.messages(of: "l1") == [] && device.server.log(of: "https://cdn.example.com/l1") == [])
        let waits = try device.journal().filter { $0.event == .downloadWaits }
        #expect(waits.count == 1 && waits.first?.reason == .space)
        let rows = try device.journal().count
        device.tree.setCapacity(1 << 30)
        let start = device.loop.now
        try device.settle(limit: .seconds(120))
        #expect(device.loop.now - start < .seconds(80))
        #expect(device.moved("l1") == device.server.content(of: "https://cdn.example.com/l1"))
        #expect(try device.journal().count - rows < 10)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("A disk that fills up in the middle pauses a download, which goes on at the same byte when there is room")
    func fillsUp() throws {
        var scenario = Scenario()
        scenario.assets = [
            Scenario.Asset(identifier: "l1", length: 900_000, isEssential: false, bytesPerSecond: 50_000)
        ]
        let device = scenario.device(seed: 15)
        device.tree.setCapacity(16 << 20)
        try device.start()
        _ = try device.install(scenario.source)
        let url = "https://cdn.example.com/l1"
        // Below the size for which room is set aside.
        try device.loop.run(until: { (device.server.log(of: url).first?.sent ?? 0) > 300_000 })
        device.tree.setCapacity(400_000)
        try device.loop.advance(by: .seconds(600))
        #expect(device.messages(of: "l1") == [])
        let waits = try device.journal().filter { $0.event == .downloadWaits }
        #expect(waits.map(\.reason) == [.space])
        device.tree.setCapacity(16 << 20)
        try device.settle(limit: .seconds(200))
        let log = device.server.log(of: url)
        #expect(log.count == 2 && log[1].status == 206)
        #expect(log.reduce(0) { $0 + $1.sent } <= 900_000 + 50_000)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("Downloads that start together do not count the same free bytes", arguments: [16, 17, 18])
    func startingTogether(seed: UInt64) throws {
        var scenario = Scenario()
        scenario.assets = (0..<3).map {
            Scenario.Asset(
                identifier: "l\($0)", length: 3 << 20, isEssential: false, bytesPerSecond: 1 << 20)
        }
        let device = scenario.device(seed: seed)
        // Above the floor of a quarter there is room for two.
        device.tree.setCapacity(10 << 20)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.run(until: { device.messages(of: "l0") != [] || device.messages(of: "l1") != [] })
        let floor = Int64(10 << 20) / 4
        #expect(try device.tree.space().free >= floor - 64 << 10)
        #expect(device.server.log.filter { $0.url.contains("/l") && $0.sent > 0 }.count == 2)
        device.tree.setCapacity(100 << 20)
        try device.settle(limit: .seconds(200))
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    /// A scenario with one large file that comes slowly, and a device that has fetched a part of it with all of its room
    /// set aside, above a floor of a quarter, before the disk filled up for everybody else.
    private func partlyFetched(seed: UInt64) throws -> (scenario: Scenario, device: SimulatedDevice) {
        var scenario = Scenario()
        scenario.assets = [
            Scenario.Asset(identifier: "l1", length: 3 << 20, isEssential: false, bytesPerSecond: 200_000)
        ]
        let device = scenario.device(seed: seed)
        device.tree.setCapacity(16 << 20)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.run(until: { (device.server.log(of: Self.large).first?.sent ?? 0) > 1_000_000 })
        let space = try device.tree.space()
        let taken = space.total - space.free
        device.tree.setCapacity(taken + taken / 8)
        return (scenario, device)
    }

    private static let large = "https://cdn.example.com/l1"

    @Test("A download that goes on has its room, however little is left to others")
    func ownRoom() throws {
        let (scenario, device) = try partlyFetched(seed: 20)
        try device.restart()
        try device.settle(limit: .seconds(200))
        #expect(try device.journal().filter { $0.reason == .space } == [])
        #expect(device.server.log(of: Self.large).map(\.status) == [200, 206])
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("A download that has its room does not wait with one that lacks some")
    func otherLacksRoom() throws {
        let (scenario, device) = try partlyFetched(seed: 21)
        device.isOnline = false
        try device.loop.advance(by: .seconds(5))
        let other = "https://cdn.example.com/other"
        device.server.set(other, ScriptedResource(.generated(length: 5 << 20, seed: 1)))
        let request = DownloadRequest(
            identifier: "other", uniqueIdentifier: "00000000-0000-4000-8000-0000000000AA", url: other,
            group: "group.\(Scenario.app)", size: 5 << 20, priority: 10)
        _ = try device.call { try await $0.schedule(request, for: Scenario.app) }
        try device.loop.advance(by: .seconds(5))
        device.isOnline = true
        try device.loop.run(until: { device.messages(of: "l1") != [] }, limit: .seconds(60))
        let waits = try device.journal().filter { $0.reason == .space }
        #expect(waits.map(\.download) == [request.uniqueIdentifier])
        device.tree.setCapacity(100 << 20)
        try device.settle(limit: .seconds(200))
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }
}
