// Devices whose disk is full, or fills up: a real small file system.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import RootHelperClient
import Testing

@Suite struct SpaceTests {
    /// Programs that a sanitizer watches take half of it.
    private static let size: Int64 = 96 << 20

    /// A device on a small disk of its own, with the sample app.
    private func run(_ body: (TestDevice, TestServer, HelperFileSystem) async throws -> Void) async throws {
        let files = try HelperFileSystem(.init(.ext4, bytes: Self.size))
        try await TestDevice.run(in: files.path) { device in
            let server = try await device.server()
            let plan = FixturePlan()
            let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
            let result = try await device.install(try bundle.write(to: device.folder))
            try #require(result.exit == .exited(0), "\(result.errors)")
            try await body(device, server, files)
            await server.stop()
        }
    }

    private func space(_ files: HelperFileSystem) throws -> (free: Int64, total: Int64) {
        try DeviceTree(root: files.path).space()
    }

    /// A file that takes all but so many bytes, or as much as there is.
    private func hog(_ files: HelperFileSystem, leaving left: Int64) throws -> String {
        let path = files.path + "/hog"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        let piece = [UInt8](repeating: 1, count: 64 << 10)
        while try space(files).free > left {
            let count = min(piece.count, Int(try space(files).free - left))
            piece.withUnsafeBytes { _ = write(descriptor, $0.baseAddress, max(1, count)) }
            if errno == ENOSPC { break }
        }
        fsync(descriptor)
        return path
    }

    @Test(
        "A download for which there is no room waits, says how much is missing, and goes on by itself when there is",
        .needs(.fileSystems))
    func waits() async throws {
        try await run { device, server, files in
            // A quarter of the disk stays free, and 8 MB are wanted.
            let floor = try space(files).total / 4
            let path = try hog(files, leaving: floor + 4_000_000)
            let app = try device.launch()
            try await app.perform("delegate full")
            let start = device.journal.count
            try await app.perform("schedule", try server.item("large.pack", size: 8_000_000))
            let row = try await device.row("download-waits", from: start)
            #expect(row.reason == "space" && row.detail.contains("more bytes must be free"))
            let waiting = try #require(try await device.downloads().first)
            #expect(waiting.state == "waiting" && waiting.reason == "space" && waiting.nextTry == 0)
            #expect(server.requests(of: "large.pack").isEmpty)
            // What fits goes ahead.
            try await app.perform("schedule", try server.item("small.pack", size: 1_000_000))
            try await app.event("finished") { $0.download?.identifier == "small.pack" }
            unlink(path)
            try await app.event("finished") { $0.download?.identifier == "large.pack" }
            #expect(device.asset("large.pack") == Files.read(server.folder + "/large.pack"))
            #expect(device.journal.all.dropFirst(start).filter { $0.event == "download-waits" }.count == 1)
            try await app.end()
        }
    }

    @Test("Somebody who waits for a download is told at once that there is no room", .needs(.fileSystems))
    func foreground() async throws {
        try await run { device, server, files in
            // Down to half of the quarter, not further.
            let floor = try space(files).total / 4
            let path = try hog(files, leaving: floor / 2 + 4_000_000)
            let app = try device.launch()
            try await app.perform("delegate full")
            let start = device.journal.count
            try await app.perform("foreground", try server.item("fits.pack", size: 2_000_000))
            try await app.event("finished") { $0.download?.identifier == "fits.pack" }
            try await app.perform("foreground", try server.item("large.pack", size: 8_000_000))
            let failed = try await app.event("failed")
            #expect(failed.download?.identifier == "large.pack")
            let row = try await device.row("download-failed", from: start)
            #expect(row.reason == "space" && row.detail.contains("more bytes must be free on the device's disk"))
            unlink(path)
            try await app.end()
        }
    }

    @Test(
        "Room is set aside before the bytes come, and not a second time after a kill", .needs(.fileSystems))
    func reserved() async throws {
        try await run { device, server, files in
            let start = device.journal.count
            let app = try device.launch()
            try await app.perform("delegate full")
            try await server.fault("slow.pack:rate=1000000")
            try await app.perform("schedule", try server.item("slow.pack", size: 12_000_000))
            let began = try await device.row("download-began", from: start)
            let partial = "\(device.root)/Transfers/\(began.download).partial"
            func allocated() -> Int64 {
                var status = stat()
                return stat(partial, &status) == 0 ? Int64(status.st_blocks) * 512 : 0
            }
            try await device.until("room is set aside") { allocated() >= 12_000_000 }
            let free = try space(files).free
            // An app that is connected would start the service again by itself.
            try await app.end()
            try await device.kill()
            let again = device.journal.count
            try await device.start()
            try await device.row("download-began", from: again)
            // The same room, but for what the service itself wrote.
            #expect(allocated() >= 12_000_000 && allocated() < 13_000_000)
            #expect(try space(files).free > free - 2_000_000)
        }
    }

    @Test(
        "A disk that is full to its last byte in the middle of a download tears nothing: it goes on at the same byte",
        .needs(.fileSystems))
    func fillsUp() async throws {
        try await run { device, server, files in
            let app = try device.launch()
            try await app.perform("delegate full")
            // Too small for room to be set aside.
            try await server.fault("slow.pack:rate=150000")
            try await app.perform("schedule", try server.item("slow.pack", size: 900_000))
            try await device.until("some bytes") {
                try await device.downloads().first.map { $0.received > 200_000 } ?? false
            }
            let path = try hog(files, leaving: 0)
            // The row that says so may not fit any more; that nothing more is asked for shows at the server.
            let given = try #require(try await server.requests(of: "slow.pack", atLeast: 1).first)
            #expect(given.bytesSent < 900_000)
            unlink(path)
            try await app.event("finished") { $0.download?.identifier == "slow.pack" }
            #expect(device.asset("slow.pack") == Files.read(server.folder + "/slow.pack"))
            #expect(try await device.rows("download-waits").contains { $0.reason == "space" })
            // What was on its way to the disk at most was fetched again.
            let requests = try await server.requests(of: "slow.pack", atLeast: 2)
            #expect(requests.bytesSent < 900_000 + 300_000)
            try await app.end()
        }
    }
}
