// Each call of the download manager, from a running app.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct ManagerCallTests {
    @Test(
        "Queued and running downloads are listed with what they were given, the same in every form of the call",
        .shows("B13", "B216", "D2", by: "BADownloadManager.scheduleDownload(_:)"),
        .shows("B11", by: "BADownloadManager.shared"),
        .shows("B19", by: "BAURLDownload"),
        .shows("B30", "D15", by: "BADownloadManager.fetchCurrentDownloads()"),
        .shows("D16", by: "BADownloadManager.fetchCurrentDownloads(completionHandler:)"),
        .shows("D17", by: "BADownloadManager.currentDownloads"),
        .shows("D5", by: "BADownload.uniqueIdentifier"),
        .shows("B187", "D6", by: "BADownload.removingEssential()"),
        .shows("D8", by: "BADownload.state"))
    func lists() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            try await server.fault("*.pack:rate=2000")
            let app = try device.launch()
            // As many as run at a time in the background, and one more.
            let names = ["a.pack", "b.pack", "c.pack", "d.pack"]
            for (number, name) in names.enumerated() {
                let item = try server.item(name, size: 400_000 + number, priority: number == 0 ? 5000 : -number)
                let reply = try await app.perform("schedule", item)
                let before = try #require(reply.downloads?.first)
                #expect(before.state == 0 && reply.download?.state == 1)
                #expect(before.isURLDownload && before.isExactlyURLDownload)
                #expect(UUID(uuidString: before.uniqueIdentifier) != nil)
            }
            for name in names.dropLast() { try await device.row("download-began") { $0.detail.contains(name) } }
            let now = try await app.perform("foreground", try server.item("now.pack", size: 400_000))
            #expect(now.downloads?.first?.state == 0 && [1, 2].contains(now.download?.state))
            try await device.row("download-began") { $0.detail.contains("now.pack") }

            let essential = try server.item("essential.pack", size: 1000, essential: true, priority: 7)
            let both = try #require(try await app.perform("values", essential).downloads)
            #expect(both.map(\.essential) == [true, false] && both.map(\.state) == [0, 0])
            #expect(both.map(\.identifier) == ["essential.pack", "essential.pack"] && both.map(\.priority) == [7, 7])
            #expect(Set(both.map(\.uniqueIdentifier)).count == 2)
            let shown = try await device.cli("downloads", FixtureBundle.identifier)
            try checkDevice(try shown.values(DeviceInterface.Download.self), server)
            #expect(try await app.perform("shared").value == "true")
            #expect(try await app.perform("forms").value == "done")
            let forms = app.events("listed")
            #expect(forms.map(\.value).filter { $0 == "completion" }.count == 2 && forms.count == 4)
            for form in forms {
                #expect(form.downloads == forms.first?.downloads)
                #expect(form.downloads?.map(\.identifier) == names + ["now.pack"])
                #expect(form.downloads?.map(\.state) == [2, 2, 2, 1, 2])
                // The objects are the app's own.
                #expect(form.downloads?.map(\.priority) == [5000, -1, -2, -3, 0])
                #expect(Set(form.downloads?.map(\.uniqueIdentifier) ?? []).count == 5)
                #expect(form.onMainThread == false)
            }
            #expect(Set(forms.filter { $0.value == "completion" }.map(\.label)).count == 1)
            for name in names + ["now.pack"] { try await app.perform("cancel \(name)") }
            try await app.end()
            await server.stop()
        }
    }

    /// What the device says of the downloads in `lists()`.
    private func checkDevice(_ downloads: [DeviceInterface.Download], _ server: TestServer) throws {
        let first = try #require(downloads.first { $0.identifier == "a.pack" })
        #expect(first.url == server.url + "/a.pack" && first.group == "group." + FixtureBundle.identifier)
        // The service clamps it.
        #expect(first.priority == 1000 && !first.essential && first.expected == 400_000)
        let states = Dictionary(
            uniqueKeysWithValues: downloads.map { ($0.identifier, $0.transferClass + " " + $0.state) })
        #expect(states["a.pack"] == "background downloading")
        #expect(states["d.pack"] == "background waiting")
        #expect(states["now.pack"] == "foreground downloading")
    }

    @Test(
        "A foreground download begins at once beside a full queue, and a promoted one overtakes it",
        .shows("B26", "B31", "B99", "B103", "B146", by: "BADownloadManager.startForegroundDownload(_:)"),
        .shows("B147", by: "BADownloadManager.cancel(_:)"))
    func foregroundFirst() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let slow = ["a.slow", "b.slow", "c.slow"]
            // The queue is the extension's.
            var plan = FixturePlan(downloads: try slow.map { try server.item($0, size: 4_000_000) })
            plan.downloads.append(try server.item("unwanted.slow", size: 1000, priority: -5))
            try await server.fault("*.slow:rate=50000", "now.pack:rate=100000")
            try await device.install(plan, from: server)
            for name in slow { try await device.row("download-began") { $0.detail.contains(name) } }

            let app = try device.launch()
            #expect(try await app.perform("cancel unwanted.slow").code == nil)
            try await app.perform("delegate full")
            _ = try await app.perform("schedule", try server.item("queued.pack", size: 1000))
            // Nothing of the queue is held up by it, and twice is as good as once.
            _ = try await app.perform("foreground", try server.item("now.pack", size: 50_000))
            #expect(try await app.perform("again foreground now.pack").code == nil)
            let queued = try await device.row("download-queued") { $0.detail.contains("now.pack") }
            let began = try await device.row("download-began") { $0.detail.contains("now.pack") }
            #expect(began.time - queued.time < 1)
            try await app.event("finished") { $0.download?.identifier == "now.pack" }
            #expect(try await server.requests(of: "now.pack", atLeast: 1).count == 1)
            #expect(app.events("paused").isEmpty)
            #expect(try await device.rows("download-promoted").isEmpty)
            #expect(server.requests(of: "queued.pack").isEmpty)

            // All in one loop: the one that has finished does not keep the other from it.
            #expect(try await app.perform("promote-kept").code == 102)
            try await device.row("download-promoted") { $0.detail == "background to foreground" }
            try await app.event("finished") { $0.download?.identifier == "queued.pack" }
            #expect(try await app.perform("list").downloads?.map(\.identifier).sorted() == slow)
            #expect(server.requests(of: "unwanted.slow").isEmpty)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "What has ended is not started again, and a failure's callback may schedule anew",
        .shows("D44", by: "BADownloadManager.startForegroundDownload(_:)"),
        .shows("B50", by: "BADownloadManagerDelegate.download(_:failedWithError:)"),
        .shows("B108", by: "BADownloadManagerDelegate.download(_:finishedWithFileURL:)"))
    func ended() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let app = try device.launch()
            try server.put("there.pack", randomBytes(100_000, seed: 5))
            try await app.perform("delegate retry \(server.url)/there.pack")
            let missing = FixtureItem("one.pack", url: server.url + "/missing.pack", size: 1)
            _ = try await app.perform("foreground", missing)
            try await app.event("failed")
            let scheduled = try await app.event("scheduled")
            #expect(scheduled.code == nil && scheduled.download?.state == 1)
            let finished = try await app.event("finished")
            #expect(finished.download?.uniqueIdentifier == scheduled.download?.uniqueIdentifier)
            #expect(device.asset("one.pack") == Files.read(server.folder + "/there.pack"))
            for verb in ["schedule", "foreground"] {
                let refused = try await app.perform("again \(verb) one.pack")
                #expect(refused.domain == "BAErrorDomain" && refused.code == 103 && refused.hasReason == true)
            }

            // A file is mapped, removed, and read all the same.
            try await app.perform("delegate mapped")
            let item = try server.item("mapped.pack", size: 300_000)
            let place = app.program.output.count
            _ = try await app.perform("foreground", item)
            let mapped = try await app.event("finished", from: place)
            #expect(mapped.code == nil && mapped.moved == false)
            #expect(device.asset("mapped.pack") == Files.read(server.folder + "/mapped.pack"))
            #expect(try await app.perform("again foreground mapped.pack").code == 102)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "A download keeps its identity over the death of the app, and into the extension",
        .shows("B21", by: "BADownload.identifier"))
    func identity() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            try await server.fault("one.pack:rate=75000")
            let first = try device.launch()
            let scheduled = try await first.perform("foreground", try server.item("one.pack", size: 300_000))
            let unique = try #require(scheduled.download?.uniqueIdentifier)
            try first.program.send(signal: SIGKILL)
            try await device.row("download-demoted")
            let second = try device.launch()
            let list = try await second.perform("list").downloads ?? []
            #expect(list.map(\.identifier) == ["one.pack"] && list.map(\.uniqueIdentifier) == [unique])
            try await second.end()
            try await device.told(1)
            let told = try #require(try device.extensionRecords("finished").first?.download)
            #expect(told.identifier == "one.pack" && told.uniqueIdentifier == unique)
            await server.stop()
        }
    }

    @Test(
        "Inside exclusive control an app promotes what is queued, starts what is not, and fetches again what is missing",
        .shows("B196", "B198", "B199", "B200", "B206", by: "BADownloadManager.withExclusiveControl(_:)"))
    func obtains() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let queued = try server.item("queued.pack", size: 300_000)
            try await server.fault("*.pack:rate=75000")
            try await device.install(FixturePlan(downloads: [queued]), from: server)
            try await device.row("download-began")
            // The manifest is the app's own business; only the assets are the service's.
            let app = try device.launch()
            let plain = try await TestServer.plain(in: server.folder)
            let reply = try await app.perform("fetch \(plain.url)/manifest.json")
            await plain.stop()
            let text = try #require(reply.value, "\(reply.reason ?? "")")
            let manifest = try JSONDecoder().decode(FixturePlan.self, from: Data(text.utf8))
            try await app.perform("delegate full")
            for item in [try #require(manifest.downloads.first), try server.item("new.pack", size: 1000)] {
                #expect(try await app.perform("ensure", item).value == "missing")
                let obtained = try await app.event("obtained") { $0.download?.identifier == item.identifier }
                #expect(obtained.acquired == true && obtained.value == (item == queued ? "existing" : "new"))
                try await app.event("finished") { $0.download?.identifier == item.identifier }
                #expect(try await app.perform("ensure", item).value == "present")
                let size = Int64(item.size)
                #expect(try await server.bytesSent(of: item.identifier, atLeast: size) == size)
            }
            #expect(try await device.rows("download-promoted").count == 1)
            try FileManager.default.removeItem(atPath: device.container() + "/Assets/new.pack")
            let place = app.program.output.count
            #expect(try await app.perform("ensure", try server.item("new.pack", size: 1000)).value == "missing")
            try await app.event("finished", from: place)
            #expect(device.asset("new.pack") == Files.read(server.folder + "/new.pack"))
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "Where no service can be started every call fails with an invalid connection; a stranger is not accepted",
        .shows("B12", "D43", by: "BADownloadManager.fetchCurrentDownloads()"),
        .shows("B95", by: "BADownloadManager.withExclusiveControl(_:)"))
    func unreachable() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let item = try server.item("one.pack", size: 1000)
            // Outside of every installed bundle.
            let stranger = FixtureAppProcess(
                try Program(Products.app, ["commands"], environment: device.environment))
            for command in ["list", "foreground"] {
                let refused =
                    try await command == "list" ? stranger.perform("list") : stranger.perform(command, item)
                #expect(refused.domain == "BAErrorDomain" && refused.code == 55 && refused.hasReason == true)
            }
            try await stranger.end()

            try await device.terminate()
            let bundle = try #require(
                Files.names(in: "\(device.root)/Applications/\(FixtureBundle.identifier)").first { $0 != "current" })
            let program = "\(device.root)/Applications/\(FixtureBundle.identifier)/\(bundle)/Fixture.app/FixtureApp"
            let app = FixtureAppProcess(
                try Program(
                    program, ["commands"],
                    environment: device.environment.merging(["BACKGROUNDASSETS_SERVICE": "/nonexistent"]) { $1 }))
            for verb in ["schedule", "foreground"] {
                let reply = try await app.perform(verb, item)
                #expect(reply.domain == "BAErrorDomain" && reply.code == 56 && reply.hasReason == true)
            }
            for command in ["list", "again cancel one.pack", "async value"] {
                let reply = try await app.perform(command)
                #expect(reply.domain == "BAErrorDomain" && reply.code == 56, "\(command): \(reply)")
            }
            try await app.perform("acquire")
            let control = try await app.event("control")
            #expect(control.acquired == false && control.domain == "BAErrorDomain" && control.code == 56)
            try await app.end()
            await server.stop()
        }
    }
}
