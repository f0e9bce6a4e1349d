// Exclusive control while its holders and those who wait are killed at random.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import PowerCut
import Testing

@Suite struct ControlKillTests {
    private static let visits = 1000
    /// Both kinds among them.
    private static let kills = 4

    @Test("A thousand visits of app and extension never overlap, while one or the other is killed at random")
    func kills() async throws {
        let named = ProcessEnvironment.current["BACKGROUNDASSETS_SEED"].flatMap { UInt64($0) }
        let seed = named ?? UInt64.random(in: .min ... .max)
        print("exclusive control with random kills: BACKGROUNDASSETS_SEED=\(seed)")
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.finished = .enter
            plan.entries = 120
            try await device.install(plan, from: server)
            let scene = try Scene(device: device, server: server, chance: SeededChance(seed: seed))
            try await scene.run(Self.visits, kills: Self.kills)
            let visits = try Visits(scene.lines, killed: scene.killed)
            #expect(visits.count >= Self.visits)
            #expect(visits.visitors.count > 2 && scene.killed.count >= Self.kills)
            #expect(visits.changes > 10, "they came one after the other")
            #expect(scene.killedKinds == ["app", "extension"])
            await server.stop()
        }
    }
}

/// The log of visits: each comes in and goes out before the next, but for those who were killed inside.
private struct Visits {
    var count = 0
    var changes = 0
    var visitors: Set<Int32> = []

    init(_ lines: [[Substring]], killed: Set<Int32>) throws {
        var inside: Int32?
        var last: Int32?
        for (number, line) in lines.enumerated() {
            let process = try #require(line.count == 2 ? Int32(line[1]) : nil, "line \(number)")
            switch line[0] {
            case "in":
                if let inside { try #require(killed.contains(inside), "line \(number): \(inside) is still inside") }
                inside = process
                count += 1
                changes += last.map { $0 == process ? 0 : 1 } ?? 0
                visitors.insert(process)
                last = process
            default:
                try #require(line[0] == "out" && inside == process, "line \(number)")
                inside = nil
            }
        }
    }
}

/// App and extension, visiting and dying.
private final class Scene {
    private let device: TestDevice
    private let server: TestServer
    private var chance: SeededChance
    private(set) var killed: Set<Int32> = []
    private(set) var killedKinds: Set<String> = []
    private var app: FixtureAppProcess?
    private var downloads = 0
    /// Lives as long as the scene: visitors open its pipe.
    private let turnstile: Turnstile

    init(device: TestDevice, server: TestServer, chance: SeededChance) throws {
        self.device = device
        self.server = server
        self.chance = chance
        turnstile = try device.turnstile()
    }

    var lines: [[Substring]] {
        let text = Files.read(device.container() + "/" + FixtureName.entries) ?? Data()
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
    }

    private var visits: Int { lines.count { $0.first == "in" } }

    /// At least so many visits, and kills however many visits they take.
    func run(_ wanted: Int, kills: Int) async throws {
        let helper = try device.launch()
        var isExtensionNext = false
        while visits < wanted || killedKinds.count < 2 || killed.count < kills {
            try await visit(helper)
            let goal = visits + Int.random(in: 20...90, using: &chance)
            try await device.until("\(goal) visits") { [self] in
                // Whoever is done comes again.
                if try await isEverybodyDone() { try await visit(helper) }
                return visits >= goal
            }
            try await isExtensionNext ? killExtension() : killApp()
            isExtensionNext = chance.oneIn(2) != isExtensionNext || killedKinds.count < 2 && !isExtensionNext
        }
        if let app { try await app.end() }
        try await helper.end()
        try await device.until("all is told") { try await device.downloads().isEmpty }
    }

    /// Sends both in: the app by a command, the extension by the end of a download.
    private func visit(_ helper: FixtureAppProcess) async throws {
        if app?.program.exit != nil || app == nil {
            app = try device.launch()
            app?.program.write("enter 100")
            turnstile.letPass()
        } else if app?.events("reply").count == app?.events("entering").count {
            app?.program.write("enter 100")
            turnstile.letPass()
        }
        guard try await device.downloads().isEmpty else { return }
        downloads += 1
        _ = try await helper.perform("foreground", try server.item("\(downloads).pack", size: 100))
    }

    private func isEverybodyDone() async throws -> Bool {
        let isAppDone = app?.program.exit != nil || app?.events("reply").count == app?.events("entering").count
        let isExtensionDone = try await device.downloads().isEmpty
        return isAppDone || isExtensionDone
    }

    private func killApp() async throws {
        guard let app, app.program.exit == nil else { return }
        // The tool that launched it has become it.
        killed.insert(app.program.process)
        killedKinds.insert("app")
        try app.program.send(signal: SIGKILL)
        _ = try await app.program.end()
        self.app = nil
    }

    private func killExtension() async throws {
        guard let run = try device.extensionRecords("entering").last?.run,
            let process = try await device.extensionProcess()
        else { return }
        killed.insert(run)
        killedKinds.insert("extension")
        kill(process, SIGKILL)
        try await Processes.gone(process)
    }
}
