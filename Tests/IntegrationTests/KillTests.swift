// SIGKILL of the service at any moment: the device goes on where it was.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct KillTests {
    @Test(
        "A service killed in the middle of essential downloads goes on with the bytes it had, and the installation too")
    func midway() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let items = try ["a.pack", "b.pack", "c.pack"].map {
                try server.item($0, size: 1_000_000, essential: true)
            }
            let bundle = FixtureBundle(
                manifestURL: try server.put("manifest.json", FixturePlan(downloads: items).encoded()))
            try await server.fault("*.pack:rate=200000")
            let install = try device.tool(["install", try bundle.write(to: device.folder)])
            _ = try await install.output.first("half of the bytes") { line in
                let update = try? JSONDecoder().decode(DeviceInterface.InstallUpdate.self, from: Data(line.utf8))
                return update?.phase == "essential" && (update?.received ?? 0) > 1_500_000
            }
            // The tool waits while we look at what the service left.
            try install.send(signal: SIGSTOP)
            let ids = try await partialNames(device)
            try await device.kill()
            let left = ids.mapValues { size(of: "\(device.root)/Transfers/\($0)") }
            #expect(left.values.allSatisfy { $0 > 200_000 && $0 < 1_000_000 })
            try await server.fault()
            try install.send(signal: SIGCONT)
            let result = try await install.result()
            #expect(result.exit == .exited(0), "\(result.errors)")
            try await device.follow()
            try await device.until("all files are in place") { items.allSatisfy { device.asset($0.identifier) != nil } }

            for item in items {
                let requests = try await server.requests(of: item.identifier, atLeast: 2)
                #expect(requests.count == 2)
                // Within one boot every byte of the file counts.
                #expect(requests.last?.range == "bytes=\(left[item.identifier] ?? -1)-")
                #expect(requests.last?.status == 206)
                #expect(requests.bytesSent < 2_000_000)
                #expect(device.asset(item.identifier) == Files.read(server.folder + "/" + item.identifier))
            }
            #expect(try await device.row("gate-opened").detail == "complete")
            try await device.row("recovered")
            await server.stop()
        }
    }

    private func partialNames(_ device: TestDevice) async throws -> [String: String] {
        let rows = try await device.downloads().map { ($0.identifier, $0.uniqueIdentifier + ".partial") }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    private func size(of path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : -1
    }

    @Test(
        "A service killed at any row of its journal leaves a device that ends the installation and tells everything",
        arguments: [0, 2, 4, 5, 7, 8, 10, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24, 26])
    func anywhere(rowsLater: Int64) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let items = [
                try server.item("a.pack", size: 200_000, essential: true),
                try server.item("b.pack", size: 100_000, essential: true),
                try server.item("later.pack", size: 150_000),
            ]
            let bundle = FixtureBundle(
                manifestURL: try server.put("manifest.json", FixturePlan(downloads: items).encoded()))
            let install = try device.tool(["install", try bundle.write(to: device.folder)])
            let started = try await device.row("install-started")
            _ = try await device.journal.first("\(rowsLater) rows later") { $0.number >= started.number + rowsLater }
            try await device.kill()
            let result = try await install.result()
            #expect(result.exit == .exited(0), "\(result.errors)")
            try await device.follow()
            try await device.until("all is told") {
                let waiting = try await device.downloads()
                return waiting.isEmpty && items.allSatisfy { device.asset($0.identifier) != nil }
            }
            for item in items {
                #expect(device.asset(item.identifier) == Files.read(server.folder + "/" + item.identifier))
                #expect(server.requests(of: item.identifier).count <= 2)
            }
            #expect(Files.names(in: device.root + "/Transfers") == [])
            #expect(Files.below(device.container() + "/Library/Caches/.BackgroundAssets") == [])
            #expect(try await device.apps().map(\.launchable) == [true])
            await server.stop()
        }
    }

    @Test(
        "An extension that was asked when the service ended ends with it and is asked again",
        arguments: [SIGKILL, SIGTERM])
    func inContentRequest(signal: Int32) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("a.pack", size: 1000, essential: true)])
            plan.request = .hangOnce
            plan.prints = ["asked"]
            let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
            let install = try device.tool(["install", try bundle.write(to: device.folder)])
            try await device.row("extension-output") { $0.detail == "asked" }
            let process = try #require(try await device.extensionProcess())
            if signal == SIGKILL { try await device.kill() } else { _ = try await device.terminate() }
            try await Processes.gone(process)
            #expect(try await install.result().exit == .exited(0))
            try await device.follow()
            try await device.until("the file is in place") { device.asset("a.pack") != nil }
            let requests = try device.extensionRecords("request")
            #expect(requests.count == 2 && Set(requests.map(\.run)).count == 2)
            // The manifest was kept.
            #expect(try await server.requests(of: "manifest.json", atLeast: 1).count == 1)
            #expect(try await server.requests(of: "a.pack", atLeast: 1).count == 1)
            await server.stop()
        }
    }

    @Test("A message whose callback ran when the service was killed comes again")
    func inCallback() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let items = [
                try server.item("a.pack", size: 1000, essential: true),
                try server.item("b.pack", size: 2000, essential: true),
            ]
            let bundle = FixtureBundle(
                manifestURL: try server.put("manifest.json", FixturePlan(downloads: items).encoded()))
            let install = try device.tool(["install", try bundle.write(to: device.folder)])
            try await device.row("gate-opened")
            try await device.row("extension-called") { !$0.download.isEmpty }
            try await device.kill()
            #expect(try await install.result().exit == .exited(0))
            try await device.follow()
            try await device.until("all is told") {
                let waiting = try await device.downloads()
                return waiting.isEmpty && items.allSatisfy { device.asset($0.identifier) != nil }
            }
            #expect(Set(try device.extensionRecords("finished").map(\.download?.identifier)) == ["a.pack", "b.pack"])
            await server.stop()
        }
    }

    @Test("The archive of an app that was being fetched is taken up where it was")
    func inArchive() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("base.pack", size: 10_000, essential: true)
            let manifest = try server.put("manifest.json", FixturePlan(downloads: [item]).encoded())
            let app = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            try await FixtureBundle.pack(app, as: server.folder + "/Fixture.tar.gz")
            try await server.fault("Fixture.tar.gz:rate=500000")
            let install = try device.tool(["install", server.url + "/Fixture.tar.gz"])
            _ = try await install.output.first("some bytes") { line in
                let update = try? JSONDecoder().decode(DeviceInterface.InstallUpdate.self, from: Data(line.utf8))
                return (update?.received ?? 0) > 400_000
            }
            try await device.kill()
            try await server.fault()
            #expect(try await install.result().exit == .exited(0))
            let requests = try await server.requests(of: "Fixture.tar.gz", atLeast: 2)
            #expect(requests.count == 2 && requests.last?.status == 206)
            let whole = Int64(try #require(Files.read(server.folder + "/Fixture.tar.gz")).count)
            #expect(requests.bytesSent < 2 * whole)
            await server.stop()
        }
    }

    @Test("A running app goes on after the service was killed: it connects again and hears the end of its download")
    func appSurvives() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let manifest = try server.put("manifest.json", FixturePlan().encoded())
            let bundle = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            try #require(try await device.install(bundle).exit == .exited(0))
            try await server.fault("one.pack:rate=200000")
            let app = try device.launch()
            try await app.perform("delegate full")
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1_000_000))
            try await app.event("progress") { ($0.total ?? 0) > 100_000 }
            try await device.kill()
            try await server.fault()
            #expect(try await app.perform("list").downloads?.map(\.identifier) == ["one.pack"])
            #expect(try await app.event("finished").bytes == 1_000_000)
            #expect(device.asset("one.pack") == Files.read(server.folder + "/one.pack"))
            let requests = try await server.requests(of: "one.pack", atLeast: 2)
            #expect(requests.bytesSent < 2_000_000)
            try await app.end()
            await server.stop()
        }
    }
}
