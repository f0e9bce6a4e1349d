// Content requests after the installation: by the clock and by the tool, and what an answer may hold.
import AssetsOS
import AssetsWire
import CSQLite
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct EventTests {
    /// Moves the plan of every app into the past, as if so much time had gone by while no service ran.
    private func age(_ device: TestDevice, by time: Duration) async throws {
        try await device.terminate()
        let by = Int64(time / .microseconds(1))
        try change(
            device, "UPDATE plans SET lastUse = lastUse - \(by), lastCheck = lastCheck - \(by), due = due - \(by)")
        try await device.start()
    }

    /// Changes the database of a device whose service does not run.
    private func change(_ device: TestDevice, _ sql: String) throws {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        try #require(sqlite3_open(device.root + "/device.sqlite", &database) == SQLITE_OK)
        try #require(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
    }

    @Test(
        "When the time has come the extension is asked what is new, and new content arrives without a new app",
        .shows("B1", "B8", "B114", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func newContent() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(
                FixturePlan(downloads: [try server.item("old.pack", size: 1000)]), from: server, messages: 1)
            let version = try await device.apps().map(\.build)
            try server.put(
                "manifest.json", FixturePlan(downloads: [try server.item("new.pack", size: 2000)]).encoded())
            try await age(device, by: .seconds(3600))
            try await age(device, by: .seconds(3600))
            #expect(try await device.rows("event-began").isEmpty)
            try await age(device, by: .seconds(6 * 3600))
            try await device.row("event-began") { $0.reason == "interval" }
            try await device.until("the new file is there") { device.asset("new.pack")?.count == 2000 }
            let requests = try device.extensionRecords("request")
            #expect(requests.map(\.request) == [1, 3])
            #expect(try await device.apps().map(\.build) == version)
            // And again, when its time has come again.
            try await device.row("event-planned", from: device.journal.all.lastIndex { $0.event == "event-ended" } ?? 0)
            await server.stop()
        }
    }

    @Test(
        "A periodic answer with an essential download is refused whole, one of an update is not",
        .shows("B214", "B239", "D31", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func essential() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let plan = FixturePlan(downloads: [
                try server.item("base.pack", size: 1000, essential: true), try server.item("more.pack", size: 1000),
            ])
            try server.put("manifest.json", plan.encoded())
            #expect(try await device.simulate("--app-periodic-check").exit == .exited(0))
            let refused = try await device.row("download-refused")
            #expect(refused.detail.contains("code 109") && refused.detail.contains("base.pack"))
            try await device.row("event-ended")
            #expect(try await device.downloads() == [])
            #expect(server.requests(of: "more.pack").isEmpty)
            #expect(try await device.simulate("--app-update").exit == .exited(0))
            try await device.told(2)
            #expect(device.asset("base.pack") != nil && device.asset("more.pack") != nil)
            await server.stop()
        }
    }

    @Test(
        "The extension is told what is left of the allowances, which shrinks with each answer and ends with the launch",
        .shows("D35", "D36", by: "BAAppExtensionInfo.restrictedDownloadSizeRemaining"),
        .shows("D37", by: "BAAppExtensionInfo.restrictedEssentialDownloadSizeRemaining"))
    func remaining() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let plan = FixturePlan(downloads: [
                try server.item("base.pack", size: 30_000, essential: true),
                try server.item("more.pack", size: 20_000),
            ])
            let manifest = try plan.encoded().count
            try await device.install(plan, from: server, messages: 2) {
                $0.downloadAllowance = 100_000
                $0.essentialAllowance = 200_000
            }
            try server.put(
                "manifest.json", FixturePlan(downloads: [try server.item("third.pack", size: 5000)]).encoded())
            let second = try FixturePlan(downloads: [try server.item("third.pack", size: 5000)]).encoded().count
            for event in ["--app-install", "--app-periodic-check"] {
                let start = device.journal.count
                #expect(try await device.simulate(event).exit == .exited(0))
                try await device.row("event-ended", from: start)
                try await device.told(1, from: start)
            }
            let app = try device.launch()
            #expect(try await app.perform("list").downloads == [])
            let start = device.journal.count
            #expect(try await device.simulate("--app-periodic-check").exit == .exited(0))
            try await device.row("event-ended", from: start)
            let requests = try device.extensionRecords("request")
            #expect(requests.map(\.remaining) == [100_000, 80_000, 75_000, nil])
            let first = 200_000 - manifest
            #expect(
                requests.map(\.essentialRemaining) == [
                    first, first - 30_000 - second, first - 30_000 - 2 * second, nil,
                ])
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "Allowances hold where a download is queued, where it begins and where it grows",
        .shows("D39", by: "BADownloadManager.scheduleDownload(_:)"))
    func allowances() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("first.pack", size: 1000, essential: true)])
            plan.followUps = [try server.item("queued.pack", size: 20_000)]
            for (name, size) in [("began.pack", 30_000), ("grown.pack", 30_000)] {
                var item = try server.item(name, size: size)
                item.size = 0
                plan.followUps.append(item)
            }
            // Without a length nobody knows before it has grown.
            try await server.fault("grown.pack:chunked")
            try await device.install(plan, from: server, messages: 3) { $0.downloadAllowance = 10_000 }
            #expect(try device.extensionRecords("scheduled").map(\.code) == [112, nil, nil])
            let failed = try device.extensionRecords("failed")
            let codes = Dictionary(uniqueKeysWithValues: failed.map { ($0.download?.identifier ?? "", $0.code ?? 0) })
            #expect(codes == ["began.pack": 203, "grown.pack": 204])
            #expect(failed.allSatisfy { $0.domain == "BAErrorDomain" })
            await server.stop()
        }
    }

    @Test(
        "What is added to the answer after it was returned is not taken",
        .shows("B142", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func addedLater() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("one.pack", size: 1000, essential: true)])
            plan.followUps = [try server.item("late.pack", size: 1000)]
            plan.request = .addsLater
            try await device.install(plan, from: server, messages: 1)
            let added = try #require(try device.extensionRecords("added").first?.downloads)
            #expect(added.map(\.identifier).sorted() == ["late.pack", "one.pack"])
            #expect(try await device.downloads() == [] && server.requests(of: "late.pack").isEmpty)
            await server.stop()
        }
    }
}
