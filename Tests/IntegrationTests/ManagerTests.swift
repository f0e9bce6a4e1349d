// The download manager in a running app and its extension.
import AssetsClient
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import FoundationNetworking
import Glibc
import Testing

@Suite struct ManagerTests {
    /// Installs the sample app with a plan and waits until its messages are through.
    private func install(
        _ plan: FixturePlan, on device: TestDevice, from server: TestServer, messages: Int = 0
    ) async throws {
        let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
        let result = try await device.install(try bundle.write(to: device.folder))
        try #require(result.exit == .exited(0), "\(result.errors)")
        try await device.told(messages)
    }

    @Test(
        "An app sees what its extension scheduled, promotes it without a byte sent twice, and hears of everything",
        .shows("B14", "B88", by: "BADownloadManager.fetchCurrentDownloads()"),
        .shows("B27", "B32", "B201", by: "BADownloadManager.startForegroundDownload(_:)"),
        .shows(
            "B18", "B33", "B36", "B40", "B148", "B202", "D29", by: "BADownloadManager.delegate"),
        .shows("B47", by: "BADownloadManagerDelegate.downloadDidPause(_:)"),
        .shows(
            "B48", "B203",
            by: "BADownloadManagerDelegate.download(_:didWriteBytes:totalBytesWritten:totalBytesExpectedToWrite:)"))
    func promotion() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("level 2.pack", size: 600_000)
            try await server.fault("level 2.pack:rate=200000")
            try await install(FixturePlan(downloads: [item]), on: device, from: server)
            let began = try await device.row("download-began") { $0.detail.contains("level 2.pack") }
            let start = device.journal.count
            #expect(began.detail.contains("background"))

            let app = try device.launch()
            let list = try await app.perform("list").downloads ?? []
            #expect(list.map(\.identifier) == ["level 2.pack"])
            #expect(list.first?.uniqueIdentifier == began.download)
            try await app.perform("delegate full")
            try await app.event("progress")
            let promoted = try await app.perform("promote level 2.pack")
            #expect(promoted.code == nil && promoted.download?.uniqueIdentifier == began.download)
            let row = try await device.row("download-promoted", from: start)
            #expect(row.download == began.download && row.detail == "background to foreground")
            // The second promotion changes nothing.
            #expect(try await app.perform("promote level 2.pack").code == nil)
            let finished = try await app.event("finished")
            try await device.row("message-handled", from: start)

            #expect(finished.bytes == 600_000 && finished.onMainThread == false)
            #expect(device.asset("level 2.pack") == Files.read(server.folder + "/level 2.pack"))
            #expect(try await server.bytesSent(of: "level 2.pack", atLeast: 600_000) == 600_000)
            #expect(try await device.rows("download-promoted").count == 1)
            // The app heard it, so the extension stays asleep.
            #expect(device.journal.all.dropFirst(start).allSatisfy { $0.event != "extension-called" })
            try checkProgress(app, identifier: began.download)
            try await app.end()
            await server.stop()
        }
    }

    /// Deltas add up from where the delegate came in, totals grow to the end.
    private func checkProgress(_ app: FixtureAppProcess, identifier: String) throws {
        let progress = app.events("progress")
        #expect(progress.allSatisfy { $0.download?.uniqueIdentifier == identifier && $0.onMainThread == false })
        #expect(progress.last?.total == 600_000)
        #expect(progress.allSatisfy { $0.expected == 600_000 })
        var total = (progress.first?.total ?? 0) - (progress.first?.written ?? 0)
        for record in progress {
            total += record.written ?? 0
            #expect(record.total == total)
        }
        let events = app.records.map(\.event).filter { $0 != "reply" && $0 != "progress" }
        #expect(events.last == "finished")
        #expect(Set(events.dropLast()).isSubset(of: ["began", "paused"]))
        // Paused by the promotion, and then it goes on.
        let paused = try #require(app.records.firstIndex { $0.event == "paused" })
        #expect(app.records[paused...].contains { $0.event == "progress" })
    }

    @Test(
        "A delegate hears a foreground download from its beginning to its end",
        .shows("B24", by: "BADownloadManager.delegate"),
        .shows("B46", by: "BADownloadManagerDelegate.downloadDidBegin(_:)"),
        .shows(
            "D48",
            by: "BADownloadManagerDelegate.download(_:didWriteBytes:totalBytesWritten:totalBytesExpectedToWrite:)"),
        .shows("B20", "B34", "B35", by: "BADownloadManagerDelegate.download(_:finishedWithFileURL:)"))
    func foreground() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            try await app.perform("delegate full")
            let names = (1...10).map { "file \($0)" }
            let container = try #require(try await app.perform("container").path)
            #expect(container == device.container())
            var identifiers: [String: String] = [:]
            for name in names {
                let reply = try await app.perform("foreground", try server.item(name, size: 50_000 + name.count))
                #expect(reply.code == nil, "\(reply.reason ?? "")")
                identifiers[name] = reply.download?.uniqueIdentifier
            }
            for name in names {
                let finished = try await app.event("finished") { $0.download?.identifier == name }
                #expect(finished.bytes == 50_000 + name.count)
                #expect(finished.path?.hasPrefix(container + "/") == true)
                #expect(finished.download?.uniqueIdentifier == identifiers[name])
                let own = app.records.filter { $0.download?.identifier == name && $0.byDelegate == true }
                #expect(own.first?.event == "began")
                #expect(
                    own.filter { $0.event == "progress" }.compactMap(\.written).reduce(0, +)
                        == finished.bytes.map(Int64.init))
            }
            #expect(Set(app.events("finished").compactMap(\.download?.uniqueIdentifier)).count == 10)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "Without a delegate, or with one that lacks the method, the extension is woken",
        .shows("B38", "B39", "B217", by: "BADownloadManager.delegate"),
        .shows("B41", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"),
        .shows("B82", "B83", "B207", by: "BADownloaderExtension.backgroundDownload(_:failedWithError:)"),
        arguments: ["none", "unfinished"])
    func wakesExtension(delegate: String) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            try await app.perform("delegate \(delegate)")
            let reply = try await app.perform("foreground", try server.item("one.pack", size: 10_000))
            #expect(reply.code == nil)
            try await device.told(1)
            #expect(try device.extensionRecords("finished").map(\.download?.identifier) == ["one.pack"])
            #expect(device.asset("one.pack") == Files.read(server.folder + "/one.pack"))
            if delegate == "unfinished" {
                #expect(app.events("began").count == 1)
                #expect(try await device.rows("message-handled").map(\.reason) == ["not-handled"])
            }
            // A failure takes the same way.
            let missing = FixtureItem("missing.pack", url: server.url + "/missing.pack", size: 1)
            #expect(try await app.perform("foreground", missing).code == nil)
            try await device.told(2)
            let failed = try #require(try device.extensionRecords("failed").first)
            #expect(failed.download?.identifier == "missing.pack" && failed.download?.state == -1)
            #expect(failed.domain == "NSURLErrorDomain" && failed.code == -1100)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "An app that ends leaves its foreground download to the background, and its message to the extension",
        .shows("B84", by: "BADownloadManager.scheduleDownload(_:)"),
        .shows("D10", by: "BADownloadManager.startForegroundDownload(_:)"))
    func disconnect() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            // Tried again when the app is gone, and then there is no such file.
            try await server.fault("one.pack:rate=200000", "gone.pack:503@5x1")
            let app = try device.launch()
            try await app.perform("delegate full")
            _ = try await app.perform("foreground", try server.item("one.pack", size: 400_000))
            let gone = FixtureItem("gone.pack", url: server.url + "/gone.pack", size: 1)
            _ = try await app.perform("schedule", gone)
            try await device.row("download-waits")
            try await app.event("progress")
            try await app.end()
            #expect(try await device.row("download-demoted").detail == "foreground to background")
            try await device.told(2)
            #expect(try device.extensionRecords("failed").map(\.download?.identifier) == ["gone.pack"])
            #expect(device.asset("one.pack") == Files.read(server.folder + "/one.pack"))
            #expect(try await server.bytesSent(of: "one.pack", atLeast: 400_000) == 400_000)
            await server.stop()
        }
    }

    @Test(
        "A cancelled download ends at once, leaves nothing, and cannot be cancelled again",
        .shows("B15", "B16", "D13", "D14", by: "BADownloadManager.cancel(_:)"))
    func cancel() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            try await server.fault("*.pack:rate=50000")
            let app = try device.launch()
            // More than run at a time: the last one waits.
            let names = ["one.pack", "two.pack", "three.pack", "queued.pack"]
            for name in names { _ = try await app.perform("schedule", try server.item(name, size: 4_000_000)) }
            for name in names.dropLast() { try await device.row("download-began") { $0.detail.contains(name) } }
            #expect(try await app.perform("cancel queued.pack").code == nil)
            for name in names.dropLast() {
                #expect(try await app.perform("cancel \(name)").code == nil)
                let answered = try #require(try await server.requests(of: name, atLeast: 1).first)
                #expect(!answered.isComplete)
            }
            #expect(server.requests(of: "queued.pack").isEmpty)
            #expect(try await app.perform("list").downloads == [])
            try await device.until("all are cancelled") { try await device.rows("download-cancelled").count == 4 }
            for name in names {
                let again = try await app.perform("again cancel \(name)")
                #expect(again.domain == "BAErrorDomain" && again.code == 101)
            }
            #expect(try await device.downloads() == [])
            #expect(Files.names(in: device.root + "/Transfers") == [])
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "What cannot be scheduled is refused with the code and reason of the rule",
        .shows("B22", "B25", "B188", "D3", "D7", by: "BADownloadManager.scheduleDownload(_:)"),
        .shows("D45", "D46", by: "BADownloadManager.startForegroundDownload(_:)"))
    func refusals() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            try await server.fault("*.pack:rate=50000")
            let app = try device.launch()
            let item = try server.item("one.pack", size: 4_000_000)
            #expect(try await app.perform("schedule", item).code == nil)
            let cases: [(FixtureItem, Int, String)] = [
                (item, 100, "already scheduled"),
                (FixtureItem("two", url: item.url, group: "group.other"), 102, "group.other"),
                (FixtureItem("two", url: "http://example.com/two"), 102, "https"),
                (FixtureItem("two", url: item.url, size: 5, essential: true), 109, "essential"),
                (FixtureItem("", url: item.url), 102, "identifier is empty"),
                (FixtureItem("two", url: item.url, size: -1), 102, "negative"),
                (FixtureItem("two", url: item.url, sha256: Data(count: 31)), 102, "31 bytes, not 32"),
                (FixtureItem("two", url: item.url, sha256: Data()), 102, "0 bytes, not 32"),
            ]
            for (item, code, word) in cases {
                for verb in ["schedule", "foreground"] {
                    let reply = try await app.perform(verb, item)
                    #expect(reply.domain == "BAErrorDomain")
                    #expect(reply.code == code, "\(verb) \(item)")
                    #expect(reply.hasReason == true)
                    #expect(reply.reason?.contains(word) == true, "\(reply.reason ?? "nil")")
                }
            }
            #expect(try await app.perform("list").downloads?.map(\.identifier) == ["one.pack"])
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "While it answers a content request the extension's manager does not schedule",
        .shows("D25", by: "BADownloadManager.scheduleDownload(_:)"))
    func scheduleInRequest() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("base.pack", size: 1000, essential: true)])
            plan.request = .schedule
            plan.followUps = [try server.item("later.pack", size: 1000)]
            try await install(plan, on: device, from: server, messages: 1)
            let scheduled = try #require(try device.extensionRecords("scheduled").first)
            #expect(scheduled.domain == "BAErrorDomain" && scheduled.code == 102)
            #expect(scheduled.reason?.contains("does not schedule while downloads(for:) runs") == true)
            #expect(server.requests(of: "later.pack").isEmpty)
            await server.stop()
        }
    }

    @Test(
        "In a callback the extension schedules, but only background work",
        .shows("B28", "D12", by: "BADownloadManager.startForegroundDownload(_:)"),
        .shows("B29", "B86", by: "BADownloadManager.scheduleDownload(_:)"),
        .shows("B87", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"))
    func scheduleInCallback() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("catalog", size: 1000, essential: true)])
            plan.followUps = [try server.item("big.pack", size: 100_000)]
            plan.foregrounds = [try server.item("now.pack", size: 1000)]
            plan.finished = .delete
            try await install(plan, on: device, from: server, messages: 2)
            #expect(try device.extensionRecords("scheduled").map(\.code) == [nil])
            // The catalog is read and deleted, which is nobody's problem afterwards.
            #expect(try device.extensionRecords("deleted").map(\.code) == [nil, nil])
            try await device.until("nothing is left") { try await device.downloads() == [] }
            #expect(try await device.rows("warning").isEmpty)
            #expect(try await device.rows("file-deleted").isEmpty)
            #expect(Files.below(device.container() + "/Library/Caches/.BackgroundAssets") == [])
            let refused = try #require(try device.extensionRecords("foreground").first)
            #expect(refused.domain == "BAErrorDomain" && refused.code == 50)
            #expect(try device.extensionRecords("finished").map(\.bytes) == [1000, 100_000])
            let big = try await device.rows("download-began").filter { $0.detail.contains("big.pack") }
            #expect(big.map { $0.detail.contains("background") } == [true])
            #expect(server.requests(of: "now.pack").isEmpty)
            await server.stop()
        }
    }

    @Test(
        "A failed essential download is told after the gate has opened and can be scheduled anew as non-essential",
        .shows("B172", "B225", "D4", "D26", by: "BADownloadManager.scheduleDownload(_:)"),
        .shows("B187", "D6", by: "BADownload.removingEssential()"),
        .shows("B183", "B240", by: "backgroundassets launch"),
        .shows("B185", by: "BADownloaderExtension.backgroundDownload(_:failedWithError:)"))
    func requeue() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var item = try server.item("base.pack", size: 1001, essential: true)
            item.size = 1000
            let gone = FixtureItem("gone.pack", url: server.url + "/gone.pack", size: 10, essential: true)
            var plan = FixturePlan(downloads: [item, gone])
            plan.requeues = true
            try await install(plan, on: device, from: server, messages: 4)
            let failed = try device.extensionRecords("failed")
            #expect(failed.prefix(2).allSatisfy { $0.download?.essential == true && $0.download?.state == -1 })
            #expect(try device.extensionRecords("scheduled").map(\.code) == [nil, nil])
            // The wrong size is no failure any more, a missing file is.
            let finished = try #require(try device.extensionRecords("finished").first)
            #expect(finished.download?.identifier == "base.pack" && finished.download?.essential == false)
            #expect(
                finished.download?.uniqueIdentifier
                    != failed.first { $0.download?.identifier == "base.pack" }?.download?.uniqueIdentifier)
            #expect(failed.last?.download?.identifier == "gone.pack" && failed.last?.download?.essential == false)
            #expect(failed.count == 3)
            #expect(device.asset("base.pack")?.count == 1001)
            let warning = try await device.row("warning") { $0.reason == "size" }
            #expect(warning.detail.contains("1001 bytes instead of the 1000 announced"))
            #expect(finished.download?.priority == failed.first?.download?.priority)
            // All that was essential has failed, and the app can be launched.
            let app = try device.launch()
            #expect(try await app.perform("list").downloads == [])
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "A file that is not moved in the callback is deleted after it",
        .shows("B218", "B219", "D30", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"))
    func unmoved() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("base.pack", size: 1000, essential: true)])
            plan.finished = .leave
            try await install(plan, on: device, from: server, messages: 1)
            let row = try await device.row("file-deleted")
            #expect(row.reason == "unmoved")
            #expect(Files.below(device.container() + "/Library/Caches/.BackgroundAssets") == [])
            await server.stop()
        }
    }

    @Test(
        "Death inside the callback brings the message again, with its file",
        .shows("B144", "B145", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"))
    func crashes() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("base.pack", size: 1000, essential: true)])
            plan.crashes = 2
            try await install(plan, on: device, from: server, messages: 1)
            let records = try device.extensionRecords("finished")
            #expect(records.count == 3)
            #expect(records.allSatisfy { $0.bytes == 1000 })
            // What was in memory is gone each time, what was in the container is there: it ends the crashes.
            #expect(records.map(\.count) == [1, 1, 1])
            #expect(Set(records.map(\.run)).count == 3)
            #expect(try await device.rows("extension-ended").filter { $0.reason == "crash" }.count == 2)
            #expect(device.asset("base.pack")?.count == 1000)
            await server.stop()
        }
    }

    @Test(
        "App and extension take turns in exclusive control, and a holder that dies gives it back",
        .shows("B91", "B94", "B98", "B107", "B137", "B253", by: "BADownloadManager.withExclusiveControl(_:)"),
        .shows("D18", "D19", by: "BADownloadManager.withExclusiveControl(beforeDate:perform:)"))
    func exclusiveControl() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.finished = .moveExclusively
            try await install(plan, on: device, from: server)
            let app = try device.launch()
            try await app.perform("acquire")
            let granted = try await app.event("control")
            #expect(granted.acquired == true && granted.code == nil && granted.domain == nil)
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            // The extension's callback has begun and waits; its message is not done.
            let called = try await device.row("extension-called") { !$0.download.isEmpty }
            let other = try device.launch()
            try await other.perform("acquire-before 0")
            let refused = try await other.event("control")
            #expect(refused.acquired == false)
            #expect(refused.domain == "BAErrorDomain" && refused.code == 0)
            #expect((refused.elapsed ?? .max) < 300)
            var place = other.program.output.count
            try await other.perform("acquire-before 300")
            let late = try await other.event("control", from: place)
            #expect(late.acquired == false)
            #expect((late.elapsed ?? 0) >= 290 && (late.elapsed ?? .max) < 2000)
            #expect(try await device.rows("extension-answered").filter { $0.number > called.number }.isEmpty)
            #expect(try device.extensionRecords("control").isEmpty)

            try app.program.send(signal: SIGKILL)
            try await device.told(1)
            #expect(try device.extensionRecords("control").map(\.acquired) == [true])
            #expect(device.asset("one.pack")?.count == 1000)
            place = other.program.output.count
            try await other.perform("acquire-before 0")
            try await other.event("control", from: place) { $0.acquired == true }
            try await other.end()
            await server.stop()
        }
    }

    @Test(
        "An extension's own delegate hears in the running process; beside the app's both get the message",
        .shows("B43", "B44", "B85", by: "BADownloadManager.delegate"))
    func extensionDelegate() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("catalog", size: 1000, essential: true)])
            plan.setsDelegate = true
            plan.followUps = [try server.item("big.pack", size: 100_000)]
            // It runs as long as this callback.
            plan.finished = .hold
            try await install(plan, on: device, from: server)
            let turnstile = try device.turnstile()
            try await device.row("message-handled")
            let heard = try device.extensionRecords("finished")
            #expect(heard.map(\.download?.identifier) == ["catalog", "big.pack"])
            #expect(heard.map(\.byDelegate) == [nil, true])
            #expect(device.asset("big.pack") == Files.read(server.folder + "/big.pack"))

            let app = try device.launch()
            try await app.perform("delegate full")
            let start = device.journal.count
            _ = try await app.perform("foreground", try server.item("both.pack", size: 1000))
            try await app.event("finished")
            try await device.until("both have answered") {
                try await device.rows("message-handled").filter { $0.number > Int64(start) }.count == 2
            }
            let told = try await device.rows("message-delivered").filter { $0.number > Int64(start) }
            #expect(told.count == 2 && Set(told.map(\.download)).count == 1)
            #expect(try device.extensionRecords("finished").last?.download?.identifier == "both.pack")
            #expect(device.asset("both.pack")?.count == 1000)
            turnstile.letPass()
            try await device.until("all is told") { try await device.downloads().isEmpty }
            #expect(device.asset("catalog")?.count == 1000)
            try await app.end()
            await server.stop()
        }
    }

    @Test("The development authority is believed in Developer Mode only")
    func developmentAuthority() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            try await app.perform("delegate full")
            #expect(try await device.cli("settings", "developer-mode", "off").exit == .exited(0))
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            let failed = try await app.event("failed")
            #expect(
                failed.domain == NSURLErrorDomain && failed.code == URLError.Code.serverCertificateUntrusted.rawValue)
            #expect(server.requests(of: "one.pack").isEmpty)
            #expect(try await device.cli("settings", "developer-mode", "on").exit == .exited(0))
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            #expect(try await app.event("finished").bytes == 1000)
            try await app.end()
            await server.stop()
        }
    }

    @Test("A process that is no installed app is not accepted")
    func stranger() async throws {
        try await TestDevice.run { device in
            let failure = await #expect(throws: ClientError.self) {
                _ = try await device.call(ManagerInterface.Identity.self, Nothing())
            }
            guard case .refused(let code, _, let remedy) = failure?.kind else {
                throw HarnessError("\(failure as Any)")
            }
            #expect(code == 55 && !remedy.isEmpty)
        }
    }
}
