// The service is killed or stopped, or the power is cut, at every step of an installation.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Testing

@Suite("Simulated kills")
struct KillSimulationTests {
    /// How to end the service, and every which step of disk calls is tried: a run costs some 20 ms.
    static let ends: [InterruptedRun.End] = [.kill, .stop, .powerCut(.forgetsAll), .powerCut(.forgetsSome(seed: 1))]
    private static let width = 5

    /// Ends the service at one step after the other until a run no longer reaches the step.
    private func sweep(
        _ end: InterruptedRun.End, by width: Int, _ scenario: Scenario = Scenario(),
        _ step: (Int) -> InterruptedRun.Step
    ) throws {
        // Another offset for each end, so that together they try more steps.
        var number = 1 + (Self.ends.firstIndex(of: end) ?? 0) % width
        while true {
            let run = InterruptedRun(scenario, seed: 1)
            try run.run([(step(number), end)])
            guard run.device.kills + run.device.stops + run.device.powerCuts > 0 else { break }
            let problems = try scenario.problems(of: run.device)
            #expect(problems == [], "seed 1, \(end) at \(step(number))")
            if end == .stop {
                let warnings = try run.device.journal().filter { $0.event == .warning }.map(\.detail)
                #expect(warnings == [], "seed 1, \(end) at \(step(number))")
            }
            number += width
        }
        #expect(number > 30, "the sweep ended too early")
    }

    @Test("Ended after any line of its history, the service goes on where it was", arguments: ends)
    func notes(_ end: InterruptedRun.End) throws {
        try sweep(end, by: 1) { .note($0) }
    }

    @Test("Ended in the middle of a file call, the service goes on where it was", arguments: ends)
    func fileCalls(_ end: InterruptedRun.End) throws {
        try sweep(end, by: Self.width) { .file($0) }
    }

    @Test("Ended in the middle of a transaction, the service goes on where it was", arguments: ends)
    func pages(_ end: InterruptedRun.End) throws {
        try sweep(end, by: Self.width) { .page($0) }
    }

    @Test("Ended while many small files finish together, the service goes on where it was", arguments: ends)
    func manyNotes(_ end: InterruptedRun.End) throws {
        try sweep(end, by: 1, .many) { .note($0) }
    }

    @Test("Ended in the middle of a file call for many small files, the service goes on where it was", arguments: ends)
    func manyFileCalls(_ end: InterruptedRun.End) throws {
        try sweep(end, by: Self.width, .many) { .file($0) }
    }

    @Test(
        "Ended in the middle of a transaction for many small files, the service goes on where it was", arguments: ends)
    func manyPages(_ end: InterruptedRun.End) throws {
        try sweep(end, by: Self.width, .many) { .page($0) }
    }

    @Test("An installation from an archive also goes on after any line of its history", arguments: ends)
    func archive(_ end: InterruptedRun.End) throws {
        var scenario = Scenario()
        scenario.archiveLength = 30_000
        scenario.assets.removeAll { !$0.isEssential }
        try sweep(end, by: 1, scenario) { .note($0) }
    }

    @Test("A cancelled installation leaves nothing, whenever it is cancelled and whatever dies then")
    func cancelled() throws {
        var number = 3
        while true {
            let run = InterruptedRun(Scenario(), seed: 1)
            guard try run.cancel(after: number, kill: nil) else { break }
            let remains = try Scenario().remains(on: run.device)
            #expect(remains == [], "cancelled after \(number) lines")
            for step in stride(from: 1 + number % 3, to: 12, by: 3) {
                let run = InterruptedRun(Scenario(), seed: 1)
                _ = try run.cancel(after: number, kill: .file(step))
                let remains = try Scenario().remains(on: run.device)
                #expect(remains == [], "cancelled after \(number), killed at file \(step)")
            }
            number += 1
        }
        #expect(number > 15, "the sweep ended too early")
    }

    @Test("A kill costs no byte that is in the file, however early it comes")
    func earlyKill() throws {
        var scenario = Scenario()
        scenario.assets = [
            Scenario.Asset(identifier: "e1", length: 100_000, isEssential: true, bytesPerSecond: 20_000)
        ]
        var lengths: Set<Int64> = []
        // The first row tells of what was synced, after two seconds.
        for tenths in 1...24 {
            let device = scenario.device(seed: 7)
            try device.start()
            _ = try device.install(scenario.source)
            try device.loop.advance(by: .milliseconds(100 * tenths))
            device.kill()
            let names = try device.tree.list("Transfers").filter { $0.hasSuffix(".partial") }
            let length = try names.compactMap { try device.tree.status("Transfers/\($0)")?.size }.max() ?? 0
            lengths.insert(length)
            try device.start()
            try device.settle()
            let problems = try scenario.problems(of: device)
            #expect(problems == [], "killed after \(tenths) tenths of a second")
            let offsets = device.server.log(of: scenario.assets[0].url).map { Int64($0.offset) }
            #expect(offsets.last == length, "killed after \(tenths) tenths of a second: \(offsets)")
        }
        #expect(lengths.count > 15)
    }

    @Test("A power cut costs no more than what was not synced")
    func longFile() throws {
        var scenario = Scenario()
        scenario.assets = [
            Scenario.Asset(identifier: "e1", length: 400_000, isEssential: true, bytesPerSecond: 20_000)
        ]
        for seconds in [3, 7, 13, 19] {
            let device = scenario.device(seed: 7)
            try device.start()
            _ = try device.install(scenario.source)
            try device.loop.advance(by: .seconds(seconds))
            device.powerCut()
            try device.start()
            try device.settle()
            let problems = try scenario.problems(of: device)
            #expect(problems == [], "cut after \(seconds) s")
            #expect(device.server.log(of: scenario.assets[0].url).map(\.status) == [200, 206])
        }
    }

    /// One file of 100 000 bytes that comes at a steady rate.
    private func steadyFile() -> Scenario {
        var scenario = Scenario()
        scenario.assets = [
            Scenario.Asset(identifier: "e1", length: 100_000, isEssential: true, bytesPerSecond: 20_000)
        ]
        return scenario
    }

    @Test("A partial file that is made anew survives a power cut as one that was made first")
    func madeAnew() throws {
        let scenario = steadyFile()
        let device = scenario.device(seed: 7)
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.advance(by: .seconds(3))
        device.kill()
        for name in try device.tree.list("Transfers") { try device.tree.remove("Transfers/\(name)") }
        try device.tree.syncDirectory("Transfers")
        try device.start()
        // Until more is synced than before: up to there the row says nothing of the new file.
        try device.loop.advance(by: .milliseconds(4500))
        device.powerCut()
        try device.start()
        try device.settle()
        let url = scenario.assets[0].url
        #expect(device.moved("e1") == device.server.content(of: url))
        #expect(device.server.log(of: url).map(\.status) == [200, 200, 206])
    }

    @Test("A note that could not be read does not stay beside the bytes of another version")
    func unreadNote() throws {
        let scenario = steadyFile()
        let device = scenario.device(seed: 7)
        let url = scenario.assets[0].url
        try device.start()
        _ = try device.install(scenario.source)
        try device.loop.advance(by: .seconds(3))
        device.kill()
        let other = ScriptedResource(.generated(length: 100_000, seed: 9), etag: nil, bytesPerSecond: 20_000)
        device.server.set(url, other)
        device.tree.setFault { $0.name == "attribute" ? 5 : nil }
        try device.start()
        try device.loop.advance(by: .seconds(3))
        device.kill()
        device.tree.setFault(nil)
        device.server.set(
            url, ScriptedResource(.generated(length: 100_000, seed: 0), etag: "\"1\"", bytesPerSecond: 20_000))
        try device.start()
        try device.settle()
        #expect(device.moved("e1") == device.server.content(of: url))
    }

    @Test("An installation that ended is known for a while after a restart, then forgotten")
    func memory() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 8)
        try device.start()
        let id = try device.install(scenario.source)
        try device.settle()
        try device.restart()
        let status = Guarded<InstallStatus?>(nil)
        _ = try device.call { service in
            try service.follow(install: id) { update in status.withLock { $0 = update } }
        }
        #expect(status.withLock { $0 }?.phase == .launchable)
        try device.loop.advance(by: PolicyNumbers.installationMemory + .seconds(1))
        #expect(try device.query { try $0.installations() } == [])
    }

    @Test("A tag that was half written when the machine stopped goes at the next start; files of the app stay")
    func halfWrittenTag() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 9)
        try device.start()
        _ = try device.install(scenario.source)
        try device.settle()
        let group = try #require(device.inspect { $0.installedApps().flatMap(\.description.groups) }?.first)
        let caches = device.container(.group, of: group) + "/Library/Caches"
        try device.tree.replace("\(caches)/.new-1f", with: Array("Signature".utf8), mode: 0o600)
        try device.tree.replace("\(caches)/.new-2f", with: Array(repeating: 1, count: 1000), mode: 0o600)
        try device.tree.replace("\(caches)/.new-level", with: [1], mode: 0o600)
        try device.restart()
        let names = try device.tree.list(caches)
        #expect(names == [".BackgroundAssets", ".new-2f", ".new-level", "CACHEDIR.TAG"])
    }

    @Test("Where the disk cannot say what is there, a finish is completed by the first start at which it can")
    func unknownFile() throws {
        let scenario = Scenario()
        let run = InterruptedRun(scenario, seed: 1)
        let device = run.device
        try device.start()
        _ = try device.install(scenario.source)
        let isMoving = Guarded(false)
        device.tree.setFault { call in
            if call.name == "rename", call.path.hasSuffix(".partial") { isMoving.withLock { $0 = true } }
            return nil
        }
        try device.loop.run(until: { isMoving.withLock { $0 } })
        device.kill()
        device.tree.setFault { $0.name == "status" && $0.path.hasPrefix("Containers/") ? 5 : nil }
        try device.start()
        try device.loop.advance(by: .seconds(1))
        #expect(try device.journal().contains { $0.event == .warning && $0.reason == .volume })
        device.tree.setFault(nil)
        try device.restart()
        try device.settle()
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(try !device.journal().contains { $0.detail.contains("fetched again") })
    }
}
