// Processes that are killed inside callbacks and between any two steps of a message: it is told until it is handled.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct HandshakeTests {
    /// Those inside callbacks of messages and challenges; one in the content request ends the request.
    private static let deaths = FixturePlan.Death.allCases.filter { !$0.rawValue.hasPrefix("request") }

    @Test(
        "An extension killed at any step of its callbacks is told again until it has handled everything",
        arguments: deaths)
    func extensionKilled(at death: FixturePlan.Death) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let asking = try await BasicServer.start(on: device)
            var plan = FixturePlan(downloads: [
                try server.item("a.pack", size: 2000, essential: true), try server.item("b.pack", size: 3000),
                try server.item("missing.pack", size: 10, essential: true),
                try asking.item("asked.pack", size: 1000),
            ])
            try await server.fault("missing.pack:404")
            plan.finished = .moveExclusively
            plan.challenges = [FixtureAnswer(.right)]
            plan.dies = [death]
            try await device.install(plan, from: server)
            try await everythingIsTold(on: device, files: ["a.pack", "b.pack", "asked.pack"])
            #expect(Files.exists(device.container() + "/died " + death.rawValue))
            // The death was seen, except where the answer had left before.
            let ends = try await device.rows("extension-ended").filter { !$0.download.isEmpty }
            #expect(ends.count == 1 || death.rawValue.hasSuffix("Returns") && ends.isEmpty, "\(ends)")
            #expect(try device.extensionRecords("failed").contains { $0.download?.identifier == "missing.pack" })
            #expect(try await asking.finish().contains { $0.path == "/asked.pack" && $0.status == 200 })
            await server.stop()
        }
    }

    @Test(
        "An extension killed while it is asked what to download leaves a launchable app, and can be asked again",
        arguments: [FixturePlan.Death.requestBegins, .requestIsDone, .requestReturns])
    func killedWhenAsked(at death: FixturePlan.Death) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("a.pack", size: 2000, essential: true)])
            plan.dies = [death]
            try await device.install(plan, from: server)
            let opened = try await device.row("gate-opened")
            let isAnswered = opened.detail == "complete"
            #expect(isAnswered ? death == .requestReturns : opened.detail == "extension-failed")
            if !isAnswered {
                #expect(try await device.downloads().isEmpty)
                _ = try await device.call(
                    DeviceInterface.Simulate.self, .init(app: FixtureBundle.identifier, event: "install"))
            }
            try await everythingIsTold(on: device, files: ["a.pack"])
            await server.stop()
        }
    }

    /// Rows of the journal between a finished download and the end of its message.
    @Test(
        "A service killed at any step of a message tells it again until it is handled",
        arguments: [
            "download-finished", "gate-opened", "extension-launched", "extension-called", "extension-ended",
            "message-waits", "extension-answered", "file-deleted", "message-closed",
        ])
    func serviceKilled(at event: String) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [
                try server.item("a.pack", size: 2000, essential: true), try server.item("b.pack", size: 3000),
            ])
            if event == "extension-ended" || event == "message-waits" { plan.dies = [.finishedBegins] }
            if event == "file-deleted" { plan.finished = .leave }
            let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
            let install = try device.tool(["install", try bundle.write(to: device.folder)])
            let isOfMessage = !["gate-opened", "extension-launched"].contains(event)
            let start = event == "extension-launched" ? try await place(of: "gate-opened", on: device) : 0
            try await device.row(event, from: start) { !isOfMessage || !$0.download.isEmpty }
            try await device.kill()
            #expect(try await install.result().exit == .exited(0))
            try await device.follow()
            try await everythingIsTold(on: device, files: event == "file-deleted" ? [] : ["a.pack", "b.pack"])
            #expect(Files.below(device.container() + "/Library/Caches/.BackgroundAssets") == [])
            await server.stop()
        }
    }

    @Test("A message whose app is killed inside the callback goes to the extension")
    func appKilled() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let app = try device.launch()
            try await app.perform("delegate blocking")
            _ = try await app.perform("foreground", try server.item("one.pack", size: 10_000))
            try await app.event("entering")
            try app.program.send(signal: SIGKILL)
            _ = try await app.program.end()
            try await everythingIsTold(on: device, files: ["one.pack"])
            #expect(try device.extensionRecords("finished").map(\.download?.identifier) == ["one.pack"])
            await server.stop()
        }
    }

    private func place(of event: String, on device: TestDevice) async throws -> Int {
        let row = try await device.row(event)
        return (device.journal.all.firstIndex { $0.number == row.number } ?? 0) + 1
    }

    /// Waits until no message is left, and looks at how it came to that: what was recorded as done is not told again.
    private func everythingIsTold(on device: TestDevice, files: [String]) async throws {
        try await device.until("all is told") { try await device.downloads().isEmpty }
        for file in files { #expect(device.asset(file) != nil, "\(file)") }
        let rows = try await device.wholeJournal()
        let closed = rows.filter { $0.event == "message-closed" }
        #expect(Set(closed.map(\.download)).count == closed.count)
        for end in closed {
            #expect(end.reason == "", "\(end.detail)")
            let later = rows.filter { $0.number > end.number && $0.download == end.download }.map(\.event)
            #expect(!later.contains("extension-called") && !later.contains("message-delivered"), "\(later)")
        }
    }
}
