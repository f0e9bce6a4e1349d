// Priorities, turns and promotion, through the module of real apps.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Testing

@Suite struct QueueTests {
    private func install(_ plan: FixturePlan, on device: TestDevice, from server: TestServer) async throws {
        let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
        let result = try await device.install(try bundle.write(to: device.folder))
        try #require(result.exit == .exited(0), "\(result.errors)")
    }

    /// Names in the order in which their downloads began.
    private func order(_ device: TestDevice, from start: Int = 0) -> [String] {
        device.journal.all.dropFirst(start).filter { $0.event == "download-began" }.compactMap { row in
            row.detail.split(separator: ",").first.map(String.init)
        }
    }

    /// Three run at a time: whatever began among the last two may have changed places on the way to the server.
    private func check(_ order: [String], _ levels: [String]) {
        let names = order.filter { name in levels.contains { name.hasPrefix($0) } }
        let ranks = names.compactMap { name in levels.firstIndex { name.hasPrefix($0) } }
        #expect(ranks.count == levels.count * 4, "\(names)")
        for (place, rank) in ranks.enumerated() {
            #expect(ranks.dropFirst(place + 3).allSatisfy { $0 >= rank }, "\(names)")
        }
    }

    @Test(
        "Downloads that an extension schedules begin by priority",
        .shows(
            "B215", by: "BAURLDownload.init(identifier:request:essential:fileSize:applicationGroupIdentifier:priority:)"
        ))
    func extensionPriority() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await server.fault("*.pack:rate=100000")
            var items: [FixtureItem] = []
            for number in 0..<4 {
                items.append(try server.item("high-\(number).pack", size: 20_000 + number, priority: 500))
                items.append(try server.item("default-\(number).pack", size: 20_100 + number))
                items.append(try server.item("low-\(number).pack", size: 20_200 + number, priority: -500))
            }
            try await install(FixturePlan(downloads: items), on: device, from: server)
            try await device.told(12)
            check(order(device), ["high", "default", "low"])
            await server.stop()
        }
    }

    @Test(
        "The same order holds whatever the order of scheduling",
        .shows("D1", by: "BADownloadManager.scheduleDownload(_:)"))
    func schedulingOrder() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await server.fault("*.pack:rate=60000", "stop.pack:rate=200000")
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            try await app.perform("delegate full")
            let start = device.journal.count
            // All places are taken while the others are scheduled, low ones first.
            for number in 0..<3 {
                let item = try server.item("first-\(number).pack", size: 120_000 + number, priority: 1000)
                #expect(try await app.perform("schedule", item).code == nil)
            }
            for number in 0..<3 {
                try await device.row("download-began", from: start) { $0.detail.contains("first-\(number)") }
            }
            for (level, priority) in [("low", -500), ("default", 0), ("high", 500)] {
                for number in 0..<4 {
                    let item = try server.item("\(level)-\(number).pack", size: 6000 + number, priority: priority)
                    #expect(try await app.perform("schedule", item).code == nil)
                }
            }
            for level in ["low", "default", "high"] {
                for number in 0..<4 {
                    try await app.event("finished") { $0.download?.identifier == "\(level)-\(number).pack" }
                }
            }
            check(order(device, from: start), ["high", "default", "low"])
            try await app.end()
            await server.stop()
        }
    }

    @Test("Large downloads make room for small ones after a while, and no byte comes twice")
    func slices() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await server.fault("large*:rate=100000")
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            try await app.perform("delegate full")
            let start = device.journal.count
            let large = try (0..<3).map { try server.item("large-\($0).pack", size: 1_600_000 + $0) }
            var ids: [String: String] = [:]
            for item in large {
                ids[item.identifier] = try await app.perform("schedule", item).download?.uniqueIdentifier
            }
            for number in 0..<3 {
                try await device.row("download-began", from: start) { $0.detail.contains("large-\(number)") }
            }
            let small = try (0..<10).map { try server.item("small-\($0).pack", size: 10_000 + $0) }
            for item in small { #expect(try await app.perform("schedule", item).code == nil) }
            for item in small { try await app.event("finished") { $0.download?.identifier == item.identifier } }
            #expect(app.events("finished").allSatisfy { $0.download?.identifier.hasPrefix("small") == true })
            let paused = try await device.row("download-paused", from: start)
            #expect(paused.reason == "time-slice" && paused.detail.contains("large-"))
            for item in large { try await app.event("finished") { $0.download?.identifier == item.identifier } }
            for item in large {
                let name = item.identifier
                #expect(device.asset(name) == Files.read(server.folder + "/" + name))
                // Each request asks for the byte after those that were there when the one before was stopped.
                let pauses = try await device.rows("download-paused").filter { $0.download == ids[name] }
                let kept = pauses.compactMap { row in
                    row.detail.split(separator: " ").compactMap { Int($0) }.first
                }
                let requests = try await server.requests(of: name, atLeast: kept.count + 1)
                #expect(requests.dropFirst().map(\.range) == kept.map { "bytes=\($0)-" })
            }
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "A promoted transfer whose server hangs up goes on at once with the byte it had",
        .shows("B32", "B201", by: "BADownloadManager.startForegroundDownload(_:)"), arguments: [false, true])
    func closingServer(sendsMore: Bool) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let closing = try await ClosingServer.start(on: device, size: 700_000, holdingAfter: 300_000)
            try await install(FixturePlan(downloads: [closing.item]), on: device, from: server)
            let app = try device.launch()
            try await app.perform("delegate full")
            closing.sendHeld()
            try await app.event("progress") { $0.total == 300_000 }
            let start = device.journal.count
            #expect(try await app.perform("promote held.pack").code == nil)
            try await device.row("download-promoted", from: start)
            // Servers do not wait for who pauses; what was on its way comes before the end.
            if sendsMore { closing.closeHeldAfterMore() } else { closing.closeHeld() }
            let had = 300_000 + (sendsMore ? ClosingServer.lastBytes : 0)
            let finished = try await app.event("finished")
            #expect(finished.bytes == 700_000)
            let paused = try await device.row("download-paused", from: start)
            #expect(paused.reason == "network" && paused.detail.contains("after \(had) bytes"))
            #expect(try await device.rows("download-waits").isEmpty)
            let requests = try await closing.requests(atLeast: 2)
            #expect(requests.map(\.sent) == [had, 700_000 - had].map(Int64.init))
            #expect(requests[1].from == had && requests[1].ifRange == "\"v1\"")
            let events = app.records.map(\.event)
            let pause = try #require(events.firstIndex(of: "paused"))
            #expect(events[pause...].contains("progress"))
            try await app.end()
            try await closing.stop()
            await server.stop()
        }
    }

    @Test("A promoted transfer whose server waits keeps its connection")
    func keepingServer() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let closing = try await ClosingServer.start(on: device, size: 700_000, holdingAfter: 300_000)
            try await install(FixturePlan(downloads: [closing.item]), on: device, from: server)
            let app = try device.launch()
            try await app.perform("delegate full")
            closing.sendHeld()
            try await app.event("progress") { $0.total == 300_000 }
            #expect(try await app.perform("promote held.pack").code == nil)
            closing.goOn()
            #expect(try await app.event("finished").bytes == 700_000)
            #expect(try await closing.requests(atLeast: 1).map(\.sent) == [700_000])
            try await app.end()
            try await closing.stop()
            await server.stop()
        }
    }
}
