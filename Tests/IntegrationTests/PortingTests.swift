// What unchanged sources do beside downloading, in real apps and extensions.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct PortingTests {
    private func install(_ plan: FixturePlan, on device: TestDevice, from server: TestServer) async throws {
        let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
        let result = try await device.install(try bundle.write(to: device.folder))
        try #require(result.exit == .exited(0), "\(result.errors)")
    }

    @Test("App and extension read their own property list through Bundle.main")
    func bundles() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            let reply = try await app.perform("bundle")
            #expect(reply.bundle == FixtureBundle.identifier)
            #expect(reply.executable == "FixtureApp")
            let request = try #require(try device.extensionRecords("request").first)
            #expect(request.bundle == FixtureBundle.identifier + ".extension")
            #expect(request.executable == "FixtureExtension")
            try await app.end()
            await server.stop()
        }
    }

    @Test("What an extension logs is a row of its device's journal, without what is private")
    func logging() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.logs = "Ann"
            try await install(plan, on: device, from: server)
            let row = try await device.row("extension-output")
            #expect(row.detail == "default [org.example:fixture] request 1 of <private>, Ann")
            #expect(row.app == FixtureBundle.identifier)
            await server.stop()
        }
    }

    /// A folder of the test's own on another file system.
    private static func otherFolder() throws -> String? {
        func device(_ path: String) -> UInt64? {
            var status = stat()
            return stat(path, &status) == 0 ? UInt64(status.st_dev) : nil
        }
        let temporary = FileManager.default.temporaryDirectory.path
        guard access("/dev/shm", W_OK) == 0, device("/dev/shm") != device(temporary) else { return nil }
        var template = Array("/dev/shm/it-XXXXXX".utf8CString)
        return mkdtemp(&template).map { String(cString: $0) }
    }

    @Test("replaceItemAt replaces in every shape in which sources call it", arguments: [false, true])
    func replacing(isOtherFileSystem: Bool) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            var folder = device.folder + "/tmp"
            if isOtherFileSystem {
                folder = try #require(try Self.otherFolder(), "needs /dev/shm on a file system of its own")
            }
            defer { if isOtherFileSystem { try? FileManager.default.removeItem(atPath: folder) } }
            let app = try device.launch()
            let texts = try await app.perform("replace " + folder).texts ?? [:]
            var expected: [String: String] = [:]
            for way in ["two", "all", "kept", "foundation", "library"] {
                for isThere in [true, false] { expected["\(way) \(isThere)/original"] = "new" }
            }
            expected["kept true/backup"] = "old"
            #expect(texts == expected)
            try await app.end()
            await server.stop()
        }
    }

    @Test("A large file that may be mapped costs an app no memory of its own")
    func mapping() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            let path = device.folder + "/large"
            try Files.write(path, randomBytes(32 << 20, seed: 1))
            let app = try device.launch()
            let gained = try #require(try await app.perform("map " + path).bytes)
            #expect(gained < 4 << 20)
            try await app.end()
            await server.stop()
        }
    }

    @Test("An app started without the tool is warned once, at its first finished download")
    func warning() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            let executable =
                device.root + "/Applications/" + FixtureBundle.identifier + "/current/Fixture.app/FixtureApp"
            let direct = FixtureAppProcess(try Program(executable, ["commands"], environment: device.environment))
            try await direct.perform("delegate full")
            #expect(direct.program.errors.all == [])
            for name in ["one", "two"] { try await fetch(name, with: direct, from: server) }
            let complaints = try await direct.end().errors
            #expect(complaints.count == 1 && complaints[0].contains("Foundation is not repaired"), "\(complaints)")

            let launched = try device.launch()
            try await launched.perform("delegate full")
            try await fetch("three", with: launched, from: server)
            #expect(try await launched.end().errors == [])
            // Nor does the extension, which the service started, need a warning.
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("four", size: 1000))
            try await device.told(1)
            try await app.end()
            #expect(try await device.wholeJournal().allSatisfy { !$0.detail.contains("Foundation is not repaired") })
            await server.stop()
        }
    }

    private func fetch(_ name: String, with app: FixtureAppProcess, from server: TestServer) async throws {
        let reply = try await app.perform("foreground", try server.item(name, size: 1000))
        #expect(reply.code == nil, "\(reply.reason ?? "")")
        try await app.event("finished") { $0.download?.identifier == name }
    }

    @Test("App and extension share the preferences of their group without synchronize()")
    func sharing() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.numbers = 200
            try await install(plan, on: device, from: server)
            let app = try device.launch()
            try await app.perform("set 41")
            #expect(try await app.perform("get \(FixtureName.fromApp)").number == 41)
            // The app has read the file before the extension changes it.
            #expect(try await app.perform("get \(FixtureName.fromExtension)").number == 0)
            _ = try await app.perform("foreground", try server.item("one.pack", size: 10_000))
            // Both write at the same time.
            try await app.perform("add app")
            try await device.told(1)
            let record = try #require(try device.extensionRecords("finished").first)
            #expect(record.number == 41)
            #expect(try await app.perform("get \(FixtureName.fromExtension)").number == 42)
            #expect(try await app.perform("count app").number == 200)
            #expect(try await app.perform("count \(FixtureName.fromExtension)").number == 200)
            try await app.end()
            await server.stop()
        }
    }

    @Test("Two processes that write preferences at the same time lose nothing, nor does one that is killed")
    func concurrentWriters() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await install(FixturePlan(), on: device, from: server)
            let (first, second, third) = (try device.launch(), try device.launch(), try device.launch())
            try await third.perform("add killed")
            // The third dies in the middle of writing the same again.
            third.program.write("add killed")
            async let one = first.perform("add first")
            async let two = second.perform("add second")
            try third.program.send(signal: SIGKILL)
            _ = try await (one, two)
            for app in [first, second] {
                for prefix in ["first", "second", "killed"] {
                    #expect(try await app.perform("count \(prefix)").number == 200)
                }
                try await app.end()
            }
            // They lie in the group's container, readable for their user only.
            let file = device.container() + "/Library/Preferences/group.\(FixtureBundle.identifier).plist"
            let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? NSNumber
            #expect(mode?.intValue == 0o600)
            await server.stop()
        }
    }
}
