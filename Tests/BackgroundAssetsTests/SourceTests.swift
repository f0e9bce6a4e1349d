// Programs compiled against the built module, and run: an extension, the template, one that loads Foundation late.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Foundation
internal import SourceCompiler
internal import Testing

@testable import BackgroundAssets

@Suite(.tags(.slow), .serialized, .timeLimit(.minutes(10))) struct SourceTests {
    private let newest = SourceCompiler.Mode.version("6")

    @Test("An extension's process serves its entry points on the main thread and ends with the connection")
    func process() async throws {
        let folder = try TemporaryFolder()
        let compiler = try SourceCompiler()
        let program = folder.url.appendingPathComponent("X.app/Extensions/Y.appex/program")
        let source = try folder.file("X.app/Extensions/Y.appex/main.swift", Sources.running)
        let complaints = try await blocking { try compiler.compile([source], options: newest, to: program) }
        try #require(complaints == [])
        _ = try folder.file(
            "X.app/Extensions/Y.appex/Entitlements.plist",
            """
            <plist version="1.0"><dict><key>com.apple.security.application-groups</key>
            <array><string>group.a</string></array></dict></plist>
            """)
        let asset = try folder.file("container/asset.tmp", "content")
        let manifest = try folder.file("manifest", "3 levels")

        let service = FakeService()
        service.on(ManagerInterface.Identity.self) { call in
            call.reply(
                ManagerInterface.Identity.self,
                .init(
                    app: "x", role: "extension",
                    groups: [.init(identifier: "group.a", container: folder.url.path + "/container")],
                    root: folder.url.path))
        }
        service.on(ManagerInterface.Schedule.self) { $0.refuse(.downloadBackgroundActivityProhibited, "not now") }
        let output = folder.url.appendingPathComponent("output")
        #expect(FileManager.default.createFile(atPath: output.path, contents: nil))
        var entry = try UnixSocket.pair()
        let process = try start(program, output: output, entry: entry.takeSecond(), service: service)
        let connection = ServiceConnection(descriptor: entry.takeFirst())

        let pages = try await blocking {
            var pages: [[WireDownload]] = []
            try connection.stream(
                ExtensionInterface.ContentRequest.self, .init(request: 1, manifest: manifest.path, remaining: 9)
            ) { page in
                pages.append(page.downloads)
                return true
            }
            return pages
        }
        #expect(pages.flatMap { $0 }.map(\.identifier) == ["level 1", "level 2", "level 3"])
        #expect(text(output) == "request 1, main true, remaining 9, other nil\n")

        let finished = Task {
            try await blocking {
                try connection.call(
                    ExtensionInterface.DownloadFinished.self, .init(download: makeWire(state: 3), path: asset.path))
            }
        }
        await service.asked.wait { $0.contains(.acquire("s1", nil)) }
        service.send(.granted(1))
        #expect(try await finished.value.implemented)
        #expect(service.asked.entries.contains(.release("s1", 1)))
        #expect(text(folder.url.appendingPathComponent("container/asset")) == "content")

        let failed = try await blocking {
            try connection.call(
                ExtensionInterface.DownloadFailed.self,
                .init(
                    download: makeWire("x", state: -1), failure: .init(domain: "BAErrorDomain", code: 204, reason: "")))
        }
        #expect(failed.implemented)
        let lines = try #require(text(output)).split(separator: "\n").map(String.init)
        #expect(
            lines.dropFirst() == ["finished, main true", "handler, main false", "task", "failed 204, then 111 not now"])
        connection.close()
        let exit = try await blocking { process.wait() }
        #expect(exit == .exited(0))
    }

    @Test(
        "The template compiles as it is, and files that import only Foundation need its one setting",
        arguments: ["TemplateApp", "TemplateDownloader"], ["5", "6"])
    func template(target: String, mode: String) async throws {
        let folder = try TemporaryFolder()
        let compiler = try SourceCompiler()
        let program = folder.url.appendingPathComponent("program")
        let setting = SourceCompiler.importing
        let manifest = try #require(text(compiler.template.appendingPathComponent("Package.swift")))
        #expect(manifest.contains(setting.map { "\"\($0)\"" }.joined(separator: ", ")))
        let sources = compiler.template.appendingPathComponent("Sources/" + target)
        let files = try FileManager.default.contentsOfDirectory(at: sources, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "swift" }.sorted { $0.path > $1.path }
        let options = SourceCompiler.Mode.version(mode) + compiler.logging
        let complaints = try await blocking { try compiler.compile(files, options: options + setting, to: program) }
        #expect(complaints == [])
        guard files.contains(where: { $0.lastPathComponent == "Asset.swift" }) else { return }
        let without = try await blocking { try compiler.compile(files, options: options, to: program) }
        #expect(without.contains { $0.contains("URLRequest") })
    }

    @Test("A program that loads Foundation while it runs finds it behind the repair library")
    func loadedLate() async throws {
        let folder = try TemporaryFolder()
        let compiler = try SourceCompiler()
        let program = folder.url.appendingPathComponent("program")
        let source = try folder.file("main.swift", Sources.late)
        try #require(
            try await blocking { try compiler.compile([source], options: newest, linksFramework: false, to: program) }
                == [])
        let process = Process()
        let output = Pipe()
        process.executableURL = program
        process.environment = ["LD_PRELOAD": compiler.products + "/libFoundationRepair.so", "HOME": folder.url.path]
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = try await blocking { output.fileHandleForReading.readDataToEndOfFile() }
        process.waitUntilExit()
        #expect(String(decoding: text, as: UTF8.self) == "repaired true, answered 1\n")
    }

    @Test("An extension that a user starts says what it is and ends with status 64")
    func startedByHand() async throws {
        let folder = try TemporaryFolder()
        let compiler = try SourceCompiler()
        let program = folder.url.appendingPathComponent("program")
        let source = try #require(try compiler.corpus("Extensions").first { $0.lastPathComponent == "Empty.swift" })
        try #require(try await blocking { try compiler.verify([source], mode: .six, program: program) } == [])
        let process = Process()
        let output = Pipe()
        process.executableURL = program
        process.standardError = output
        try process.run()
        let text = try await blocking { output.fileHandleForReading.readDataToEndOfFile() }
        process.waitUntilExit()
        #expect(process.terminationStatus == 64)
        #expect(String(decoding: text, as: UTF8.self).contains("the asset service"))
    }

    /// A started extension.
    private final class Running: Sendable {
        private let child: ChildProcess
        init(_ child: consuming ChildProcess) { self.child = child }
        func wait() -> ChildExit { child.wait() }
    }

    private func start(
        _ program: URL, output: URL, entry: consuming Descriptor, service: FakeService
    ) throws -> Running {
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        let log = Descriptor(owning: try check("open") { open(output.path, O_WRONLY | O_APPEND | O_CLOEXEC) })
        let requests = try service.connect()
        let events = try service.connect()
        return Running(
            try ChildProcess(
                ProgramStart(
                    path: program.path,
                    environment: [
                        "BACKGROUNDASSETS_EXTENSION": "1",
                        "LD_PRELOAD": try SourceCompiler().products + "/libFoundationRepair.so",
                    ],
                    descriptors: [
                        null.rawValue, log.rawValue, log.rawValue, entry.rawValue, requests.rawValue, events.rawValue,
                    ])))
    }
}

/// What is compiled.
private enum Sources {
    static let late = #"""
        import Glibc

        @main struct Late {
            static func main() {
                guard let library = dlopen("libFoundation.so", RTLD_NOW | RTLD_GLOBAL),
                    let own = dlsym(library, "CFPreferencesAppSynchronize"),
                    let first = dlsym(nil, "CFPreferencesAppSynchronize"),
                    let app = dlsym(library, "kCFPreferencesCurrentApplication")
                else { return print(dlerror().map { String(cString: $0) } ?? "nothing found") }
                typealias Synchronize = @convention(c) (UnsafeRawPointer) -> UInt8
                let call = unsafeBitCast(first, to: Synchronize.self)
                print("repaired \(first != own), answered \(call(app.load(as: UnsafeRawPointer.self)))")
            }
        }
        """#

    static let running = #"""
        import BackgroundAssets

        @main
        class Downloader: BADownloaderExtension {
            let made = Thread.isMainThread
            required init() {}
            func downloads(
                for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
            ) -> Set<BADownload> {
                print(
                    "request \(request.rawValue), main \(made && Thread.isMainThread), remaining",
                    extensionInfo.restrictedDownloadSizeRemaining.map { "\($0)," } ?? "nil,",
                    "other", extensionInfo.restrictedEssentialDownloadSizeRemaining.map { "\($0)" } ?? "nil")
                guard let data = try? Data(contentsOf: manifestURL), let text = String(data: data, encoding: .utf8),
                    let count = text.split(separator: " ").first.flatMap({ Int($0) }),
                    let url = URL(string: "https://assets.example.com/level")
                else { return [] }
                return Set(
                    (1...count).map {
                        BAURLDownload(
                            identifier: "level \($0)", request: URLRequest(url: url), essential: true, fileSize: 3,
                            applicationGroupIdentifier: "group.a", priority: .default)
                    })
            }
            func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
                print("finished, main \(Thread.isMainThread)")
                let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: "group.a")
                BADownloadManager.shared.withExclusiveControl { acquired, error in
                    print("handler, main \(Thread.isMainThread)")
                    Task { @MainActor in
                        if let target = container?.appendingPathComponent("asset") {
                            try FileManager.default.replaceItemAt(target, withItemAt: fileURL)
                        }
                        print("task")
                    }
                }
            }
            func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error) {
                do {
                    try BADownloadManager.shared.scheduleDownload(failedDownload.removingEssential())
                } catch let refusal as NSError {
                    print("failed \((error as NSError).code), then \(refusal.code) \(refusal.localizedFailureReason ?? "")")
                }
            }
        }
        """#
}
