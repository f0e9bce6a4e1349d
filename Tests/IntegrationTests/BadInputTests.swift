// Bad input: one clear error that says what to do, a journal row, nothing half-installed.
import AssetsClient
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct BadInputTests {
    /// One way in which a bundle is wrong.
    struct BadBundle: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// In the reason.
        var word: String
        var change: @Sendable (inout FixtureBundle) -> Void = { _ in }
        /// Applied to the written bundle.
        var damage: @Sendable (String) throws -> Void = { _ in }
    }

    static let badBundles = [
        BadBundle(testDescription: "no extension", word: "no extension", change: { $0.hasExtension = false }),
        BadBundle(
            testDescription: "a property list of garbage", word: "Info.plist",
            damage: { try Files.write($0 + "/Info.plist", Data("<plist><dict><key>".utf8)) }),
        BadBundle(
            testDescription: "a missing key", word: "BAMaxInstallSize",
            damage: { try rewrite($0 + "/Info.plist") { $0["BAMaxInstallSize"] = nil } }),
        BadBundle(
            testDescription: "a key of the wrong type", word: "BAInitialDownloadRestrictions",
            change: { $0.overrides = ["BAInitialDownloadRestrictions": "none"] }),
        BadBundle(
            testDescription: "a key at the wrong place", word: "BADownloadAllowance",
            change: { $0.overrides = ["BADownloadAllowance": 5] }),
        BadBundle(
            testDescription: "no manifest URL", word: "BAManifestURL",
            damage: { try rewrite($0 + "/Info.plist") { $0["BAManifestURL"] = nil } }),
        BadBundle(
            testDescription: "no restrictions", word: "BAInitialDownloadRestrictions",
            damage: { try rewrite($0 + "/Info.plist") { $0["BAInitialDownloadRestrictions"] = nil } }),
        BadBundle(
            testDescription: "no allowance", word: "BADownloadAllowance",
            change: { $0.overrides = ["BAInitialDownloadRestrictions": ["BADownloadDomainAllowList": ["localhost"]]] }),
        BadBundle(
            testDescription: "no allow list", word: "BADownloadDomainAllowList",
            change: { $0.overrides = ["BAInitialDownloadRestrictions": ["BADownloadAllowance": 5]] }),
        BadBundle(
            testDescription: "the keys in the extension's list", word: "belongs in the app's",
            damage: { app in
                var moved: [String: Any] = [:]
                try rewrite(app + "/Info.plist") { values in
                    moved = values.filter { $0.key.hasPrefix("BA") }
                    for key in moved.keys { values[key] = nil }
                }
                try rewrite(app + "/Extensions/Downloader.appex/Info.plist") { values in
                    values.merge(moved) { $1 }
                }
            }),
        BadBundle(
            testDescription: "a key of the root among the restrictions", word: "BAMaxInstallSize",
            change: {
                $0.overrides = [
                    "BAInitialDownloadRestrictions": [
                        "BADownloadAllowance": 5, "BADownloadDomainAllowList": ["localhost"], "BAMaxInstallSize": 5,
                    ]
                ]
            }),
        BadBundle(
            testDescription: "a manifest over http", word: "https",
            change: { $0.manifestURL = "http://example.com/manifest.json" }),
        BadBundle(
            testDescription: "an extension of another app", word: "org.other.extension",
            damage: {
                try rewrite($0 + "/Extensions/Downloader.appex/Info.plist") {
                    $0["CFBundleIdentifier"] = "org.other.extension"
                }
            }),
        BadBundle(
            testDescription: "no shared group", word: "com.apple.security.application-groups",
            damage: {
                try rewrite($0 + "/Extensions/Downloader.appex/Entitlements.plist") {
                    $0["com.apple.security.application-groups"] = ["group.other"]
                }
            }),
        BadBundle(
            testDescription: "an executable that is missing", word: "FixtureApp",
            damage: { try FileManager.default.removeItem(atPath: $0 + "/FixtureApp") }),
        BadBundle(
            testDescription: "a link out of the bundle", word: "link",
            damage: {
                try FileManager.default.createSymbolicLink(atPath: $0 + "/link", withDestinationPath: "../../etc")
            }),
    ]

    private static func rewrite(_ path: String, _ change: (inout [String: Any]) -> Void) throws {
        let data = try #require(Files.read(path))
        var values = try #require(try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
        change(&values)
        try Files.write(
            path, try PropertyListSerialization.data(fromPropertyList: values, format: .xml, options: 0))
    }

    /// A refused installation: exit status, one line with the next step, a row, and nothing left.
    private func expectRefusal(
        _ result: ProgramResult, _ code: Int, status: Int32, word: String, on device: TestDevice
    ) async throws {
        #expect(result.exit == .exited(status), "\(result.errors)")
        let refusal = try Refusal(result)
        #expect(refusal.code == code)
        #expect(refusal.reason.contains(word), "\(refusal.reason)")
        #expect(!refusal.remedy.isEmpty)
        let row = try await device.row("install-failed")
        #expect(row.detail.contains(word))
        #expect(row.reason != "")
        #expect(try await device.rows("extension-called").isEmpty)
        try await device.expectNothingInstalled()
    }

    @Test(
        "A bundle that is wrong is refused with the name of what is wrong",
        .shows(
            "B58", "B59", "B60", "B61", "B67", "B190", "B193", "B194", "B250", by: "backgroundassets install"),
        arguments: badBundles)
    func bundle(bad: BadBundle) async throws {
        try await TestDevice.run { device in
            var bundle = FixtureBundle(manifestURL: "https://localhost/manifest.json")
            bad.change(&bundle)
            let app = try bundle.write(to: device.folder)
            try bad.damage(app)
            try await expectRefusal(
                try await device.install(app), bad.word == "link" ? 1002 : 1001, status: bad.word == "link" ? 12 : 11,
                word: bad.word, on: device)
        }
    }

    @Test(
        "An archive whose names or links lead elsewhere is refused, and nothing is written there",
        arguments: [
            Archives.Entry(name: "../evil"), .init(name: "Fixture.app/../../evil"), .init(name: "/tmp/evil-of-a-test"),
            .init(name: "Fixture.app/link", type: "2", target: "/etc"),
            .init(name: "Fixture.app/link", type: "2", target: "../../.."),
            .init(name: "Fixture.app/hard", type: "1", target: "/etc/passwd"),
            .init(name: "Fixture.app/pipe", type: "6"), .init(name: "Fixture.app/device", type: "3"),
            .init(name: "Fixture.app/Info.plist"), .init(name: "Other.app/Info.plist"),
        ])
    func archive(entry: Archives.Entry) async throws {
        try await TestDevice.run { device in
            let app = try FixtureBundle(manifestURL: "https://localhost/manifest.json").write(to: device.folder)
            let archive = device.folder + "/Fixture.tar"
            try await Archives.tar(app, to: archive, adding: [entry])
            let word = entry.type == "1" ? entry.target : String(entry.name.split(separator: "/").last ?? "")
            let refused = try await device.install(archive)
            #expect(try Refusal(refused).reason.contains("Fixture.tar"))
            try await expectRefusal(
                refused, 1002, status: 12, word: word == "Info.plist" ? "app" : word, on: device)
            #expect(!Files.exists("/tmp/evil-of-a-test"))
            #expect(Files.below(device.root).allSatisfy { !$0.hasSuffix("evil") })
        }
    }

    @Test("An archive that was cut short is refused", arguments: ["tar.zst", "tar.gz", "zip"])
    func cutShort(suffix: String) async throws {
        try await TestDevice.run { device in
            let app = try FixtureBundle(manifestURL: "https://localhost/manifest.json").write(to: device.folder)
            let archive = "\(device.folder)/Fixture.\(suffix)"
            try await FixtureBundle.pack(app, as: archive)
            let whole = try #require(Files.read(archive))
            try Files.write(archive, whole.prefix(whole.count / 2))
            try await expectRefusal(
                try await device.install(archive), 1002, status: 12, word: "Fixture.\(suffix)", on: device)
        }
    }

    @Test("What is no archive, or is not there, is refused")
    func noArchive() async throws {
        try await TestDevice.run { device in
            let file = device.folder + "/photo.zip"
            try Files.write(file, randomBytes(10_000, seed: 3))
            try await expectRefusal(try await device.install(file), 1002, status: 12, word: "photo.zip", on: device)
            let missing = try await device.install(device.folder + "/missing.app")
            #expect(missing.exit == .exited(13))
            #expect(try Refusal(missing).code == 1003)
            let server = try await device.server()
            let result = try await device.install(server.url + "/missing.tar.zst")
            #expect(result.exit == .exited(13))
            let refusal = try Refusal(result)
            #expect(refusal.code == 1003 && refusal.reason.contains("missing.tar.zst") && !refusal.remedy.isEmpty)
            try await device.row("install-failed") { $0.detail.contains("missing.tar.zst") }
            try await device.expectNothingInstalled()
            await server.stop()
        }
    }

    @Test(
        "A manifest that cannot be had leaves the app launchable, and its extension is told",
        .shows("B246", "D57", by: "backgroundassets install"),
        .shows("B221", "B222", by: "BADownloaderExtension.backgroundDownload(_:failedWithError:)"),
        arguments: ["missing", "too large"])
    func manifest(problem: String) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var bundle = FixtureBundle(manifestURL: server.url + "/manifest.json")
            if problem == "too large" {
                try server.put("manifest.json", randomBytes(5000, seed: 1))
                bundle.essentialAllowance = 4999
            }
            let result = try await device.install(try bundle.write(to: device.folder))
            #expect(result.exit == .exited(0), "\(result.errors)")
            #expect(try await device.row("gate-opened").detail == "manifest-failed")
            try await device.told(1)
            let record = try #require(try device.extensionRecords("failed").first)
            #expect(record.domain == (problem == "missing" ? "NSURLErrorDomain" : "BAErrorDomain"))
            #expect(record.code == (problem == "missing" ? -1100 : 203))
            #expect(record.download?.isURLDownload == true && record.download?.isExactlyURLDownload == false)
            #expect(try device.extensionRecords("request").isEmpty)
            #expect(try await device.apps().map(\.launchable) == [true])
            await server.stop()
        }
    }

    @Test(
        "An extension that crashes while it is asked leaves the app launchable at once",
        .shows("B244", by: "backgroundassets install"))
    func extensionCrash() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("a.pack", size: 1000, essential: true)])
            plan.request = .crash
            let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
            #expect(try await device.install(try bundle.write(to: device.folder)).exit == .exited(0))
            #expect(try await device.row("gate-opened").detail == "extension-failed")
            let ended = try await device.row("extension-ended") { $0.reason == "crash" }
            // abort() cannot kill the first process of a namespace by its signal; what it does then can.
            #expect(ended.detail.contains("killed by signal"))
            #expect(server.requests(of: "a.pack").isEmpty)
            await server.stop()
        }
    }

    @Test(
        "An extension that never answers is ended after a minute, and the app becomes launchable",
        .shows("B9", "B143", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func extensionHangs() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("a.pack", size: 1000, essential: true)])
            plan.request = .hang
            let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
            #expect(try await device.install(try bundle.write(to: device.folder)).exit == .exited(0))
            try await device.row("extension-ended") { $0.reason == "timeout" }
            #expect(try await device.row("gate-opened").detail == "extension-failed")
            #expect(try device.extensionRecords("request").count == 1)
            #expect(try await device.extensionProcess() == nil)
            #expect(server.requests(of: "a.pack").isEmpty)
            await server.stop()
        }
    }

    @Test(
        "More essential bytes than the allowance: the answer is refused as a whole",
        .shows("B191", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"))
    func allowance() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let items = try ["a.pack", "b.pack"].map { try server.item($0, size: 3000, essential: true) }
            var bundle = FixtureBundle(
                manifestURL: try server.put("manifest.json", FixturePlan(downloads: items).encoded()))
            bundle.essentialAllowance = 6000
            #expect(try await device.install(try bundle.write(to: device.folder)).exit == .exited(0))
            #expect(try await device.row("download-refused").reason == "allowance")
            #expect(try await device.row("gate-opened").detail == "nothing-essential")
            #expect(server.requests(of: "a.pack").isEmpty && server.requests(of: "b.pack").isEmpty)
            await server.stop()
        }
    }

    @Test(
        "Before the first launch only hosts of the allow list are asked",
        .shows("B64", "B248", "D40", by: "BADownloaderExtension.downloads(for:manifestURL:extensionInfo:)"),
        .shows("B66", by: "BADownloadManager.startForegroundDownload(_:)"))
    func domains() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let url = server.url.replacingOccurrences(of: "localhost", with: "127.0.0.1")
            try server.put("one.pack", randomBytes(1000, seed: 1))
            let item = FixtureItem("one.pack", url: url + "/one.pack", size: 1000)
            let bundle = FixtureBundle(
                manifestURL: try server.put("manifest.json", FixturePlan(downloads: [item]).encoded()))
            #expect(try await device.install(try bundle.write(to: device.folder)).exit == .exited(0))
            let row = try await device.row("download-refused")
            #expect(row.reason == "domain" && row.detail.contains("127.0.0.1"))
            #expect(server.requests(of: "one.pack").isEmpty)
            let app = try device.launch()
            #expect(try await app.perform("foreground", item).code == nil)
            try await device.told(1)
            #expect(device.asset("one.pack")?.count == 1000)
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "A server that closes midway, is busy, or knows no ranges gets asked again, and the file is right",
        arguments: ["close@100000x1", "503x1", "close@100000x1 noranges"])
    func server(fault: String) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("a.pack", size: 300_000, essential: true)
            let bundle = FixtureBundle(
                manifestURL: try server.put("manifest.json", FixturePlan(downloads: [item]).encoded()))
            try await server.fault(rules: fault.split(separator: " ").map { "a.pack:" + $0 })
            #expect(try await device.install(try bundle.write(to: device.folder)).exit == .exited(0))
            #expect(try await device.row("gate-opened").detail == "complete")
            try await device.row("download-waits")
            try await device.told(1)
            #expect(device.asset("a.pack") == Files.read(server.folder + "/a.pack"))
            let requests = try await server.requests(of: "a.pack", atLeast: 2)
            #expect(requests.count == 2)
            #expect(requests.last?.range == (fault.hasPrefix("close") ? "bytes=100000-" : nil))
            #expect(requests.last?.status == (fault == "close@100000x1" ? 206 : 200))
            await server.stop()
        }
    }

    @Test("An app or device that is not there is named, with the next step")
    func unknown() async throws {
        try await TestDevice.run { device in
            for verb in ["launch", "uninstall"] {
                let result = try await device.cli(verb, "org.example.unknown")
                #expect(result.exit == .exited(15))
                let refusal = try Refusal(result)
                #expect(refusal.code == 1005 && refusal.reason.contains("org.example.unknown"))
                #expect(refusal.remedy.contains("backgroundassets apps"))
            }
            try await device.row("launch-refused")
            // No folder can be made below a file.
            try Files.write(device.folder + "/file", Data())
            let result = try await Program.run(
                Products.tool, ["--device", device.folder + "/file/device", "--json", "apps"],
                environment: device.environment)
            #expect(result.exit == .exited(69))
            let refusal = try Refusal(result)
            #expect(refusal.reason.contains(device.folder + "/file/device"), "\(refusal)")
        }
    }

    @Test("A second service on the same device is refused, and the first one does not notice")
    func secondService() async throws {
        try await TestDevice.run { device in
            let first = try await device.process()
            let second = try await Program.run(
                Products.service, ["--device", device.root], environment: device.environment)
            #expect(second.exit == .exited(1))
            let complaint = try #require(second.errors.last)
            #expect(complaint.contains(device.root) && complaint.contains("already served by process \(first)"))
            #expect(complaint.contains("; "))
            #expect(try await device.process() == first)
        }
    }

    // MARK: Clients

    private func connect(_ device: TestDevice) throws -> Descriptor {
        try UnixSocket.connect(to: device.location.socketPath)
    }

    @Test("A client that never reads is cut off after its limit, and the others are served meanwhile")
    func deafClient() async throws {
        try await TestDevice.run { device in
            let deaf = try connect(device)
            let call =
                Array(
                    (#"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"#
                        + #""org.backgroundassets.Device"}}"#).utf8) + [0]
            try UnixSocket.setNonblocking(deaf)
            // Until the service takes no more: it reads nothing while replies wait.
            var sent = 0
            while write(deaf.rawValue, call, call.count) > 0 {
                sent += 1
                try #require(sent < 1_000_000)
            }
            let start = MonotonicClock.now
            _ = try await device.process()
            #expect(MonotonicClock.now - start < .seconds(6))
            try await device.row("client-cut-off")
            #expect(MonotonicClock.now - start > .seconds(8))
            _ = try await device.process()
            _ = consume deaf
        }
    }

    @Test("A process that opens too many connections is refused the next one, others are not")
    func tooManyConnections() async throws {
        try await TestDevice.run { device in
            // One connection follows the journal.
            var open: [SharedDescriptor] = []
            for _ in 0..<7 { open.append(SharedDescriptor(try connect(device))) }
            // Whoever gets an answer is in.
            for connection in open {
                _ = try await blocking { try describe(connection) }
            }
            let refused = SharedDescriptor(try connect(device))
            await #expect(throws: (any Error).self) { try await blocking { try describe(refused) } }
            try await device.row("client-refused") { $0.detail.contains("too many connections") }
            #expect(try await device.cli("apps").exit == .exited(0))
        }
    }

    @Test("When all connections are taken the next client is refused, until one of the others leaves")
    func allConnections() async throws {
        try await TestDevice.run { device in
            // One connection follows the journal.
            let many = try Program(
                "/usr/bin/env",
                [
                    "python3", "-c", Self.manyClients, device.location.socketPath, "\(WireLimit.connectionsMax - 1)",
                    "\(WireLimit.connectionsOfClientMax)",
                ], environment: device.environment)
            #expect(try await many.output.first("connections") { _ in true } == "accepted")
            #expect(try await many.output.first(from: 1, "one more") { _ in true } == "refused")
            try await device.row("client-refused") { $0.detail.contains("too many connections, or all have") }
            many.closeInput()
            #expect(try await many.end() == .exited(0))
            #expect(try await device.cli("apps").exit == .exited(0))
        }
    }

    /// Opens so many connections from processes that each have as many as they may, and one more; holds them until the
    /// end of its input.
    private static let manyClients = """
        import os, socket, sys
        address, count, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

        def connect():
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(address)
            return connection

        def answers(connection):
            try:
                connection.sendall(b'{"method":"org.varlink.service.GetInfo"}\\0')
                return connection.recv(1) != b""
            except OSError:
                return False

        accepted = True
        for first in range(0, count, each):
            reading, writing = os.pipe()
            if os.fork() == 0:
                held = [connect() for _ in range(min(each, count - first))]
                os.write(writing, b"y" if all([answers(one) for one in held]) else b"n")
                sys.stdin.read()
                os._exit(0)
            accepted = os.read(reading, 1) == b"y" and accepted
        print("accepted" if accepted else "cut off", flush=True)
        print("accepted" if answers(connect()) else "refused", flush=True)
        sys.stdin.read()
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
        """

    @Test("A client that speaks no varlink is cut off", arguments: ["GET / HTTP/1.1\r\n\r\n\0", "[1,2]\0", "{}\0"])
    func nonsense(text: String) async throws {
        try await TestDevice.run { device in
            let client = SharedDescriptor(try connect(device))
            let bytes = Array(text.utf8)
            _ = write(client.rawValue, bytes, bytes.count)
            let rest = try await blocking {
                var buffer = [UInt8](repeating: 0, count: 1000)
                return read(client.rawValue, &buffer, buffer.count)
            }
            #expect(rest == 0)
            try await device.row("client-cut-off")
            _ = try await device.process()
        }
    }
}

/// Calls Describe on a bare socket; throws when the service closed it.
private func describe(_ socket: SharedDescriptor) throws {
    let stream = FrameStream(socket, frameMax: WireLimit.messageMax)
    try stream.send(try WireCodec.call(DeviceInterface.Describe.self, Nothing()))
    guard try stream.receive() != nil else { throw HarnessError("closed") }
}
