// backgroundassets-debug: a developer has the extension called.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

extension TestDevice {
    /// Runs the debugging tool.
    func debugTool(_ words: String..., environment: [String: String] = [:]) async throws -> ProgramResult {
        try await Program.run(
            Products.debugTool, words, environment: self.environment.merging(environment) { $1 })
    }

    func identifier() async throws -> String { try await call(DeviceInterface.Describe.self, Nothing()).device }

    /// Has the tool send an event of the sample app.
    func simulate(_ event: String, of app: String = FixtureBundle.identifier) async throws -> ProgramResult {
        try await debugTool("--simulate", event, "-b", app, "-d", try await identifier())
    }
}

@Suite struct DebugToolTests {
    @Test(
        "Each event is sent to the named device, and the extension of the named app is asked as on that occasion",
        .shows("B100", "B227", "B229", "B231", "B237", "D59", by: "backgroundassets-debug --simulate"),
        .shows("B235", by: "backgroundassets-debug --list-devices"),
        .shows("B112", "B164", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func events() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            // The user's own device beside this one.
            let own = ["XDG_DATA_HOME": device.folder + "/own"]
            let other = device.environment.merging(own) { $1 }.filter { $0.key != "BACKGROUNDASSETS_DEVICE" }
            let made = try await Program.run(Products.tool, ["--json", "settings"], environment: other)
            let second = try #require(try made.values(DeviceInterface.Describe.Reply.self).first)
            let first = try await device.identifier()
            let listed = try await device.debugTool("--list-devices", "--json", environment: own)
            #expect(listed.exit == .exited(0))
            #expect(Set(listed.output.flatMap { line in [first, second.device].filter(line.contains) }).count == 2)
            let table = try await device.debugTool("-l", environment: own)
            #expect(table.output.count == 3 && table.output.contains { $0.contains(first) && $0.contains(" on ") })

            for (number, (option, event)) in [("install", 1), ("update", 2), ("periodic-check", 3)].enumerated() {
                let start = device.journal.count
                let result = try await device.debugTool(
                    "-s", "--app-\(option)", "--app-bundle-id", FixtureBundle.identifier, "--device-id", first,
                    environment: own)
                #expect(result.exit == .exited(0) && result.errors == [])
                let line = "The app-\(option) event for \(FixtureBundle.identifier) was sent to device \(first)."
                #expect(result.output == [line])
                try await device.row("event-ended", from: start)
                let requests = try device.extensionRecords("request")
                #expect(requests.count == number + 2 && requests.last?.request == event)
            }
            #expect(try await device.apps().map(\.launchedAt) == [0])
            // Nothing came to the other one.
            let rows = try await Program.run(
                Products.tool, ["--json", "--device", second.root, "journal"], environment: other)
            #expect(rows.output.allSatisfy { !$0.contains("event-") && !$0.contains("extension-") })
            kill(Int32(second.process), SIGTERM)
            try await Processes.gone(Int32(second.process))
            await server.stop()
        }
    }

    @Test(
        "What is missing or wrong on the command line gets one line, the next step and status 64",
        .shows("B236", by: "backgroundassets-debug --simulate"),
        .shows("B228", by: "backgroundassets-debug --help"),
        arguments: [
            ([String](), "nothing to do"), (["--simulate"], "needs one event"),
            (["-s", "--app-install", "--app-update"], "needs one event"),
            (["-s", "--app-install", "-d", "x"], "needs an app"),
            (["-s", "--app-install", "-b", "x"], "needs a device"),
            (["--app-install"], "belongs to '--simulate'"), (["-l", "-s"], "are two things"),
            (["-l", "-b", "x"], "belongs to '--simulate'"), (["-x"], "no option '-x'"),
            (["--simulat"], "did you mean '--simulate'"), (["word"], "one argument too many"),
            (["-b"], "needs a value"),
        ])
    func usage(words: [String], message: String) async throws {
        let result = try await Program.run(Products.debugTool, words)
        #expect(result.exit == .exited(64) && result.output == [])
        #expect(result.errors.count == 1 && result.errors.first?.contains(message) == true, "\(result.errors)")
        let help = try await Program.run(Products.debugTool, ["-h"])
        #expect(help.exit == .exited(0) && help.output.contains { $0.contains("--app-periodic-check") })
        let man = try await Program.run(Products.debugTool, ["--generate", "man"])
        #expect(man.output.contains { $0.contains("app\\-bundle\\-id") })
    }

    @Test(
        "A device without Developer Mode, an unknown one and an extension's id are refused with the next step",
        .shows("B232", "B234", "D61", by: "backgroundassets-debug --simulate"))
    func refusals() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let unknown = try await device.debugTool(
                "-s", "--app-install", "-b", FixtureBundle.identifier, "-d", "00000000-0000000000000000")
            #expect(unknown.exit == .exited(1))
            #expect(unknown.errors.first?.contains("no device '00000000-0000000000000000'") == true)
            let ofExtension = try await device.simulate("--app-install", of: FixtureBundle.identifier + ".extension")
            #expect(ofExtension.exit == .exited(15))
            #expect(ofExtension.errors.first?.contains("name its app: \(FixtureBundle.identifier)") == true)
            let nobody = try await device.simulate("--app-install", of: "org.example.nobody")
            #expect(nobody.exit == .exited(15))
            _ = try await device.call(DeviceInterface.SetDeveloperMode.self, .init(on: false))
            let off = try await device.simulate("--app-install")
            #expect(off.exit == .exited(18) && off.output == [])
            #expect(off.errors.count == 1 && off.errors.first?.contains("settings developer-mode on") == true)
            #expect(try device.extensionRecords("request").count == 1)
            #expect(try await device.rows("event-began").isEmpty)
            await server.stop()
        }
    }

    @Test(
        "A simulated event gives the extension its runtime of the day anew",
        .shows("B230", "D56", by: "backgroundassets-debug --simulate"))
    func runtime() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(limits: LimitPlan(), from: server)
            _ = try await device.row("extension-ended")
            try await device.use(.seconds(300))
            #expect(try await device.extensionLedger().extension.reason == "budget")
            let start = device.journal.count
            #expect(try await device.simulate("--app-periodic-check").exit == .exited(0))
            _ = try await device.row("extension-answered", from: start)
            let after = try await device.extensionLedger()
            #expect(after.extension.reason == "" && after.extension.runtimeUsed < 30)
            await server.stop()
        }
    }

    @Test(
        "After a simulated installation the app lists what is queued, and finds what has come",
        .shows("B238", by: "backgroundassets-debug --simulate"),
        .shows("B128", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func queued() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let plan = FixturePlan(downloads: [
                try server.item("one.pack", size: 1000), try server.item("slow.pack", size: 500_000),
            ])
            try server.put("manifest.json", plan.encoded())
            try await server.fault("slow.pack:rate=1000")
            #expect(try await device.simulate("--app-install").exit == .exited(0))
            try await device.told(1)
            let app = try device.launch()
            #expect(try await app.perform("list").downloads?.map(\.identifier) == ["slow.pack"])
            #expect(device.asset("one.pack")?.count == 1000)
            // The manifest came before the extension was asked.
            let rows = device.journal.all
            let began = try #require(rows.firstIndex { $0.event == "event-began" })
            let fetched = try #require(rows.lastIndex { $0.event == "manifest-fetched" })
            let called = try #require(rows.lastIndex { $0.event == "extension-called" && $0.download.isEmpty })
            #expect(began < fetched && fetched < called)
            #expect(try await server.requests(of: "manifest.json", atLeast: 2).count == 2)
            try await app.end()
            await server.stop()
        }
    }
}
