// Limits of memory, runtime and storage, with extensions that go beyond them.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct ExtensionLimitTests {
    private static let mebibyte = 1 << 20

    // MARK: Memory

    @Test(
        "An extension with more than 12 MiB of its own is killed, the journal and its ledger say so with the peak",
        .plainOnly("a sanitizer's own tables are memory of the process"),
        .shows("B130", "B243", "D53", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"),
        .shows("B244", by: "backgroundassets install"), arguments: [14, 32, 40])
    func memory(mebibytes: Int) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let deed = LimitPlan.Deed(.inflate, bytes: mebibytes * Self.mebibyte)
            try await device.install(limits: LimitPlan(request: deed), from: server)
            let ended = try await device.row("extension-ended")
            #expect(ended.reason == "memory" && ended.detail.contains("MiB"), "\(ended.detail)")
            #expect(ended.detail.contains("downloads(for: .install)") && ended.detail.contains("signal 9"))
            #expect(try device.extensionRecords("inflated").isEmpty && device.extensionRecords("terminates").isEmpty)
            let run = try #require(try await device.extensionLedger().runs.first)
            #expect(run.reason == "memory" && run.calls == 1 && run.endedAt >= run.launchedAt)
            #expect(run.memoryPeak > 12 * Int64(Self.mebibyte) && run.memoryPeak <= 48 * Int64(Self.mebibyte))
            await server.stop()
        }
    }

    @Test(
        "From half of the limit on it is warned of; below the limit it lives",
        .plainOnly("a sanitizer's own tables are memory of the process"),
        .shows("D53", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func warning() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(
                limits: LimitPlan(request: .init(.inflate, bytes: 6 * Self.mebibyte)), from: server)
            #expect(try device.extensionRecords("inflated").count == 1)
            let row = try await device.row("warning") { $0.reason == "memory" }
            #expect(row.detail.contains("12 MiB"), "\(row.detail)")
            let run = try #require(try await device.extensionLedger().runs.first)
            #expect(run.warnings == ["memory"] && run.reason == "")
            #expect(run.memoryPeak > 6 * Int64(Self.mebibyte) && run.memoryPeak <= 12 * Int64(Self.mebibyte))
            await server.stop()
        }
    }

    @Test(
        "An extension that unpacks a file in memory is ended by the limit, and the file is told of again",
        .plainOnly("a sanitizer's own tables are memory of the process"),
        .shows("B110", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"))
    func unpacking() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let plan = LimitPlan(
                finished: .init(.inflate, bytes: 64 * Self.mebibyte),
                downloads: [try server.item("levels.zip", size: 2000, essential: true)])
            try await device.install(limits: plan, from: server)
            let first = try await device.row("extension-ended") { $0.reason == "memory" }
            #expect(first.download != "")
            _ = try await device.row("extension-ended", from: device.place(after: first)) { $0.reason == "memory" }
            #expect(try device.extensionRecords("finished").count == 2)
            #expect(device.asset("levels.zip") == nil)
            await server.stop()
        }
    }

    @Test(
        "A manifest of 200 MB that is read with .mappedIfSafe costs nothing; read otherwise it does not fit",
        .plainOnly("a sanitizer's own tables are memory of the process"),
        .shows("B131", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"), arguments: [true, false])
    func largeManifest(isMapped: Bool) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let plan = LimitPlan(request: .init(isMapped ? .map : .read))
            try await device.install(limits: plan, from: server, padding: 200_000_000)
            let run = try #require(try await device.extensionLedger().runs.first)
            if isMapped {
                let seen = try #require(try device.extensionRecords("mapped").first)
                #expect((seen.count ?? 0) > 200_000_000 && seen.value != nil)
                #expect(run.reason == "" && run.memoryPeak < 8 << 20, "\(run.memoryPeak)")
                #expect(try await device.rows("extension-output").isEmpty)
            } else {
                #expect(try device.extensionRecords("read").map(\.count) == [nil])
            }
            await server.stop()
        }
    }

    @Test(
        "What fills memory faster than anybody looks is stopped by the kernel",
        .plainOnly("a sanitizer's own tables do not fit below the limit"))
    func backstops() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let plan = LimitPlan(request: .init(.reserve, bytes: 64 * Self.mebibyte))
            try await device.install(limits: plan, from: server)
            #expect(try device.extensionRecords("reserved").map(\.value) == ["Cannot allocate memory"])
            await server.stop()
        }
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(limits: LimitPlan(request: .init(.recurse)), from: server)
            let ended = try await device.row("extension-ended")
            #expect(ended.reason == "crash" && ended.detail.contains("signal 11"), "\(ended.detail)")
            await server.stop()
        }
    }

    // MARK: Runtime

    @Test(
        "Runtime counts from the call of an entry point to its return; while the extension is idle nothing counts",
        .shows("B135", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"),
        .shows("B132", "D54", by: "backgroundassets extension"))
    func runtime() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(limits: LimitPlan(request: .init(.work, milliseconds: 1500)), from: server)
            let first = try await device.extensionLedger()
            #expect(first.extension.runtimeUsed >= 1.5 && first.extension.runtimeUsed < 5)
            #expect(first.extension.runtimeMax == 300)
            #expect(first.runs.map(\.runtime) == [first.extension.runtimeUsed])
            // It costs nothing to have been there.
            _ = try await device.row("extension-ended")
            #expect(try await device.extensionLedger().extension.runtimeUsed == first.extension.runtimeUsed)
            await server.stop()
        }
    }

    @Test(
        "When its runtime of the day is used up it is ended inside the callback, and what is to be told waits",
        .shows("B116", "B136", "D54", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"),
        .shows("D55", by: "backgroundassets journal"))
    func budget() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let plan = LimitPlan(finished: .init(.work, milliseconds: 60_000))
            try await device.install(limits: plan, from: server)
            try await device.use(.seconds(299))
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            let ended = try await device.row("extension-ended") { $0.reason == "budget" }
            #expect(ended.detail.contains("its runtime of the day is used up"), "\(ended.detail)")
            let refused = try await device.row("extension-refused")
            #expect(refused.reason == "budget" && refused.detail.contains("300 s"), "\(refused.detail)")
            let ledger = try await device.extensionLedger()
            #expect(ledger.extension.runtimeUsed >= 300 && ledger.extension.runtimeUsed < 303)
            #expect(ledger.extension.reason == "budget" && ledger.extension.state == "absent")
            #expect(ledger.runs.first?.reason == "budget")
            // It is not woken for the next one either; a delegate gets both.
            _ = try await app.perform("foreground", try server.item("two.pack", size: 1000))
            _ = try await device.row("download-finished") { $0.detail.contains("two.pack") }
            try await app.perform("delegate full")
            _ = try await app.event("finished") { $0.download?.identifier == "one.pack" }
            _ = try await app.event("finished") { $0.download?.identifier == "two.pack" }
            #expect(try device.extensionRecords("finished").count == 1)
            try await app.end()
            // The next service knows it too.
            try await device.terminate()
            try await device.start(developerMode: false)
            #expect(try await device.extensionLedger().extension.reason == "budget")
            await server.stop()
        }
    }

    @Test("Whoever installs does not wait for an extension without runtime: the app is launchable at once")
    func installWithoutRuntime() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await server.fault("manifest.json:rate=20")
            let manifest = try server.put("manifest.json", LimitPlan().encoded(padding: 100))
            var bundle = FixtureBundle(manifestURL: manifest)
            bundle.extensionProgram = Products.limitExtension
            let install = try device.tool(["install", try bundle.write(to: device.folder)])
            _ = try await device.row("download-began")
            // The installation goes on without it; it would only start a service of its own.
            try install.send(signal: SIGKILL)
            _ = try await install.end()
            try await device.use(.seconds(300))
            try await server.fault()
            let refused = try await device.row("extension-refused")
            #expect(refused.reason == "budget")
            #expect(try await device.row("gate-opened").detail == "extension-failed")
            #expect(try device.extensionRecords().isEmpty)
            try await device.until("the app is launchable") { try await device.apps().map(\.launchable) == [true] }
            await server.stop()
        }
    }

    // MARK: Storage

    @Test("What an extension writes counts against the sizes that its app declares; it waits until there is less")
    func storage() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let plan = LimitPlan(request: .init(.write, bytes: 3 * Self.mebibyte))
            try await device.install(limits: plan, from: server) {
                $0.overrides = ["BAMaxInstallSize": 1 << 20, "BAEssentialMaxInstallSize": 1 << 20]
            }
            let warning = try await device.row("warning") { $0.reason == "size" }
            #expect(
                warning.detail.contains("2 MiB") && warning.detail.contains("BAMaxInstallSize"), "\(warning.detail)")
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            let refused = try await device.row("extension-refused")
            #expect(refused.reason == "size")
            #expect(try await device.extensionLedger().extension.reason == "size")
            #expect(try device.extensionRecords("finished").isEmpty)
            // As the user's cleaning would do.
            let container = device.container(.appExtension, of: "\(FixtureBundle.identifier).extension")
            for file in Files.below(container) where file.hasSuffix("/written") { unlink(container + "/" + file) }
            try await device.told(1)
            #expect(device.asset("one.pack")?.count == 1000)
            #expect(try await device.extensionLedger().extension.reason == "")
            try await app.end()
            await server.stop()
        }
    }

    // MARK: The ledger

    @Test("The ledger is for people too, survives the service, and goes with the app")
    func ledger() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(limits: LimitPlan(), from: server)
            _ = try await device.row("extension-ended")
            let before = try await device.extensionLedger()
            #expect(before.runs.count == 1 && before.extension.state == "absent")
            try await device.kill()
            try await device.start(developerMode: false)
            #expect(try await device.extensionLedger().runs == before.runs)
            let text = try await Program.run(
                Products.tool, ["--device", device.root, "extension", FixtureBundle.identifier],
                environment: device.environment)
            let lines = text.output
            #expect(lines.contains("state    absent"), "\(lines)")
            #expect(lines.contains { $0.contains("LAUNCHED") && $0.contains("MEMORY") }, "\(lines)")
            #expect(lines.contains { $0.contains("no longer needed") }, "\(lines)")
            let stranger = try await device.cli("extension", "org.example.stranger")
            #expect(try Refusal(stranger).reason.contains("org.example.stranger"))
            #expect(try await device.cli("uninstall", FixtureBundle.identifier).exit == .exited(0))
            try FileManager.default.removeItem(atPath: device.folder + "/Fixture.app")
            let start = device.journal.count
            try await device.install(limits: LimitPlan(), from: server)
            _ = try await device.row("extension-ended", from: start)
            #expect(try await device.extensionLedger().runs.count == 1)
            await server.stop()
        }
    }
}
