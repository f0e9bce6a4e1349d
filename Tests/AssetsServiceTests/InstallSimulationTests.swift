// The path of an installation, on simulated disk, network, extension and time.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Glibc
import Testing

@Suite("Simulated installation")
struct InstallSimulationTests {
    fileprivate static func history(seed: UInt64) throws -> (hash: UInt64, problems: [String]) {
        let scenario = Scenario()
        let device = scenario.device(seed: seed)
        try device.installAndSettle(scenario)
        return (device.loop.hash, try scenario.problems(of: device))
    }

    @Test("Every seed leads to the same end, each by a history of its own")
    func seeds() throws {
        var hashes: Set<UInt64> = []
        for seed in UInt64(1)...20 {
            let first = try Self.history(seed: seed)
            #expect(first.problems == [], "seed \(seed)")
            #expect(try Self.history(seed: seed).hash == first.hash, "seed \(seed)")
            hashes.insert(first.hash)
        }
        #expect(hashes.count == 20)
    }

    @Test("A seed gives the same history in every process")
    func acrossProcesses() async throws {
        let here = try Self.history(seed: 42)
        for _ in 0..<2 {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                let there = try InstallSimulationTests.history(seed: 42)
                let line = Array("history \(there.hash)\n".utf8)
                #expect(write(1, line, line.count) == line.count)
            }
            let output = String(decoding: try #require(result).standardOutputContent, as: UTF8.self)
            #expect(output.contains("history \(here.hash)\n"))
        }
    }

    @Test("Essential assets go first, the others and all messages follow the opening of the gate")
    func order() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 3)
        try device.installAndSettle(scenario)
        let opened = try #require(device.loop.trace.firstIndex { $0.contains("gate-opened none") })
        for (index, line) in device.loop.trace.enumerated() {
            if line.hasPrefix("request"), line.contains("/e") { #expect(index < opened, "\(line)") }
            if line.hasPrefix("request"), line.contains("/l") { #expect(index > opened - 3, "\(line)") }
        }
        let rows = try device.journal()
        let gate = try #require(rows.firstIndex { $0.event == .gateOpened })
        for (index, row) in rows.enumerated() {
            if row.event == .extensionCalled, row.download != "" { #expect(index > gate, "\(row)") }
        }
        #expect(rows[gate].detail == "complete")
        #expect(device.inspect { $0.installedApps().map(\.gate) } == [.open])
    }

    @Test("An app is fetched from a URL, over a connection that breaks, and its archive does not stay")
    func archive() throws {
        var scenario = Scenario()
        scenario.archiveLength = 50_000
        scenario.archiveAnswers = [.cut(after: 20_000)]
        let device = scenario.device(seed: 11)
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(device.server.log(of: Scenario.archiveURL).map(\.status) == [200, 206])
    }

    @Test("An archive that cannot be fetched ends the installation and leaves nothing")
    func archiveMissing() throws {
        var scenario = Scenario()
        scenario.archiveLength = 50_000
        scenario.archiveAnswers = [.status(404)]
        let device = scenario.device(seed: 12)
        try device.installAndSettle(scenario)
        let remains = try scenario.remains(on: device)
        #expect(remains == [])
        #expect(try device.query { try $0.installations().map(\.phase) } == [.failed])
        #expect(try device.row(.installFailed) != nil)
    }

    @Test("An app without the essential key is launchable at once and never waits")
    func ungated() throws {
        var scenario = Scenario()
        scenario.essentialAllowance = nil
        scenario.assets.removeAll(where: \.isEssential)
        let device = scenario.device(seed: 4)
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(try device.row(.gateOpened)?.detail == "not-gated")
        #expect(try device.row(.gateShut) == nil)
    }

    @Test("Higher priorities start first")
    func priorities() throws {
        var scenario = Scenario()
        scenario.assets = (1...8).map {
            Scenario.Asset(
                identifier: "l\($0)", length: 1000, isEssential: false, priority: $0, bytesPerSecond: 2000)
        }
        let device = scenario.device(seed: 5)
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        let begun = device.server.log.map(\.url).filter { $0 != Scenario.manifestURL }
        #expect(
            Set(begun.prefix(3)) == [
                "https://cdn.example.com/l8", "https://cdn.example.com/l7", "https://cdn.example.com/l6",
            ])
        #expect(begun.last == "https://cdn.example.com/l1")
    }

    @Test("A manifest that is not there leaves a launchable app whose extension is told")
    func manifestMissing() throws {
        var scenario = Scenario()
        scenario.manifestAnswers = [.status(404)]
        let device = scenario.device(seed: 6)
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(try device.row(.gateOpened)?.reason == .manifest)
        #expect(device.extensions.calls.map(\.kind) == [.failed])
        #expect(device.server.log.count == 1)
    }

    @Test("A manifest above the allowance is refused before it fills the disk")
    func manifestTooLarge() throws {
        var scenario = Scenario()
        scenario.essentialAllowance = 50
        let device = scenario.device(seed: 7)
        try device.installAndSettle(scenario)
        #expect(try device.row(.gateOpened)?.reason == .manifest)
        #expect(try device.row(.downloadFailed)?.reason == .allowance)
        #expect(try device.tree.list("Transfers") == [])
    }

    @Test("The manifest is charged once, also when the service dies while the extension is asked")
    func manifestCharge() throws {
        let scenario = Scenario()
        let run = InterruptedRun(scenario, seed: 8)
        let length = Int64(try #require(run.device.server.content(of: Scenario.manifestURL)).count)
        try run.run([(.line("extension 0 called"), .kill), (.line("extension 1 called"), .kill)])
        let problems = try scenario.problems(of: run.device)
        #expect(problems == [])
        let ledger = try #require(run.device.inspect { $0.installedApps().first?.ledger } ?? nil)
        #expect(ledger == AllowanceLedger(essential: 69_000 + length, nonEssential: 32_000))
    }

    @Test("An extension that dies or hangs when it is asked leaves a launchable app", arguments: [true, false])
    func extensionFails(hangs: Bool) throws {
        var scenario = Scenario()
        scenario.contentAnswers = [hangs ? .hangs : .died]
        let device = scenario.device(seed: 9)
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(try device.row(.gateOpened)?.detail == "extension-failed")
        #expect(try device.row(.extensionEnded)?.reason == (hangs ? .timeout : .crash))
        #expect(device.server.log.count == 1)
        let container = device.container(.appExtension, of: "\(Scenario.app).Downloader")
        #expect(try device.tree.list("\(container)/Manifests") == [])
    }

    @Test("A set that breaks one rule is refused as a whole")
    func refusedAnswer() throws {
        var scenario = Scenario()
        scenario.essentialAllowance = 1000
        let device = scenario.device(seed: 10)
        try device.installAndSettle(scenario)
        #expect(try device.row(.downloadRefused)?.reason == .allowance)
        #expect(try device.row(.gateOpened)?.detail == "nothing-essential")
        #expect(device.server.log.count == 1)
    }
}
