// Who is told of a download: the delegate in a running app, or the extension.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct WakingTests {
    @Test(
        "Only the end of a download wakes the extension: nothing on the way does, and no call of the app",
        .shows("B42", "B45", "B75", by: "BADownloadManager.delegate"),
        .shows("B70", by: "BADownloadManager.shared"))
    func asleep() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            // If it were woken it would hear everything.
            plan.setsDelegate = true
            try await device.install(plan, from: server)
            try await device.extensionIsAsleep()
            let start = device.journal.count
            try await server.fault("one.pack:rate=75000", "two.pack:rate=1000")
            let app = try device.launch()
            // Begin, progress and pause, with nobody to hear of them.
            _ = try await app.perform("schedule", try server.item("one.pack", size: 300_000))
            try await device.row("download-began", from: start)
            try await device.until("progress is made") { (try await device.downloads().first?.received ?? 0) > 20_000 }
            try await app.perform("promote one.pack")
            try await device.row("download-promoted", from: start)
            #expect(Processes.children(of: try await device.process()).isEmpty)
            // Every other call.
            _ = try await app.perform("schedule", try server.item("two.pack", size: 1_000_000, priority: -1))
            #expect(try await app.perform("forms").value == "done")
            try await app.perform("acquire-before 10000")
            #expect(try await app.event("control").acquired == true)
            #expect(try await app.perform("async value").value == "42")
            let finished = try await device.row("download-finished", from: start) { $0.detail.contains("one.pack") }
            let before = device.journal.all.dropFirst(start).filter { $0.number < finished.number }
            #expect(before.allSatisfy { $0.event != "extension-called" })
            try await device.told(1, from: start)
            try await app.perform("cancel two.pack")
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "A delegate that is dropped, replaced or empty is as none; one that comes later hears of what comes later",
        .shows("B23", "B252", by: "BADownloadManager.delegate"),
        .shows("B37", by: "BADownloadManagerDelegate.download(_:finishedWithFileURL:)"),
        .shows("B104", by: "BADownloadManagerDelegate"))
    func delegates() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let app = try device.launch()
            let dropped = try await app.perform("delegate dropped")
            #expect(dropped.value == "held" && dropped.acquired == false)
            _ = try await app.perform("foreground", try server.item("dropped.pack", size: 1000))
            try await device.told(1)
            try await app.perform("delegate empty")
            _ = try await app.perform("foreground", try server.item("empty.pack", size: 1000))
            try await device.told(2)
            #expect(try await device.rows("message-handled").allSatisfy { $0.reason == "not-handled" })
            #expect(try device.extensionRecords("finished").map(\.bytes) == [1000, 1000])

            try await app.perform("delegate full old")
            try await app.perform("delegate full new")
            _ = try await app.perform("foreground", try server.item("later.pack", size: 1000))
            let heard = try await app.event("finished")
            #expect(heard.download?.identifier == "later.pack" && heard.label == "new")
            // An app that ends before its answer has arrived has not answered.
            try await device.row("message-closed") { $0.download == heard.download?.uniqueIdentifier }
            try await app.end()
            // Nothing of what was before, and nothing to the old one.
            let records = app.records.filter { $0.byDelegate == true }
            #expect(records.allSatisfy { $0.download?.identifier == "later.pack" && $0.label == "new" })
            #expect(try device.extensionRecords("finished").count == 2)
            await server.stop()
        }
    }

    @Test(
        "A message that waits for the extension goes to a delegate that appears meanwhile",
        .shows("B37", by: "BADownloadManager.delegate"))
    func delegateAppears() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.finished = .hold
            try await device.install(plan, from: server)
            let turnstile = try device.turnstile()
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("first.pack", size: 1000))
            try await device.row("extension-called") { !$0.download.isEmpty }
            _ = try await app.perform("foreground", try server.item("second.pack", size: 1000))
            try await device.row("download-finished") { $0.detail.contains("second.pack") }
            try await app.perform("delegate full")
            #expect(try await app.event("finished").download?.identifier == "second.pack")
            turnstile.letPass()
            try await device.told(1)
            try await app.end()
            #expect(try device.extensionRecords("finished").map(\.download?.identifier) == ["first.pack"])
            #expect(device.asset("first.pack")?.count == 1000 && device.asset("second.pack")?.count == 1000)
            await server.stop()
        }
    }

    @Test(
        "An extension that implements nothing installs without downloads, and files without a receiver stay",
        .shows("B105", "D33", by: "BADownloaderExtension"),
        .shows("B53", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"))
    func emptyExtension() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("essential.pack", size: 1000, essential: true)
            try await device.install(FixturePlan(downloads: [item]), from: server) {
                $0.extensionProgram = Products.emptyExtension
            }
            #expect(try await device.downloads() == [])
            #expect(server.requests(of: "essential.pack").isEmpty)
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            let closed = try await device.row("message-closed")
            #expect(closed.reason == "not-implemented")
            let left = Files.below(device.container() + "/Library/Caches/.BackgroundAssets")
            #expect(left.count == 1)
            let file = device.container() + "/Library/Caches/.BackgroundAssets/" + (left.first ?? "")
            #expect(Files.read(file) == Files.read(server.folder + "/one.pack"))
            #expect(try await device.rows("file-deleted").isEmpty)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "What the sample's extension does not know it passes over, and the file goes",
        .shows("B220", by: "BADownload.identifier"),
        .shows("B53", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"))
    func unknown() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("known.pack", size: 1000)])
            plan.ignoresUnknown = true
            try await device.install(plan, from: server, messages: 1)
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("unknown.pack", size: 1000))
            let deleted = try await device.row("file-deleted")
            #expect(deleted.reason == "unmoved" && deleted.detail.contains("unknown.pack"))
            #expect(device.asset("known.pack")?.count == 1000 && device.asset("unknown.pack") == nil)
            #expect(Files.below(device.container() + "/Library/Caches/.BackgroundAssets") == [])
            try await app.end()
            await server.stop()
        }
    }

    @Test("A delegate that blocks holds up nobody; after a minute the extension is woken, and its late answer is taken")
    func blocks() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let app = try device.launch()
            let other = try device.launch()
            try await app.perform("delegate blocking")
            let begun = MonotonicClock.now
            _ = try await app.perform("foreground", try server.item("one.pack", size: 10_000))
            try await app.event("entering")
            // Calls of the same process and of others go on, and so do downloads.
            #expect(try await app.perform("list").downloads == [])
            #expect(try await other.perform("schedule", try server.item("two.pack", size: 10_000)).code == nil)
            _ = try await device.row("download-finished") { $0.detail.contains("two.pack") }
            #expect(try await other.perform("list").downloads == [])
            let answered = try await device.row("extension-answered", within: .seconds(90)) { !$0.download.isEmpty }
            #expect(MonotonicClock.now - begun >= .seconds(59))
            #expect(answered.app == FixtureBundle.identifier)
            #expect(device.asset("one.pack") != nil)
            try await app.perform("release")
            let late = try await app.event("finished")
            #expect(late.moved != true)
            try await app.perform("release")
            try await app.end()
            try await other.end()
            await server.stop()
        }
    }
}
