// The main path: from a bundle to an app with its assets.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct InstallTests {
    @Test(
        "An app arrives with its essential assets, and the others follow after the gate has opened",
        .shows(
            "B2", "B3", "B5", "B6", "B71", "B76", "B113", "B118", "B120", "B126", "B127", "B154", "B162", "B170",
            "B211",
            "B242",
            "D50", by: "backgroundassets install"),
        .shows(
            "B77", "B122", "B123", "B124", "B125", "B141", "B166", "B186", "D27", "D28", "D34",
            by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"),
        .shows(
            "B51", "B115", "B171", "B174", "B204",
            by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"))
    func mainPath() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let essentials = [
                try server.item("base.pack", size: 300_000, essential: true),
                try server.item("voices.pack", size: 150_000, essential: true),
            ]
            let later = try server.item("level 2.pack", size: 200_000)
            let manifest = try FixturePlan(downloads: essentials + [later]).encoded()
            let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", manifest))
            let result = try await device.install(try bundle.write(to: device.folder))
            #expect(result.exit == .exited(0), "\(result.errors)")
            try await device.told(3)

            try checkUpdates(try result.values(DeviceInterface.InstallUpdate.self), essentialBytes: 450_000)
            try checkOrder(device)
            try checkExtension(device, manifest: manifest)
            let fetched = try await server.requests(of: "manifest.json", atLeast: 1)
            #expect(fetched.map(\.bytesSent) == [Int64(manifest.count)])
            for item in essentials + [later] {
                #expect(device.asset(item.identifier) == Files.read(server.folder + "/" + item.identifier))
                #expect(try await server.requests(of: item.identifier, atLeast: 1).count == 1)
            }
            // What was handed over was moved away; nothing is left of it.
            try await device.until("no message waits") { try await device.downloads() == [] }
            #expect(Files.below(device.container() + "/Library/Caches/.BackgroundAssets") == [])
            #expect(Files.names(in: device.root + "/Transfers") == [])
            // The launched app finds everything there.
            let app = try device.launch()
            for item in essentials + [later] {
                #expect(try await app.perform("ensure", item).value == "present")
            }
            #expect(try await app.perform("list").downloads == [])
            try await app.end()
            await server.stop()
        }
    }

    /// Phases follow each other, the fraction never goes back and ends at 1.
    private func checkUpdates(_ updates: [DeviceInterface.InstallUpdate], essentialBytes: Int64) throws {
        let phases = ["archive", "unpacking", "manifest", "asking", "essential", "launchable"]
        let seen = try updates.map { try #require(phases.firstIndex(of: $0.phase)) }
        #expect(seen == seen.sorted())
        #expect(updates.last?.phase == "launchable")
        #expect(updates.last?.fraction == 1)
        #expect(updates.map(\.fraction) == updates.map(\.fraction).sorted())
        #expect(Set(updates.map(\.install)).count == 1)
        #expect((updates.last?.received ?? 0) >= essentialBytes)
    }

    private func checkOrder(_ device: TestDevice) throws {
        let rows = device.journal.all
        func place(_ event: String, _ detail: String = "") throws -> Int {
            try #require(
                rows.firstIndex { $0.event == event && (detail.isEmpty || $0.detail.contains(detail)) },
                "no row \(event) \(detail)")
        }
        let order = [
            try place("install-started"), try place("install-staged"), try place("gate-shut"),
            try place("manifest-fetched"), try place("extension-called", ".install"), try place("extension-answered"),
            try place("download-began", "base.pack"), try place("gate-opened"),
            try place("extension-called", "finishedWithFileURL"),
        ]
        #expect(order == order.sorted())
        let opened = try place("gate-opened")
        #expect(rows[opened].detail == "complete")
        // Essential first, all of them, as foreground work; nothing else before the gate is open.
        for name in ["base.pack", "voices.pack"] {
            #expect(try place("download-finished", name) < opened)
            #expect(rows[try place("download-began", name)].detail.contains("essential"))
        }
        #expect(try place("download-began", "level 2.pack") > opened)
        #expect(rows[try place("download-began", "level 2.pack")].detail.contains("background"))
        // The extension that was asked is gone before the gate opens, another process gets the messages.
        #expect(try place("extension-ended") < opened)
        #expect(rows.filter { $0.event == "extension-called" && !$0.download.isEmpty }.count == 3)
        #expect(rows.filter { $0.event == "launched" }.isEmpty)
    }

    private func checkExtension(_ device: TestDevice, manifest: Data) throws {
        let records = try device.extensionRecords()
        let request = try #require(records.first)
        #expect(request.event == "request" && request.request == 1)
        #expect(request.bytes == manifest.count)
        // The extension keeps what it read.
        #expect(Files.read(device.container() + "/" + FixtureName.plan) == manifest)
        #expect(request.isWritable == false)
        #expect(request.madeOnMain == true)
        #expect(request.onMainThread == true)
        #expect(request.remaining == 256 << 20)
        #expect(request.essentialRemaining == (256 << 20) - manifest.count)
        #expect(!Files.exists(try #require(request.path)))
        let finished = records.filter { $0.event == "finished" }
        #expect(finished.count == 3)
        #expect(Set(finished.compactMap(\.download?.identifier)) == ["base.pack", "voices.pack", "level 2.pack"])
        for record in finished {
            #expect(record.path?.hasPrefix(device.container() + "/Library/Caches/.BackgroundAssets/") == true)
            #expect(record.download?.state == 3)
            #expect(record.run != request.run)
        }
    }

    @Test("An app is installed from an archive", arguments: ["tar.zst", "tar.gz", "zip"])
    func archive(suffix: String) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("base.pack", size: 10_000, essential: true)
            let manifest = try server.put("manifest.json", FixturePlan(downloads: [item]).encoded())
            let app = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            let archive = "\(device.folder)/Fixture.\(suffix)"
            try await FixtureBundle.pack(app, as: archive)
            let result = try await device.install(archive)
            #expect(result.exit == .exited(0), "\(result.errors)")
            try await device.told(1)
            #expect(device.asset("base.pack") == Files.read(server.folder + "/base.pack"))
            await server.stop()
        }
    }

    @Test("An app is installed from an archive that an https server has")
    func archiveURL() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("base.pack", size: 10_000, essential: true)
            let manifest = try server.put("manifest.json", FixturePlan(downloads: [item]).encoded())
            let app = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            try await FixtureBundle.pack(app, as: server.folder + "/Fixture.tar.zst")
            try await server.fault("Fixture.tar.zst:rate=2MB")
            let result = try await device.install(server.url + "/Fixture.tar.zst")
            #expect(result.exit == .exited(0), "\(result.errors)")
            let updates = try result.values(DeviceInterface.InstallUpdate.self)
            #expect(updates.first?.phase == "archive")
            #expect(updates.contains { $0.phase == "archive" && $0.expected > 0 })
            #expect(updates.map(\.fraction) == updates.map(\.fraction).sorted())
            try await device.told(1)
            #expect(device.asset("base.pack") != nil)
            // The archive is of no use any more.
            #expect(Files.names(in: device.root + "/Transfers") == [])
            #expect(try await server.requests(of: "Fixture.tar.zst", atLeast: 1).count == 1)
            await server.stop()
        }
    }

    @Test(
        "One progress covers archive, installation and essential assets; their share follows what the extension answers",
        .shows("B155", "B167", "B175", "B176", "B177", "B178", by: "backgroundassets install"))
    func progress() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let items = try ["a.pack", "b.pack"].map { try server.item($0, size: 150_000, essential: true) }
            var plan = FixturePlan(downloads: items)
            plan.request = .wait
            let allowance: Int64 = 100 << 20
            var bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
            bundle.essentialAllowance = Int(allowance)
            let app = try bundle.write(to: device.folder)
            try await FixtureBundle.pack(app, as: server.folder + "/Fixture.tar.zst")
            try await server.fault("Fixture.tar.zst:rate=2MB", "*.pack:rate=150000")
            let install = try device.tool(["install", server.url + "/Fixture.tar.zst"])
            try await device.row("extension-called")
            try device.turnstile().letPass()
            let result = try await install.result()
            #expect(result.exit == .exited(0), "\(result.errors)")

            let updates = try result.values(DeviceInterface.InstallUpdate.self)
            #expect(Set(updates.map(\.install)).count == 1)
            #expect(updates.map(\.fraction) == updates.map(\.fraction).sorted())
            func part(_ phase: String) -> [DeviceInterface.InstallUpdate] { updates.filter { $0.phase == phase } }
            let archive = try #require(Files.read(server.folder + "/Fixture.tar.zst")?.count)
            // The archive is half of it while nobody knows how much follows.
            #expect(Set(part("archive").map(\.fraction)).count > 2)
            #expect(part("archive").allSatisfy { $0.fraction <= 0.5 && $0.expected <= archive })
            // Then the allowance stands for the essential assets, and all stands still until there is an answer.
            let asking = part("asking")
            let unanswered = asking.prefix { $0.expected == Int64(archive) + allowance }
            #expect(Set(unanswered.map(\.fraction)).count == 1)
            // The answer counts from the moment it is written, and the phase ends right after.
            #expect(asking.dropFirst(unanswered.count).allSatisfy { $0.expected == Int64(archive) + 300_000 })
            #expect(try #require(asking.first).fraction > (part("archive").map(\.fraction).max() ?? 1))
            // Then their sizes do, so each byte counts for more.
            let essential = part("essential").filter { $0.fraction < 0.99 }
            #expect(part("essential").allSatisfy { $0.expected == Int64(archive) + 300_000 })
            let (first, last) = (try #require(essential.first), try #require(essential.last))
            let slope = (last.fraction - first.fraction) / Double(last.received - first.received)
            #expect(last.received > first.received && slope > 10 / Double(Int64(archive) + allowance))
            #expect(updates.last?.fraction == 1)
            await server.stop()
        }
    }

    @Test(
        "While essential assets arrive the app cannot be launched, neither through the gate nor directly",
        .shows("B119", "B156", by: "backgroundassets launch"),
        .shows("B168", "B184", "B223", by: "backgroundassets install"))
    func gate() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            // More of them than background transfers run at a time.
            let names = ["base.pack", "b.pack", "c.pack", "d.pack"]
            let items = try names.map { try server.item($0, size: 400_000, essential: true) }
            let manifest = try server.put("manifest.json", FixturePlan(downloads: items).encoded())
            let app = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            try await server.fault("*.pack:rate=200000")
            let install = try device.tool(["install", app])
            for name in names { try await device.row("download-began") { $0.detail.contains(name) } }
            #expect(try await device.rows("download-finished").allSatisfy { !$0.detail.contains(".pack") })
            let answered = try await device.row("extension-answered").time
            let began = try #require(try await device.rows("download-began").map(\.time).max())
            #expect(began - answered < 1)

            let refused = try await device.cli("launch", FixtureBundle.identifier)
            #expect(refused.exit == .exited(1))
            let failure = try Refusal(refused)
            #expect(failure.code == 1006)
            #expect(failure.reason.contains("essential assets are still arriving"))
            #expect(!failure.remedy.isEmpty)
            try await device.row("launch-refused") { $0.reason == "gate" }

            // Nothing leads to the build by name; a process that finds it is refused by the manager.
            let folder = "\(device.root)/Applications/\(FixtureBundle.identifier)"
            #expect(!Files.exists(folder + "/current"))
            let build = try #require(Files.names(in: folder).first)
            let direct = try Program(
                "\(folder)/\(build)/Fixture.app/FixtureApp", ["list"], environment: device.environment)
            let record = try FixtureRecord(line: try #require(try await direct.result().output.first))
            #expect(record.domain == "BAErrorDomain" && record.code == 55)
            #expect(record.reason?.contains("essential assets") == true)
            #expect(try await device.rows("launched").isEmpty)

            let result = try await install.result()
            #expect(result.exit == .exited(0))
            #expect(try await device.cli("apps").values(DeviceInterface.App.self).map(\.launchable) == [true])
            // Every essential byte moves the installation on.
            let essential = try result.values(DeviceInterface.InstallUpdate.self).filter { $0.phase == "essential" }
            for (one, next) in zip(essential, essential.dropFirst()) where next.received > one.received {
                #expect(next.fraction > one.fraction)
            }
            #expect(Set(essential.map(\.received)).count > 3)
            await server.stop()
        }
    }

    @Test(
        "A sideloaded app, and one without essential keys, can be launched at once",
        .shows("B163", "B226", by: "backgroundassets launch"),
        arguments: [true, false])
    func ungated(isSideloaded: Bool) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("base.pack", size: 100_000)
            let manifest = try server.put("manifest.json", FixturePlan(downloads: [item]).encoded())
            try await server.fault("manifest.json:rate=100")
            var bundle = FixtureBundle(manifestURL: manifest)
            if !isSideloaded { bundle.essentialAllowance = nil }
            let app = try bundle.write(to: device.folder)
            let install = try device.tool(["install", app] + (isSideloaded ? ["--sideload"] : []))
            try await device.row("gate-opened") { $0.detail == "not-gated" }
            let running = try device.launch()
            let list = try await running.perform("list")
            #expect(list.code == nil)
            #expect(try await install.result().exit == .exited(0))
            try await running.end()
            await server.stop()
        }
    }

    @Test("A cancelled installation leaves nothing", .shows("B158", by: "backgroundassets install"))
    func cancel() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("base.pack", size: 4_000_000, essential: true)
            let manifest = try server.put("manifest.json", FixturePlan(downloads: [item]).encoded())
            let app = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            try await server.fault("base.pack:rate=50000")
            let install = try device.tool(["install", app])
            try await device.row("download-began") { $0.detail.contains("base.pack") }
            try install.send(signal: SIGINT)
            #expect(try await install.result().exit == .exited(130))
            try await device.row("install-cancelled")
            try await device.expectNothingInstalled()
            await server.stop()
        }
    }

    @Test("An uninstalled app leaves nothing, and can be installed again")
    func uninstall() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("base.pack", size: 10_000, essential: true)
            let manifest = try server.put("manifest.json", FixturePlan(downloads: [item]).encoded())
            let app = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            #expect(try await device.install(app).exit == .exited(0))
            let again = try await device.install(app)
            #expect(again.exit == .exited(14))
            #expect(try Refusal(again).code == 1004)
            try await device.told(1)
            #expect(try await device.cli("uninstall", FixtureBundle.identifier).exit == .exited(0))
            try await device.expectNothingInstalled()
            #expect(try await device.install(app).exit == .exited(0))
            await server.stop()
        }
    }
}
