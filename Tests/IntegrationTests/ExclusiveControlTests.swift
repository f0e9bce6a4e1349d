// Exclusive control between an app and its extension.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct ExclusiveControlTests {
    @Test(
        "A thousand visits from app and extension at once never overlap",
        .shows("B17", "B90", by: "BADownloadManager.withExclusiveControl(_:)"))
    func stress() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.finished = .enter
            plan.entries = 500
            try await device.install(plan, from: server)
            let turnstile = try device.turnstile()
            let app = try device.launch()
            app.program.write("enter 500")
            try await app.event("entering")
            // Inside already; now the extension comes, too.
            let other = try device.launch()
            _ = try await other.perform("foreground", try server.item("one.pack", size: 1000))
            try await device.until("the extension wants to get in") {
                try !device.extensionRecords("entering").isEmpty
            }
            turnstile.letPass()
            #expect(try await app.event("reply") { $0.command == "enter 500" }.code == nil)
            try await device.told(1)
            let text = Files.read(device.container() + "/" + FixtureName.entries) ?? Data()
            let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
            #expect(lines.count == 2000)
            var visitors: [Substring] = []
            for number in stride(from: 0, to: lines.count - 1, by: 2) {
                let (came, went) = (lines[number], lines[number + 1])
                try #require(came[0] == "in" && went[0] == "out" && came[1] == went[1], "entry \(number / 2)")
                visitors.append(came[1])
            }
            #expect(Set(visitors).count == 2)
            // They came in turn, not one after the other.
            #expect(zip(visitors, visitors.dropFirst()).filter { $0 != $1 }.count > 10)
            try await app.end()
            try await other.end()
            await server.stop()
        }
    }

    @Test(
        "While the extension is inside the app waits, and gets in when it leaves or dies",
        .shows("B92", "B93", "B197", by: "BADownloadManager.withExclusiveControl(_:)"),
        .shows("D22", by: "BADownloadManager.withExclusiveControl(before:_:)"),
        .shows("D58", by: "BADownloadManager.scheduleDownload(_:)"))
    func extensionInside() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.finished = .holdExclusively
            try await device.install(plan, from: server)
            let turnstile = try device.turnstile()
            try await server.fault("slow.pack:rate=300000")
            let app = try device.launch()
            for round in 0..<2 {
                _ = try await app.perform("foreground", try server.item("\(round).pack", size: 1000))
                try await device.until("the extension is inside") {
                    try device.extensionRecords("control").count == round + 1
                }
                if round == 1 { _ = try await app.perform("schedule", try server.item("slow.pack", size: 300_000)) }
                let refused = try await app.perform("async-before 50")
                #expect(refused.value == nil && refused.domain == "BAErrorDomain")
                #expect(refused.code == 0 && (refused.elapsed ?? 0) >= 40)
                // The call is back; its handler waits.
                let place = app.program.output.count
                try await app.perform("acquire")
                #expect(app.records.dropFirst(place).allSatisfy { $0.event != "control" })
                if round == 0 {
                    turnstile.letPass()
                } else {
                    try await device.row("download-began") { $0.detail.contains("slow.pack") }
                    let process = try #require(try await device.extensionProcess())
                    kill(process, SIGKILL)
                }
                let control = try await app.event("control", from: place)
                #expect(control.acquired == true && control.code == nil)
                try await app.perform("release")
                try await app.event("released", from: place)
            }
            // The transfer did not need its extension, and the callback comes again.
            try await device.row("download-finished") { $0.detail.contains("slow.pack") }
            for _ in 0..<2 { turnstile.letPass() }
            try await device.until("all is told") { try await device.downloads() == [] }
            #expect(device.asset("1.pack")?.count == 1000 && device.asset("slow.pack")?.count == 300_000)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "The asynchronous form returns what its body returns or throws what it throws, after it has given control back",
        .shows("D20", "D21", "D23", by: "BADownloadManager.withExclusiveControl(_:)"),
        .shows("D24", by: "BADownloadManager.fetchCurrentDownloads()"))
    func asynchronous() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let app = try device.launch()
            let other = try device.launch()
            // With a date that is now it is had at once, or not at all.
            for _ in 0..<20 {
                for (one, next) in [(app, other), (other, app)] {
                    #expect(try await one.perform("async value").value == "42")
                    #expect(try await next.perform("async-before 0").value == "42")
                    let thrown = try await one.perform("async error")
                    #expect(
                        thrown.domain == NSCocoaErrorDomain && thrown.code == CocoaError.featureUnsupported.rawValue)
                    #expect(try await next.perform("async-before 0").value == "42")
                }
            }
            // What the other side wants to start inside has to wait, so the list stays as it is.
            try await server.fault("*.pack:rate=1000")
            _ = try await app.perform("schedule", try server.item("one.pack", size: 100_000))
            try await app.perform("acquire")
            let first = try await app.event("control").downloads
            _ = try await other.perform("obtain", try server.item("two.pack", size: 100_000))
            try await app.perform("release")
            let last = try await app.event("released").downloads
            #expect(first?.map(\.identifier) == ["one.pack"] && last?.map(\.identifier) == ["one.pack"])
            #expect(try await other.event("obtained").value == "new")
            #expect(try await app.perform("list").downloads?.map(\.identifier).sorted() == ["one.pack", "two.pack"])
            try await app.end()
            try await other.end()
            await server.stop()
        }
    }

    @Test(
        "Without exclusive control app and extension race for a finished file; with it the later one finds it gone",
        .shows("B89", by: "BADownloadManagerDelegate.download(_:finishedWithFileURL:)"),
        .shows("B96", "B97", by: "BADownloadManager.withExclusiveControl(_:)"),
        .shows("B74", by: "FileManager.containerURL(forSecurityApplicationGroupIdentifier:)"),
        .shows("B213", by: "FileManager.containerURL(forSecurityApplicationGroupIdentifier:)"))
    func race() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("base.pack", size: 1000, essential: true)])
            plan.setsDelegate = true
            // It runs as long as this callback.
            plan.finished = .hold
            try await device.install(plan, from: server)
            let turnstile = try device.turnstile()
            try await device.until("the extension is in its callback") {
                try !device.extensionRecords("finished").isEmpty
            }
            let app = try device.launch()
            let other = try device.launch()
            try await app.perform("delegate full")
            for number in 0..<5 {
                let (mine, theirs) = try await end("\(number).pack", of: app, on: device, from: server)
                // One moves it, to the other it is an error.
                #expect([mine.moved, theirs.moved].compactMap(\.self) == [true])
                #expect([mine, theirs].compactMap(\.domain) == [NSCocoaErrorDomain])
            }
            // The extension goes by what the app writes into their container.
            plan.isDelegateExclusive = true
            try await app.perform("write \(FixtureName.plan) \(String(decoding: try plan.encoded(), as: UTF8.self))")
            #expect(try await app.perform("read \(FixtureName.log)").value?.contains("base.pack") == true)
            try await app.perform("delegate exclusive")
            for number in 5..<10 {
                let (mine, theirs) = try await end("\(number).pack", of: app, on: device, from: server)
                #expect(mine.acquired == true && theirs.acquired == true)
                #expect([mine.moved, theirs.moved].compactMap(\.self).sorted { !$0 && $1 } == [false, true])
                #expect(mine.domain == nil && theirs.domain == nil)
            }
            // Who does not ask is not kept out by who does.
            try await other.perform("acquire")
            #expect(try await other.event("control").acquired == true)
            try await app.perform("delegate full hasty")
            _ = try await app.perform("foreground", try server.item("hasty.pack", size: 1000))
            #expect(try await app.event("finished") { $0.label == "hasty" }.moved == true)
            try await other.perform("release")
            #expect(other.events("released").isEmpty || device.asset("hasty.pack") != nil)
            try await savesWhole(app, other)
            turnstile.letPass()
            try await device.until("all is told") { try await device.downloads().isEmpty }
            try await app.end()
            try await other.end()
            await server.stop()
        }
    }

    /// Has a download end that both are told of.
    private func end(
        _ name: String, of app: FixtureAppProcess, on device: TestDevice, from server: TestServer
    ) async throws -> (FixtureRecord, FixtureRecord) {
        _ = try await app.perform("foreground", try server.item(name, size: 1000))
        let mine = try await app.event("finished") { $0.download?.identifier == name }
        try await device.until("the extension has heard of it") {
            try device.extensionRecords("finished").contains { $0.download?.identifier == name }
        }
        let theirs = try device.extensionRecords("finished").first { $0.download?.identifier == name }
        #expect(device.asset(name)?.count == 1000)
        return (mine, try #require(theirs))
    }

    /// A file that is saved in one piece needs no exclusive control.
    private func savesWhole(_ app: FixtureAppProcess, _ other: FixtureAppProcess) async throws {
        app.program.write("watch shared.json")
        #expect(try await other.perform("save shared.json 300").code == nil)
        let seen = try await app.event("reply") { $0.command == "watch shared.json" }
        let words = try #require(seen.value?.split(separator: " "), "\(seen.reason ?? "")")
        #expect(words.first == "whole" && Int(words[1]) ?? 0 > 2, "\(words)")
    }
}
