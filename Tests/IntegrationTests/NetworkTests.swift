// A device whose network comes and goes: its service and a web server at the ends of a real cable.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import RootHelperClient
import Testing

@Suite struct NetworkTests {
    /// What is done at once is done by then on any machine, and nothing that waits for a pause or for its patience.
    private static let soon = Duration.seconds(30)

    /// A device on one side, a server on the other, and the sample app that has this plan installed.
    private func run(
        variables: [String: String] = [:],
        _ body: (TestDevice, FarServer, HelperNetwork) async throws -> Void
    ) async throws {
        let network = try HelperNetwork()
        try await TestDevice.run(starting: false, on: network) { device in
            device.variables.withLock { $0 = variables }
            let server = try await FarServer.start(on: network, for: device)
            do {
                try await device.start()
                try await body(device, server, network)
            } catch {
                try await server.stop()
                throw error
            }
            try await server.stop()
        }
    }

    private func bundle(of plan: FixturePlan, from server: FarServer) throws -> FixtureBundle {
        var bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
        bundle.domains = [NetworkSide.world.address]
        return bundle
    }

    private func install(
        _ items: [FixtureItem], on device: TestDevice, from server: FarServer
    ) async throws {
        let plan = FixturePlan(downloads: items)
        let result = try await device.install(try bundle(of: plan, from: server).write(to: device.folder))
        try #require(result.exit == .exited(0), "\(result.errors)")
    }

    @Test(
        "A background download whose network goes waits for it, and goes on at the same byte at once when it is back",
        .needs(.networks), .shows("B208", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func comesBack() async throws {
        try await run { device, server, network in
            let item = try server.item("slow/level.pack", size: 1_000_000)
            try await install([item], on: device, from: server)
            try await device.until("some bytes") {
                try await device.downloads().first.map { $0.received > 200_000 } ?? false
            }
            let start = device.journal.count
            try network.change(.link(isUp: false))
            let gone = try await device.row("network-changed", from: start)
            #expect(gone.reason == "offline")
            try await device.row("download-waits", from: start) { $0.reason == "offline" }
            let waiting = try #require(try await device.downloads().first)
            #expect(waiting.state == "waiting" && waiting.reason == "offline" && waiting.nextTry == 0)
            #expect(waiting.detail == "the device has no network" && waiting.received > 200_000)
            let back = MonotonicClock.now
            try network.change(.link(isUp: true))
            let began = try await device.row("download-began", from: start)
            #expect(MonotonicClock.now - back < Self.soon)
            #expect(began.detail.contains("from byte \(waiting.received)"))
            try await device.told(1, from: start)
            #expect(device.asset("level.pack") == server.content("slow/level.pack"))
            let second = try #require(try await server.requests(of: "level.pack", atLeast: 2, on: device).last)
            #expect(second.status == 206 && second.range == "bytes=\(waiting.received)-")
            #expect(second.bytes == 1_000_000 - Int(waiting.received))
        }
    }

    @Test(
        "A foreground download begins at once, and fails within seconds without network",
        .needs(.networks), .shows("B106", "B210", by: "BADownloadManager.startForegroundDownload(_:)"))
    func foreground() async throws {
        try await run { device, server, network in
            try await install([], on: device, from: server)
            let app = try device.launch()
            try await app.perform("delegate full")
            let quick = try server.item("quick.pack", size: 1000)
            let asked = MonotonicClock.now
            try await app.perform("foreground", quick)
            try await app.event("finished")
            #expect(MonotonicClock.now - asked < Self.soon)
            let start = device.journal.count
            try network.change(.link(isUp: false))
            try await device.row("network-changed", from: start)
            let late = try server.item("late.pack", size: 1000)
            let begin = MonotonicClock.now
            try await app.perform("foreground", late)
            let failed = try await app.event("failed")
            let took = MonotonicClock.now - begin
            #expect(took > .seconds(2) && took < Self.soon)
            #expect(failed.download?.identifier == "late.pack")
            #expect(!server.requests.contains { $0.path.contains("late") })
            let row = try await device.row("download-failed", from: start)
            #expect(row.reason == "offline")
            try await app.end()
        }
    }

    @Test(
        "A download whose name nobody answers for is cancelled at once, and others go on meanwhile", .needs(.networks))
    func deadNames() async throws {
        try await run { device, server, network in
            let item = try server.item("slow/level.pack", size: 300_000)
            // Whom a service asks is decided when it starts.
            try await device.kill()
            let names = try network.takeNameQuestions()
            try await device.start()
            try await install([item], on: device, from: server)
            let app = try device.launch()
            let dead = FixtureItem("dead.pack", url: "https://dead.example.org/dead.pack", size: 1000)
            #expect(try await app.perform("foreground", dead).code == nil)
            #expect(await NameQuestions.next(at: names) == "dead")
            let begin = MonotonicClock.now
            #expect(try await app.perform("cancel dead.pack").code == nil)
            #expect(MonotonicClock.now - begin < .seconds(4))
            try await device.told(1, from: 0)
            #expect(device.asset("level.pack") == server.content("slow/level.pack"))
            #expect(try await server.requests(of: "level.pack", atLeast: 1, on: device).count == 1)
            try await app.end()
        }
    }

    @Test(
        "Without network for good, a background download is given up when its patience ends, and the app learns of it",
        .needs(.networks), .shows("B209", by: "BADownloadManagerDelegate.download(_:failedWithError:)"))
    func forGood() async throws {
        try await run { device, server, network in
            try await install([], on: device, from: server)
            #expect(try await device.cli("settings", "patience", "4s").exit == .exited(0))
            let app = try device.launch()
            try await app.perform("delegate full")
            let start = device.journal.count
            try network.change(.address(isThere: false))
            try await device.row("network-changed", from: start) { $0.reason == "offline" }
            let begin = MonotonicClock.now
            try await app.perform("schedule", try server.item("never.pack", size: 1000))
            try await device.row("download-waits", from: start) { $0.reason == "offline" }
            let failed = try await app.event("failed")
            let took = MonotonicClock.now - begin
            #expect(failed.download?.identifier == "never.pack")
            #expect(took > .seconds(3) && took < Self.soon)
            try await app.end()
        }
    }

    @Test(
        "An essential download waits a few seconds for the network, then the app can be launched without it",
        .needs(.networks), .shows("B224", by: "backgroundassets install"))
    func essential() async throws {
        try await run { device, server, network in
            let item = try server.item("slow/needed.pack", size: 3_000_000, essential: true)
            let plan = FixturePlan(downloads: [item])
            let bundle = try bundle(of: plan, from: server)
            let installing = try device.tool(["install", try bundle.write(to: device.folder)])
            try await device.row("download-began") { $0.detail.contains("needed.pack") }
            try network.change(.link(isUp: false))
            let begin = MonotonicClock.now
            let result = try await installing.result(within: .seconds(60))
            let took = MonotonicClock.now - begin
            #expect(result.exit == .exited(0), "\(result.errors)")
            #expect(took > .seconds(4) && took < Self.soon)
            #expect(try await device.row("download-failed").reason == "offline")
            #expect(try await device.apps().first?.launchable == true)
        }
    }

    @Test("A connection whose address is gone is not waited for, nor used again", .needs(.networks))
    func addressChange() async throws {
        try await run { device, server, network in
            try await install([], on: device, from: server)
            let app = try device.launch()
            try await app.perform("delegate full")
            try await app.perform("foreground", try server.item("first.pack", size: 1000))
            try await app.event("finished") { $0.download?.identifier == "first.pack" }
            let start = device.journal.count
            try network.change(.address(isThere: false))
            try await device.row("network-changed", from: start)
            try network.change(.address(isThere: true))
            try network.change(.defaultRoute(isThere: true))
            try await device.row("network-changed", from: start) { $0.reason == "network" }
            let begin = MonotonicClock.now
            try await app.perform("foreground", try server.item("second.pack", size: 1000))
            try await app.event("finished") { $0.download?.identifier == "second.pack" }
            #expect(MonotonicClock.now - begin < Self.soon)
            let first = try #require(try await server.requests(of: "first.pack", atLeast: 1, on: device).first)
            let second = try #require(try await server.requests(of: "second.pack", atLeast: 1, on: device).first)
            #expect(first.connection != second.connection)
            try await app.end()
        }
    }

    @Test("A service that starts without network waits for it", .needs(.networks))
    func startsOffline() async throws {
        try await run { device, server, network in
            let item = try server.item("slow/level.pack", size: 500_000)
            try await install([item], on: device, from: server)
            try await device.row("download-began") { $0.detail.contains("level.pack") }
            try network.change(.link(isUp: false))
            try await device.row("network-changed")
            try await device.kill()
            let start = device.journal.count
            try await device.start()
            try await device.row("network-changed", from: start) { $0.reason == "offline" }
            let waiting = try #require(try await device.downloads().first)
            #expect(waiting.state == "waiting" && waiting.reason == "offline")
            try network.change(.link(isUp: true))
            try await device.told(1, from: start)
            #expect(device.asset("level.pack") == server.content("slow/level.pack"))
        }
    }

    // MARK: Proxies

    /// tinyproxy on the world's side, with this line for who may use it.
    private func startProxy(
        on network: HelperNetwork, of device: TestDevice, for server: FarServer, _ line: String
    ) async throws -> (program: Program, port: Int, log: String) {
        // Nobody else is in that network: every port is free.
        let port = 3128
        let log = device.folder + "/tinyproxy.log"
        let lines = [
            "Port \(port)", "Listen \(NetworkSide.world.address)", "LogFile \"\(log)\"", "LogLevel Info",
            "ConnectPort \(server.port)", line,
        ]
        try Files.write(device.folder + "/tinyproxy.conf", Data(lines.joined(separator: "\n").utf8))
        let (path, arguments) = network.command(
            on: .world, "/usr/bin/tinyproxy", ["-d", "-c", device.folder + "/tinyproxy.conf"],
            products: Products.folder)
        let program = try Program(path, arguments, environment: device.environment)
        try await device.until("the proxy listens") {
            Files.read(log).map { String(decoding: $0, as: UTF8.self).contains("Accepting connections") } ?? false
        }
        return (program, port, log)
    }

    @Test(
        "Downloads go through the proxy of the variables, or of the settings, whose password nobody sees",
        .needs(.networks))
    func proxies() async throws {
        let proxy = "\(NetworkSide.world.address):3128"
        try await run(variables: ["https_proxy": "http://player:s3cret-word@\(proxy)"]) { device, server, network in
            let (program, _, log) = try await startProxy(
                on: network, of: device, for: server, "BasicAuth player s3cret-word")
            defer { try? program.send(signal: SIGTERM) }
            func connects() -> Int {
                Files.read(log).map {
                    String(decoding: $0, as: UTF8.self).components(separatedBy: "CONNECT ").count - 1
                }
                    ?? 0
            }
            let item = try server.item("level.pack", size: 10_000)
            try await install([item], on: device, from: server)
            try await device.told(1)
            #expect(connects() > 0)
            // The proxy runs where the server does: that is whom the server saw.
            #expect(server.requests.allSatisfy { $0.client == NetworkSide.world.address })

            #expect(try await device.cli("settings", "proxy", "none").exit == .exited(0))
            let app = try device.launch()
            try await app.perform("delegate full")
            try await app.perform("foreground", try server.item("direct.pack", size: 1000))
            try await app.event("finished") { $0.download?.identifier == "direct.pack" }
            let direct = try await server.requests(of: "direct.pack", atLeast: 1, on: device)
            #expect(direct.map(\.client) == [NetworkSide.device.address])

            // A wrong password is the proxy's failure, with that reason.
            let start = device.journal.count
            let wrong = "http://player:wr0ng-word@\(proxy)"
            #expect(try await device.cli("settings", "proxy", wrong).exit == .exited(0))
            try await app.perform("foreground", try server.item("refused.pack", size: 1000))
            try await app.event("failed") { $0.download?.identifier == "refused.pack" }
            let row = try await device.row("download-failed", from: start)
            #expect(row.reason == "proxy" && row.detail.contains("the proxy answered 40"))
            let shown = try await Program.run(
                Products.tool, ["--device", device.root, "settings"], environment: device.environment)
            #expect(shown.output.contains { $0.contains("http://\(proxy) (with a user name)") })
            let all = try await device.wholeJournal().map(\.detail) + shown.output + app.program.output.all
            #expect(!all.contains { $0.contains("s3cret") || $0.contains("wr0ng") })
            let refused = try await device.cli("settings", "proxy", "ftp://wr0ng-word@x")
            #expect(refused.exit == .exited(64) && !refused.errors.joined().contains("wr0ng"))
            try await app.end()
            try program.send(signal: SIGTERM)
            _ = try await program.end()
        }
    }
}
