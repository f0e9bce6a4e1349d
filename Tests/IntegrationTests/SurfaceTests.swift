// The public API against the running service: the spellings of 2022, and input that makes no sense.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Testing

@Suite struct SurfaceTests {
    @Test(
        "An extension of 2022 is told of the install and schedules what is allowed before the first launch",
        arguments: [true, false])
    func extensionOf2022(isGated: Bool) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let manifest = "{}"
            var bundle = FixtureBundle(manifestURL: try server.put("manifest.json", Data(manifest.utf8)))
            bundle.extensionProgram = Products.appExtension2022
            bundle.downloadAllowance = 5000
            // Where there is no essential allowance the manifest counts against the other one.
            if !isGated { bundle.essentialAllowance = nil }
            let allowance = isGated ? 5000 : 5000 - manifest.utf8.count
            let first = try server.item("first.pack", size: 1000)
            bundle.itemsOf2022 = [
                first, FixtureItem("essential", url: first.url, size: 1, essential: true),
                FixtureItem("large", url: first.url, size: allowance - 999),
                FixtureItem("other", url: "https://127.0.0.1/other", size: 1),
                FixtureItem("missing.pack", url: server.url + "/missing.pack", size: allowance - 1000),
            ]
            let result = try await device.install(try bundle.write(to: device.folder))
            #expect(result.exit == .exited(0), "\(result.errors)")
            try await device.told(2)

            let installed = try #require(try device.extensionRecords("installed").first)
            #expect(installed.remaining == allowance && installed.onMainThread == true)
            #expect(installed.essentialRemaining == (isGated ? (256 << 20) - manifest.utf8.count : 0))
            let scheduled = try device.extensionRecords("scheduled")
            #expect(scheduled.map(\.download?.identifier) == bundle.itemsOf2022.map(\.identifier))
            #expect(scheduled.map(\.code) == [nil, 109, 112, 202, nil])
            #expect(try device.extensionRecords("foreground").map(\.code) == [50])
            #expect(try device.extensionRecords("finished").map(\.bytes) == [1000])
            #expect(device.asset("first.pack") == Files.read(server.folder + "/first.pack"))
            let failed = try #require(try device.extensionRecords("failed").first)
            #expect(failed.download?.identifier == "missing.pack" && failed.download?.state == -1)
            #expect(failed.domain == "NSURLErrorDomain" && failed.code == -1100)
            try await checkOrder(device, isGated: isGated)
            await server.stop()
        }
    }

    /// The newer entry point is asked first; what the older one schedules waits for the gate, and it ran before that opened.
    private func checkOrder(_ device: TestDevice, isGated: Bool) async throws {
        let calls = try await device.rows("extension-called").filter(\.download.isEmpty)
        #expect(calls.map(\.detail) == ["downloads(for: .install)", "applicationDidInstall(metadata:)"])
        let answers = try await device.rows("extension-answered").filter(\.download.isEmpty)
        #expect(answers.map(\.reason) == ["not-implemented", ""])
        guard isGated else { return }
        let opened = try #require(try await device.rows("gate-opened").first)
        #expect(opened.detail == "nothing-essential")
        #expect(answers.allSatisfy { $0.number < opened.number })
        let began = try await device.rows("download-began").filter { $0.detail.contains("pack") }
        #expect(began.allSatisfy { $0.number > opened.number })
    }

    @Test("Bad input is refused with its code and a reason, the process lives, and others notice nothing")
    func badInput() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", FixturePlan().encoded()))
            #expect(try await device.install(try bundle.write(to: device.folder)).exit == .exited(0))
            try await server.fault("*.pack:rate=50000")
            let app = try device.launch()
            let other = try device.launch()
            let url = try server.item("one.pack", size: 4_000_000).url
            #expect(try await other.perform("schedule", FixtureItem("other", url: url)).code == nil)
            let long = String(repeating: "ä", count: 5 << 10)
            let cases: [(FixtureItem, String)] = [
                (FixtureItem(long, url: url), "longer than"),
                (FixtureItem("a", url: "http://example.com/x"), "https"),
                (FixtureItem("a", url: "ftp://example.com/x"), "ftp"),
                (FixtureItem("a", url: "file:///etc/passwd"), "file"),
                (FixtureItem("a", url: "https:///x"), "host"),
                (FixtureItem("a", url: url, size: .min), "negative"),
                (FixtureItem("a", url: url, group: ""), "group"),
                (FixtureItem("a", url: url, group: "../../etc"), "../../etc"),
                (FixtureItem("a", url: url, group: String(repeating: "g", count: 10 << 10)), "group"),
            ]
            for (item, word) in cases {
                for verb in ["schedule", "foreground"] {
                    let reply = try await app.perform(verb, item)
                    let shown = "\(verb) \(item.identifier.prefix(20)) \(item.url)"
                    #expect(reply.domain == "BAErrorDomain" && reply.code == 102, "\(shown)")
                    #expect(reply.reason?.contains(word) == true, "\(shown): \(reply.reason ?? "nil")")
                    #expect((reply.reason ?? "").utf8.count < 1000, "\(shown)")
                }
            }
            // Out of range counts as the nearest; the object keeps what it was given.
            for (name, priority, counted) in [("least", Int.min, -1000), ("most", Int.max, 1000)] {
                let reply = try await app.perform("schedule", FixtureItem(name, url: url, priority: priority))
                #expect(reply.code == nil && reply.download?.priority == priority)
                let queued = try await device.downloads().first { $0.identifier == name }
                #expect(queued?.priority == Int64(counted))
            }
            let listed = try await other.perform("list").downloads?.map(\.identifier)
            #expect(listed == ["other", "least", "most"])
            try await app.end()
            try await other.end()
            await server.stop()
        }
    }
}
