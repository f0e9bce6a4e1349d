// Sources as users write them: compiled against the built module, in both language modes; and one extension that runs.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Foundation
internal import Testing

@testable import BackgroundAssets

/// Compiles sources against the library of this build.
private struct Compiler {
    /// The bundle's folder.
    let products: String
    let package: String

    /// A program is instrumented as the library is.
    #if TSAN
        private static let sanitizer = ["-sanitize=thread"]
    #elseif SANITIZED
        private static let sanitizer = ["-sanitize=address"]
    #else
        private static let sanitizer: [String] = []
    #endif

    init() throws {
        let executable = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folders = (CommandLine.arguments + [executable]).map { ($0 as NSString).deletingLastPathComponent }
        products = try #require(
            folders.first { FileManager.default.fileExists(atPath: $0 + "/libBackgroundAssets.so") },
            "libBackgroundAssets.so is not beside the tests: build the whole package first")
        package =
            URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().path
    }

    /// Compiles one program; answers the compiler's complaints.
    func compile(
        _ source: URL, mode: String, options: [String] = [], linksFramework: Bool = true, to program: URL
    ) throws -> [String] {
        let compiler = Process()
        let output = Pipe()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments =
            [
                "swiftc", "-parse-as-library", "-swift-version", mode, "-warnings-as-errors",
                "-Wwarning", "DeprecatedDeclaration", "-I", products + "/Modules",
                "-Xcc", "-I" + package + "/Sources/CLinux/include",
                "-Xcc", "-fmodule-map-file=" + products + "/CLinux.build/module.modulemap",
                "-Xcc", "-fmodule-map-file=" + products + "/CRepair.build/module.modulemap",
                "-L", products, "-Xlinker", "-rpath", "-Xlinker", products,
                "-module-name", "Program", "-o", program.path, source.path,
            ] + (linksFramework ? ["-lBackgroundAssets"] : []) + Self.sanitizer + options
        compiler.standardError = output
        compiler.standardOutput = output
        try compiler.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        compiler.waitUntilExit()
        if compiler.terminationStatus == 0 { return [] }
        return text.split(separator: "\n").map(String.init).filter { $0.contains("error:") } + ["failed"]
    }
}

extension Compiler {
    /// Where scripts/run-tests puts what the tests compile against, else the package itself.
    private func source(_ copied: String, _ original: String) -> String {
        let copy = products + "/" + copied
        return FileManager.default.fileExists(atPath: copy) ? copy : package + "/" + original
    }

    /// The template's folder.
    var template: URL { URL(fileURLWithPath: source("Template", "Examples/Template"), isDirectory: true) }

    /// Lets a source import os, OSLog and their parts.
    var logging: [String] {
        ["-Xcc", "-fmodule-map-file=" + source("COSLog.build/module.modulemap", "Sources/COSLog/module.modulemap")]
    }
}

@Suite(.tags(.slow), .serialized, .timeLimit(.minutes(10))) struct SourceTests {
    @Test(
        "Apps and extensions as users write them compile",
        arguments: [
            ("5", []), ("6", []),
            (
                "6",
                [
                    "-default-isolation", "MainActor", "-enable-upcoming-feature", "NonisolatedNonsendingByDefault",
                    "-enable-upcoming-feature", "InferIsolatedConformances",
                ]
            ),
        ])
    func compiles(mode: String, options: [String]) async throws {
        let folder = try TemporaryFolder()
        let compiler = try Compiler()
        for (name, text) in [("app", Sources.app), ("extension", Sources.structure), ("class", Sources.classes)] {
            let source = try folder.file("\(name).swift", text)
            let complaints = try await blocking {
                try compiler.compile(
                    source, mode: mode, options: options, to: folder.url.appendingPathComponent(name))
            }
            #expect(complaints == [], "\(name), language mode \(mode)")
        }
    }

    @Test("An extension's process serves its entry points on the main thread and ends with the connection")
    func process() async throws {
        let folder = try TemporaryFolder()
        let compiler = try Compiler()
        let program = folder.url.appendingPathComponent("X.app/Extensions/Y.appex/program")
        let source = try folder.file("X.app/Extensions/Y.appex/main.swift", Sources.running)
        let complaints = try await blocking { try compiler.compile(source, mode: "6", to: program) }
        try #require(complaints == [])
        _ = try folder.file(
            "X.app/Extensions/Y.appex/Entitlements.plist",
            """
            <plist version="1.0"><dict><key>com.apple.security.application-groups</key>
            <array><string>group.a</string></array></dict></plist>
            """)
        _ = try folder.file("Containers/Group/group.a/asset.tmp", "content")
        let manifest = try folder.file("manifest", "3 levels")

        let service = FakeService()
        service.on(ManagerInterface.Identity.self) { call in
            call.reply(
                ManagerInterface.Identity.self,
                .init(app: "x", role: "extension", groups: ["group.a"], root: folder.url.path))
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

        let file = folder.url.path + "/Containers/Group/group.a/asset.tmp"
        let finished = Task {
            try await blocking {
                try connection.call(
                    ExtensionInterface.DownloadFinished.self, .init(download: makeWire(state: 3), path: file))
            }
        }
        await service.asked.wait { $0.contains(.acquire("s1", nil)) }
        service.send(.granted(1))
        #expect(try await finished.value.implemented)
        #expect(service.asked.entries.contains(.release("s1", 1)))
        #expect(text(folder.url.appendingPathComponent("Containers/Group/group.a/asset")) == "content")

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
        let compiler = try Compiler()
        let program = folder.url.appendingPathComponent("program")
        let setting = ["-Xfrontend", "-import-module", "-Xfrontend", "BackgroundAssets"]
        let manifest = try #require(text(compiler.template.appendingPathComponent("Package.swift")))
        #expect(manifest.contains(setting.map { "\"\($0)\"" }.joined(separator: ", ")))
        let sources = compiler.template.appendingPathComponent("Sources/" + target)
        let files = try FileManager.default.contentsOfDirectory(at: sources, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "swift" }.sorted { $0.path > $1.path }
        let first = try #require(files.first)
        let others = files.dropFirst().map(\.path) + compiler.logging
        let complaints = try await blocking {
            try compiler.compile(first, mode: mode, options: others + setting, to: program)
        }
        #expect(complaints == [])
        guard !others.filter({ $0.hasSuffix("Asset.swift") }).isEmpty else { return }
        let without = try await blocking { try compiler.compile(first, mode: mode, options: others, to: program) }
        #expect(without.contains { $0.contains("URLRequest") })
    }

    @Test("A program that loads Foundation while it runs finds it behind the repair library")
    func loadedLate() async throws {
        let folder = try TemporaryFolder()
        let compiler = try Compiler()
        let program = folder.url.appendingPathComponent("program")
        let source = try folder.file("main.swift", Sources.late)
        try #require(
            try await blocking { try compiler.compile(source, mode: "6", linksFramework: false, to: program) } == [])
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
        let compiler = try Compiler()
        let program = folder.url.appendingPathComponent("program")
        let source = try folder.file("main.swift", Sources.structure)
        try #require(try await blocking { try compiler.compile(source, mode: "6", to: program) } == [])
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
                        "LD_PRELOAD": try Compiler().products + "/libFoundationRepair.so",
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

    static let app = #"""
        import BackgroundAssets

        final class Watcher: NSObject, BADownloadManagerDelegate {
            func downloadDidBegin(_ download: BADownload) { print(download.identifier) }
            func download(
                _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
                totalBytesExpectedToWrite totalExpectedBytes: Int64
            ) {}
            func download(_ download: BADownload, didReceive challenge: URLAuthenticationChallenge) async -> (
                URLSession.AuthChallengeDisposition, URLCredential?
            ) { (.performDefaultHandling, nil) }
            func download(_ download: BADownload, failedWithError error: any Error) {
                if (error as NSError).domain == BAErrorDomain { print(BAErrorCode(rawValue: (error as NSError).code) as Any) }
            }
            func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
                do {
                    let target = fileURL.appendingPathExtension("kept")
                    _ = try FileManager.default.replaceItemAt(target, withItemAt: fileURL)
                } catch {}
                Task { try await BADownloadManager.shared.withExclusiveControl { print("mine") } }
            }
        }
        final class WithHandler: NSObject, BADownloadManagerDelegate {
            func download(
                _ download: BADownload, didReceive challenge: URLAuthenticationChallenge,
                completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) {
                completionHandler(.useCredential, URLCredential(user: "a", password: "b", persistence: .forSession))
            }
        }
        final class WithSendableHandler: NSObject, BADownloadManagerDelegate {
            func download(
                _ download: BADownload, didReceive challenge: URLAuthenticationChallenge,
                completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) { completionHandler(.cancelAuthenticationChallenge, nil) }
        }

        @MainActor final class Model {
            var count = 0
            let watcher = Watcher()

            func start() async throws {
                let manager = BADownloadManager.shared
                manager.delegate = watcher
                let current = try await manager.currentDownloads
                let other = try manager.fetchCurrentDownloads()
                manager.fetchCurrentDownloads { downloads, error in print(downloads.count) }
                guard let url = URL(string: "https://assets.example.com/level") else { return }
                let download = BAURLDownload(
                    identifier: "x", request: URLRequest(url: url), fileSize: current.count + other.count,
                    applicationGroupIdentifier: "group.a")
                try manager.scheduleDownload(download)
                try manager.startForegroundDownload(download)
                let first = try await manager.withExclusiveControl {
                    self.count += 1
                    return self.count
                }
                let second = try await manager.withExclusiveControl(before: Date()) { 42 }
                manager.withExclusiveControl { acquired, error in print(acquired) }
                manager.withExclusiveControl(beforeDate: Date()) { acquired, error in print(acquired) }
                manager.withExclusiveControl { error in print(error as Any) }
                try manager.schedule(download)
                print(first + second, FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: "g") as Any)
                do {
                    try manager.cancel(download)
                } catch let error as NSError
                    where error.domain == BAErrorDomain && error.code == BAErrorCode.downloadNotScheduled.rawValue {}
                switch download.state {
                case .created, .waiting, .downloading, .finished, .failed: break
                @unknown default: break
                }
            }
        }

        @main struct App {
            static func main() async throws { try await Model().start() }
        }
        """#

    static let structure = #"""
        import BackgroundAssets
        import ExtensionFoundation

        @main
        struct Downloader: BADownloaderExtension {
            func downloads(
                for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
            ) -> Set<BADownload> {
                guard let url = URL(string: "https://assets.example.com/level") else { return [] }
                switch request {
                case .install, .update:
                    return [
                        BAURLDownload(
                            identifier: "level", request: URLRequest(url: url), essential: true, fileSize: 3,
                            applicationGroupIdentifier: "group.a", priority: .default)
                    ]
                case .periodic, .languageChange: return []
                @unknown default: return []
                }
            }
            func backgroundDownload(_ download: BADownload, didReceive challenge: URLAuthenticationChallenge) async -> (
                URLSession.AuthChallengeDisposition, URLCredential?
            ) { (.useCredential, URLCredential(user: "a", password: "b", persistence: .forSession)) }
            func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error) {
                guard type(of: failedDownload) == BAURLDownload.self, failedDownload.isEssential else { return }
                try? BADownloadManager.shared.scheduleDownload(failedDownload.removingEssential())
            }
            func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
                BADownloadManager.shared.withExclusiveControl { acquired, error in
                    guard acquired else { return }
                    _ = try? FileManager.default.replaceItemAt(fileURL, withItemAt: fileURL)
                }
            }
            func extensionWillTerminate() {}
        }
        """#

    static let classes = #"""
        import BackgroundAssets

        @main
        class Downloader: BADownloaderExtension {
            var count = 0
            required init() {}
            func downloads(
                for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
            ) -> Set<BADownload> {
                count += 1
                return []
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
