// The life of an extension's process: stopped, continued, ended, and what its misdeeds end.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct ExtensionLifeTests {
    @Test(
        "After its answer the extension is stopped, goes on for the next message, and is told of its end after a while",
        .shows("B126", "B136", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"),
        .shows("B109", by: "BADownloaderExtension.extensionWillTerminate()"))
    func suspended() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(limits: LimitPlan(), from: server)
            _ = try await device.row("extension-ended")
            let start = device.journal.count
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            let stopped = try await device.row("extension-suspended", from: start)
            let process = try #require(try await device.extensionProcess())
            #expect(Processes.state(of: process) == "T")
            #expect(try await device.extensionLedger().extension.state == "suspended")
            // The same process goes on.
            _ = try await app.perform("foreground", try server.item("two.pack", size: 1000))
            _ = try await device.row("extension-suspended", from: device.place(after: stopped))
            #expect(try await device.extensionProcess() == process)
            let runs = Set(try device.extensionRecords("finished").map(\.run))
            #expect(runs.count == 1)
            let begun = MonotonicClock.now
            let ended = try await device.row("extension-ended", from: start)
            #expect(ended.reason == "" && ended.detail.contains("exited with 0"), "\(ended.detail)")
            #expect(MonotonicClock.now - begun > .seconds(8))
            #expect(
                try device.extensionRecords("terminates").filter { runs.contains($0.run) }.map(\.onMainThread) == [true]
            )
            #expect(Processes.state(of: process) == nil)
            #expect(try await device.extensionLedger().runs.first?.calls == 2)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "With a file lock it is not stopped before it lets go; one that keeps it is ended after a second",
        arguments: [LimitPlan.Deed.Kind.flock, .posixLock, .descriptionLock], [400, 60_000])
    func locks(kind: LimitPlan.Deed.Kind, milliseconds: Int) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(
                limits: LimitPlan(finished: .init(kind, milliseconds: milliseconds)), from: server)
            _ = try await device.row("extension-ended")
            let start = device.journal.count
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            let answered = try await device.row("extension-answered", from: start)
            #expect(try device.extensionRecords("locked").map(\.value) == ["held"])
            if milliseconds < 1000 {
                let stopped = try await device.row("extension-suspended", from: start)
                #expect(stopped.time - answered.time > 0.2)
            } else {
                let ended = try await device.row("extension-ended", from: start)
                #expect(ended.reason == "lock" && ended.detail.contains("/database"), "\(ended.detail)")
                #expect(ended.time - answered.time > 0.9 && ended.time - answered.time < 5)
                #expect(try await device.rows("extension-suspended").filter { $0.number > answered.number }.isEmpty)
            }
            // Whoever wants the lock gets it.
            let file = open(device.container() + "/database", O_RDWR | O_CLOEXEC)
            #expect(file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
            close(file)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "A crash, an exit or nonsense at the install request makes the app launchable at once",
        .shows("B244", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"),
        arguments: [LimitPlan.Deed.Kind.crash, .exit, .nonsense])
    func deathAtInstall(kind: LimitPlan.Deed.Kind) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let plan = LimitPlan(
                request: .init(kind), downloads: [try server.item("never.pack", size: 1000, essential: true)])
            let begun = MonotonicClock.now
            try await device.install(limits: plan, from: server)
            #expect(MonotonicClock.now - begun < .seconds(30))
            let ended = try await device.row("extension-ended")
            #expect(ended.reason == (kind == .nonsense ? "invalid" : "crash"), "\(ended)")
            let opened = try await device.row("gate-opened")
            #expect(opened.detail == "extension-failed" && opened.time - ended.time < 2)
            #expect(try await device.downloads() == [] && server.requests(of: "never.pack").isEmpty)
            #expect(try await device.extensionProcess() == nil)
            await server.stop()
        }
    }

    @Test(
        "A death in a callback ends that call only: the message comes again, and the next one too",
        .shows("D32", by: "BADownloaderExtension.extensionWillTerminate()"),
        arguments: [LimitPlan.Deed.Kind.crash, .exit, .nonsense])
    func deathInCallback(kind: LimitPlan.Deed.Kind) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let plan = LimitPlan(
                finished: .init(kind), downloads: [try server.item("one.pack", size: 1000)])
            try await device.install(limits: plan, from: server)
            let first = try await device.row("extension-ended") { !$0.download.isEmpty }
            _ = try await device.row("extension-ended", from: device.place(after: first)) { !$0.download.isEmpty }
            let records = try device.extensionRecords("finished")
            #expect(records.count >= 2 && Set(records.map(\.run)).count == records.count)
            // Nobody told those that died of their end.
            let told = try device.extensionRecords("terminates").map(\.run)
            #expect(Set(told).isDisjoint(with: records.map(\.run)))
            await server.stop()
        }
    }

    @Test("What speaks without being asked is killed, and the next message finds another process")
    func chatter() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(limits: LimitPlan(finished: .init(.chatter)), from: server)
            _ = try await device.row("extension-ended")
            let app = try device.launch()
            let start = device.journal.count
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            _ = try await device.row("extension-answered", from: start)
            let ended = try await device.row("extension-ended", from: start)
            #expect(ended.reason == "crash" && ended.detail.contains("without being asked"), "\(ended.detail)")
            _ = try await app.perform("foreground", try server.item("two.pack", size: 1000))
            _ = try await device.row("extension-answered", from: device.place(after: ended))
            #expect(device.asset("two.pack")?.count == 1000)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "While it waits for exclusive control outside of an entry point it is not stopped, and that time counts",
        .shows("B137", by: "BADownloadManager.withExclusiveControl(_:)"))
    func control() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(limits: LimitPlan(finished: .init(.control)), from: server)
            _ = try await device.row("extension-ended")
            let app = try device.launch()
            let start = device.journal.count
            try await app.perform("acquire")
            #expect(try await app.event("control").acquired == true)
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            _ = try await device.row("extension-answered", from: start)
            _ = try await device.row("control-waits", from: start)
            let process = try #require(try await device.extensionProcess())
            let before = try await device.extensionLedger()
            #expect(before.extension.state == "idle" && Processes.state(of: process) != "T")
            try await device.until("a second of waiting has counted") {
                try await device.extensionLedger().extension.runtimeUsed > before.extension.runtimeUsed + 1
            }
            try await app.perform("release")
            _ = try await device.row("extension-suspended", from: start)
            #expect(try device.extensionRecords("control").map(\.acquired) == [true])
            try await app.end()
            await server.stop()
        }
    }

    @Test("The delegate of a stopped extension counts as none: its entry point is called at once")
    func delegate() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let plan = LimitPlan(finished: .init(.delegate), downloads: [try server.item("one.pack", size: 100)])
            try await device.install(limits: plan, from: server)
            let told = try await device.row("extension-answered") { !$0.download.isEmpty }
            let stopped = try await device.row("extension-suspended", from: device.place(after: told))
            let process = try #require(try await device.extensionProcess())
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("two.pack", size: 1000))
            _ = try await device.row(
                "extension-answered", from: device.place(after: stopped), within: .seconds(90)
            ) { !$0.download.isEmpty }
            let record = try #require(
                try device.extensionRecords("finished").first { $0.download?.identifier == "two.pack" })
            #expect(try await device.extensionProcess() == process && record.byDelegate != true)
            try await app.end()
            await server.stop()
        }
    }
}
