// The sources of Tests/SourceCompatibility on a device: compiled by hand, as app or extension of an installed bundle.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import SourceCompiler
import Testing

@Suite(.timeLimit(.minutes(10))) struct SourceCompatibilityTests {
    /// Makes a program of sources; `body` may use it.
    private func withProgram(
        of sources: [URL], _ mode: SourceCompiler.Mode, _ body: (String) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let compiler = try SourceCompiler()
        let program = URL(fileURLWithPath: folder.path + "/program")
        let complaints = try await blocking { try compiler.verify(sources, mode: mode, program: program) }
        try #require(complaints == [])
        try await body(program.path)
    }

    /// What each part of the app prints.
    private static let parts = [
        ("library", #"["level"] ["missing"] 10000 bytes, 1.0"#),
        ("inherited", "began inherited, moved inherited, 10000 bytes"),
        ("observed", #"false ["observed"]"#),
        ("stream", "streamed 10000 bytes"),
        ("old", "10000 of 10000, 10000 bytes"),
        ("async answer", "Ready"), ("plain handler", "Ready"), ("sendable handler", "Ready"),
        ("exclusive", #"2 0 ["a", "b"] true true true ["list"]"#),
        ("state", "2 1 2 5"),
        ("fetching", "[2, 2, 2, 2] 2 0"),
        ("wrapped", "1 1 0 2 0"),
        (
            "errors",
            #"["none", "already", "framework(BackgroundAssets.BAErrorCode.downloadEssentialDownloadNotPermitted)"]"#
                + " [true, false] framework(BackgroundAssets.BAErrorCode.downloadFailedToStart)"
        ),
        ("values", #"["one", "two"] 1 1 one 0 true ["New", "Failed"] true false"#),
        ("files", "second true GET"),
    ]

    /// Launches the corpus as an app, to carry out some parts.
    private func launch(_ parts: [String], on device: TestDevice, _ server: TestServer, locked: String = "") throws
        -> Program
    {
        let group = "group." + FixtureBundle.identifier
        let words = ["--device", device.root, "launch", FixtureBundle.identifier, "--", server.url, group]
        let program = try Program(
            Products.tool, words + parts, environment: device.environment.merging(["LOCKED_SERVER": locked]) { $1 })
        program.closeInput()
        return program
    }

    /// Compiles the corpus as an app and installs it.
    private func withApp(
        _ mode: SourceCompiler.Mode, _ body: (TestDevice, TestServer) async throws -> Void
    ) async throws {
        let compiler = try SourceCompiler()
        try await withProgram(of: try compiler.corpus("App") + compiler.corpus("."), mode) { program in
            try await TestDevice.run { device in
                let server = try await device.server()
                var bundle = FixtureBundle(manifestURL: try server.put("manifest.json", FixturePlan().encoded()))
                bundle.program = program
                let result = try await device.install(try bundle.write(to: device.folder))
                try #require(result.exit == .exited(0), "\(result.errors)")
                try await body(device, server)
                await server.stop()
            }
        }
    }

    @Test("An app of unchanged sources does what it says", arguments: [SourceCompiler.Mode.five, .six])
    func app(mode: SourceCompiler.Mode) async throws {
        try await withApp(mode) { device, server in
            for name in ["level", "inherited", "observed", "streamed", "old", "slow/1", "slow/2"] {
                try server.put(name, randomBytes(10_000, seed: 1))
            }
            try await server.fault("slow/*:rate=1000")
            let locked = try await BasicServer.start(on: device, user: "reader", password: "secret")
            let answers = ["async answer", "plain handler", "sendable handler"]
            for name in answers { _ = try locked.item(name, size: 10_000) }
            let app = try launch(Self.parts.map(\.0), on: device, server, locked: locked.url)
            let result = try await app.result(within: .seconds(120))
            #expect(result.exit == .exited(0), "\(result.errors)")
            let names = Set(Self.parts.map(\.0))
            let lines = result.output.filter { names.contains(String($0.prefix { $0 != ":" })) }
            #expect(lines == Self.parts.map { "\($0): \($1)" })
            try await device.until("the extension has what the delegates left to it") {
                answers.allSatisfy { device.asset($0)?.count == 10_000 }
            }
            _ = try await locked.finish()
        }
    }

    /// Without the checks of mode 6 such a delegate is a data race, of which the thread sanitizer would tell.
    #if TSAN
        private static let isolatedModes = [SourceCompiler.Mode.six]
    #else
        private static let isolatedModes = [SourceCompiler.Mode.five, .six]
    #endif

    @Test(
        "A delegate that is isolated to the main actor runs in mode 5; in mode 6 it dies and the extension gets the file",
        arguments: isolatedModes)
    func isolated(mode: SourceCompiler.Mode) async throws {
        try await withApp(mode) { device, server in
            let content = randomBytes(10_000, seed: 1)
            try server.put("isolated", content)
            let result = try await launch(["isolated"], on: device, server).result(within: .seconds(120))
            if mode == .five {
                #expect(result.output == [#"isolated: ["isolated"] ["isolated"]"#])
            } else {
                #expect(!result.exit.isSuccess)
                try await device.until("the extension has the file") { device.asset("isolated") == content }
            }
        }
    }

    @Test(
        "Extensions of unchanged sources fetch and keep what their app needs",
        arguments: ["StructDownloader", "ClassDownloader", "DelegatingDownloader", "FirstRelease"])
    func appExtension(name: String) async throws {
        let sources = try SourceCompiler().corpus("Extensions").filter { $0.lastPathComponent == name + ".swift" }
        try await withProgram(of: sources, .six) { program in
            try await TestDevice.run { device in
                let server = try await device.server()
                let content = randomBytes(10_000, seed: 1)
                let url = try server.put("one", content)
                let entries = [("one", url), ("missing", server.url + "/missing")].map { name, url in
                    #"{"identifier": "\#(name)", "url": "\#(url)", "size": 10000, "essential": true}"#
                }
                let manifest = #"{"downloads": [\#(entries.joined(separator: ", "))]}"#
                var bundle = FixtureBundle(manifestURL: try server.put("manifest.json", Data(manifest.utf8)))
                bundle.extensionProgram = program
                bundle.frameworks = [Products.folder + "/libBackgroundAssets.so"]
                bundle.extensionOverrides = ["Server": server.url]
                let result = try await device.install(try bundle.write(to: device.folder))
                #expect(result.exit == .exited(0), "\(result.errors)")
                let kept = device.container() + "/Library/Caches/one"
                try await device.until("the file is kept") { Files.read(kept) == content }
                await server.stop()
            }
        }
    }
}
