// Downloads that were interrupted, and files that are not what somebody said, with a real web server.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct ResumeTests {
    /// Installs the sample app with one download of `item`, which is not essential.
    private func install(_ item: FixtureItem, on device: TestDevice, from server: FileNginx) async throws {
        let plan = FixturePlan(downloads: [item])
        let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
        let result = try await device.install(try bundle.write(to: device.folder))
        #expect(result.exit == .exited(0), "\(result.errors)")
    }

    /// Ends the service when some of the file is there, and starts it again; what it then had.
    private func interrupt(
        _ device: TestDevice, after bytes: Int, meanwhile change: () throws -> Void = {}
    ) async throws -> Int {
        let name = try await device.row("download-began") { $0.detail.hasPrefix("big.pack") }.download + ".partial"
        let path = device.root + "/Transfers/" + name
        func length() -> Int {
            var status = stat()
            return stat(path, &status) == 0 ? Int(status.st_size) : 0
        }
        try await device.until("\(bytes) bytes are there") { length() >= bytes }
        try await device.terminate()
        let left = length()
        try change()
        try await device.start()
        return left
    }

    @Test(
        "With range support a download that was paused goes on where it stopped",
        .shows("B160", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func ranges() async throws {
        try await TestDevice.run { device in
            let server = try await FileNginx.start(on: device, rules: "limit_rate_after 256k; limit_rate 400k;")
            let item = try server.item("big.pack", size: 1_500_000)
            try await install(item, on: device, from: server)
            let held = try await interrupt(device, after: 300_000)
            try await device.until("the file is in place") { device.asset("big.pack") != nil }
            #expect(device.asset("big.pack") == randomBytes(1_500_000, seed: 1_500_000))
            let log = try await server.finish("big.pack")
            #expect(log.map(\.status) == [200, 206])
            #expect(log.last?.range == "bytes=\(held)-")
            #expect(held + (log.last?.bytes ?? 0) == 1_500_000)
            #expect(try await device.rows("download-started-over").isEmpty)
        }
    }

    @Test(
        "Without range support the server sends all of it again, and the file arrives",
        .shows("B161", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func noRanges() async throws {
        try await TestDevice.run { device in
            let rules = "max_ranges 0; limit_rate_after 256k; limit_rate 400k;"
            let server = try await FileNginx.start(on: device, rules: rules)
            let item = try server.item("big.pack", size: 1_500_000)
            try await install(item, on: device, from: server)
            let held = try await interrupt(device, after: 300_000)
            try await device.until("the file is in place") { device.asset("big.pack") != nil }
            #expect(device.asset("big.pack") == randomBytes(1_500_000, seed: 1_500_000))
            let log = try await server.finish("big.pack")
            #expect(log.map(\.status) == [200, 200])
            #expect(log.last?.range == "bytes=\(held)-" && log.last?.bytes == 1_500_000)
            // What is fetched again, and why, can be read.
            let row = try #require(try await device.rows("download-started-over").first)
            #expect(row.detail == "big.pack, \(held) bytes: the server sends no parts of the file")
        }
    }

    private static func sha256(of path: String) async throws -> String {
        let result = try await Program.run("/usr/bin/sha256sum", [path])
        return try #require(result.output.first.map { String($0.prefix(64)) })
    }

    private static func bytes(_ digits: String) -> Data {
        let all = Array(digits)
        return Data(
            stride(from: 0, to: all.count - 1, by: 2).compactMap { UInt8(String(all[$0...($0 + 1)]), radix: 16) })
    }

    @Test(
        "A file whose SHA-256 the app declared arrives, put together from two answers or not", arguments: [true, false])
    func declared(isInterrupted: Bool) async throws {
        try await TestDevice.run { device in
            let rules = isInterrupted ? "limit_rate_after 256k; limit_rate 400k;" : ""
            let server = try await FileNginx.start(on: device, rules: rules)
            var item = try server.item("big.pack", size: 1_000_000)
            let digest = try await Self.sha256(of: device.folder + "/nginx/www/big.pack")
            item.sha256 = Self.bytes(digest)
            try await install(item, on: device, from: server)
            if isInterrupted { _ = try await interrupt(device, after: 300_000) }
            try await device.until("the file is in place") { device.asset("big.pack") != nil }
            #expect(try await server.finish("big.pack").map(\.status) == (isInterrupted ? [200, 206] : [200]))
        }
    }

    @Test(
        "A file that is not what was declared or sent fails with both values, and nobody sees it",
        arguments: [true, false])
    func wrong(isDeclared: Bool) async throws {
        try await TestDevice.run { device in
            let other = String(repeating: "5a", count: 32)
            let sent = Self.bytes(other).base64EncodedString()
            let rules = isDeclared ? "" : "add_header Repr-Digest \"sha-256=:\(sent):\";"
            let server = try await FileNginx.start(on: device, rules: "location /big.pack { \(rules) }")
            var item = try server.item("big.pack", size: 1_000_000)
            let digest = try await Self.sha256(of: device.folder + "/nginx/www/big.pack")
            if isDeclared { item.sha256 = Self.bytes(other) }
            try await install(item, on: device, from: server)
            let row = try await device.row("download-failed")
            #expect(row.reason == "digest")
            #expect(row.detail.contains(digest) && row.detail.contains(other), "\(row.detail)")
            try await device.told(1)
            let failed = try #require(try device.extensionRecords("failed").first)
            #expect(failed.domain == "NSURLErrorDomain")
            #expect(device.asset("big.pack") == nil)
            #expect(try await device.rows("download-finished").allSatisfy { $0.download != row.download })
            #expect(Files.names(in: device.root + "/Transfers") == [])
            #expect(Files.below(device.container() + "/Library/Caches/.BackgroundAssets") == [])
            #expect(try await server.finish("big.pack").map(\.status) == [200])
        }
    }

    @Test("A sign-in page is waited for as the network is, and takes nothing away")
    func portal() async throws {
        try await TestDevice.run { device in
            let server = try await FileNginx.start(
                on: device,
                rules: "limit_rate_after 256k; limit_rate 400k; error_page 418 = @page; "
                    + "location @page { default_type text/html; return 200 '<!doctype html><p>Sign in'; } "
                    + "location = /big.pack { if (-f \(device.folder)/closed) { return 418; } }")
            let item = try server.item("big.pack", size: 1_000_000)
            try await install(item, on: device, from: server)
            let held = try await interrupt(device, after: 300_000) {
                try Files.write(device.folder + "/closed", Data())
            }
            let row = try await device.row("download-waits") { $0.reason == "portal" }
            #expect(row.detail.contains("sign in"))
            try FileManager.default.removeItem(atPath: device.folder + "/closed")
            try await device.until("the file is in place") { device.asset("big.pack") != nil }
            #expect(device.asset("big.pack") == randomBytes(1_000_000, seed: 1_000_000))
            let log = try await server.finish("big.pack")
            #expect(log.last?.range == "bytes=\(held)-" && log.last?.status == 206)
        }
    }
}
