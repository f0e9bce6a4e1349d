// What an extension may do, and what holds until its app is first launched.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct ExtensionTests {
    @Test(
        "The extension's manager does everything but foreground work",
        .shows("B73", by: "BADownloadManager.fetchCurrentDownloads()"))
    func calls() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("catalog", size: 1000, essential: true)])
            plan.passing = [try server.item("passing.pack", size: 4_000_000)]
            plan.foregrounds = plan.passing
            plan.finished = .moveExclusively
            try await server.fault("passing.pack:rate=1000")
            try await device.install(plan, from: server, messages: 1)
            #expect(try device.extensionRecords("scheduled").map(\.code) == [nil])
            #expect(try device.extensionRecords("cancelled").map(\.code) == [nil])
            let lists = try device.extensionRecords("listed").map { $0.downloads?.map(\.identifier) }
            #expect(lists == [["passing.pack"], []])
            #expect(try device.extensionRecords("control").map(\.acquired) == [true])
            #expect(try device.extensionRecords("foreground").map(\.code) == [50])
            try await device.row("download-cancelled")
            #expect(device.asset("catalog")?.count == 1000)
            await server.stop()
        }
    }

    @Test(
        "Until the first launch the sum of all files and the hosts are bounded, whoever schedules",
        .shows("B62", "B63", "B247", "D40", by: "BADownloadManager.scheduleDownload(_:)"),
        .shows("B65", "B111", "D51", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func restrictions() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            // Essential bytes do not count.
            var plan = FixturePlan(downloads: [try server.item("catalog", size: 50_000, essential: true)])
            for host in TestServer.hosts where host.hasSuffix(".localhost") {
                try server.put(host, randomBytes(1000, seed: 1))
                plan.downloads.append(FixtureItem(host, url: server.url(of: host, at: host), size: 1000))
            }
            plan.followUps = try ["a", "b", "c"].map { try server.item($0, size: 3000) }
            plan.followUps.append(try server.item("d", size: 2001))
            plan.followUps.append(try server.item("e", size: 2000))
            plan.followUps.append(FixtureItem("f", url: server.url(of: "a", at: "127.0.0.1"), size: 0))
            var essential = try server.item("g", size: 1, essential: true)
            essential.essential = true
            plan.followUps.append(essential)
            try await device.install(plan, from: server, messages: 6) {
                $0.downloadAllowance = 10_000
                $0.domains = ["localhost", "*.localhost"]
            }
            let scheduled = try device.extensionRecords("scheduled")
            #expect(scheduled.map(\.code) == [nil, nil, 112, 112, nil, 202, 109])
            #expect(scheduled.allSatisfy { $0.code == nil || $0.domain == "BAErrorDomain" })
            let refused = try await device.rows("download-refused").map(\.reason)
            #expect(refused.prefix(3) == ["allowance", "allowance", "domain"])
            for name in ["a", "b", "e"] + plan.downloads.map(\.identifier) {
                #expect(device.asset(name) == Files.read(server.folder + "/" + name), "\(name)")
            }
            for name in ["c", "d", "g"] { #expect(server.requests(of: name).isEmpty) }
            await server.stop()
        }
    }

    @Test(
        "A manifest that the extension cannot use leaves the app launchable, with nothing queued",
        .shows("B212", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func unusableManifest() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let manifest = try server.put("manifest.json", Data("{\"downloads\": [".utf8))
            let app = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            #expect(try await device.install(app).exit == .exited(0))
            #expect(try device.extensionRecords("request").count == 1)
            #expect(try await device.row("gate-opened").detail == "nothing-essential")
            #expect(try await device.downloads() == [])
            #expect(try await device.apps().map(\.launchable) == [true])
            await server.stop()
        }
    }

    @Test(
        "What is not essential starts while the ends of essential downloads are being told",
        .shows("B173", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"))
    func batch() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [
                try server.item("a.pack", size: 1000, essential: true),
                try server.item("b.pack", size: 1000, essential: true), try server.item("later.pack", size: 1000),
            ])
            plan.finished = .hold
            try await device.install(plan, from: server)
            let turnstile = try device.turnstile()
            try await device.row("download-finished") { $0.detail.contains("later.pack") }
            #expect(try await device.rows("extension-called").filter { !$0.download.isEmpty }.count == 1)
            for _ in 0..<3 { turnstile.letPass() }
            try await device.told(3)
            #expect(device.asset("b.pack")?.count == 1000 && device.asset("later.pack")?.count == 1000)
            await server.stop()
        }
    }

    @Test(
        "What failed is not tried again by itself; queued anew, its end is told to the app that runs",
        .shows("B189", by: "BADownloadManagerDelegate.download(_:finishedWithFileURL:)"),
        .shows("B241", by: "BADownloaderExtension.backgroundDownload(_:failedWithError:)"), arguments: [true, false])
    func requeued(isRequeued: Bool) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var item = try server.item("base.pack", size: 60_001, essential: true)
            item.size = 60_000
            if isRequeued { try await server.fault("base.pack:rate=20000") }
            var plan = FixturePlan(downloads: [item])
            plan.requeues = isRequeued
            try await device.install(plan, from: server, messages: 1)
            guard isRequeued else {
                try await device.until("nothing is queued") { try await device.downloads() == [] }
                #expect(try await server.requests(of: "base.pack", atLeast: 1).count == 1)
                #expect(device.asset("base.pack") == nil)
                return await server.stop()
            }
            let app = try device.launch()
            try await app.perform("delegate full")
            #expect(try await app.event("finished").bytes == 60_001)
            let row = try await device.row("download-began") { $0.detail.contains("background") }
            #expect(row.detail.contains("base.pack"))
            #expect(try device.extensionRecords("finished").isEmpty)
            try await app.end()
            await server.stop()
        }
    }
}
