// The box of extensions as it stands on this machine, seen from outside and from inside.
import AssetsOS
import AssetsWire
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct SandboxTests {
    @Test("The service says what extensions are closed off with, in its journal and to doctor")
    func doctor() async throws {
        try await TestDevice.run { device in
            let row = try await device.row("sandbox-ready")
            let result = try await device.cli("doctor", "--sandbox")
            let layers = try result.values(DeviceInterface.SandboxLayer.self)
            #expect(layers.map(\.name) == ["Landlock", "call filter", "namespaces", "second stage"])
            #expect(result.exit == .exited(layers.allSatisfy(\.active) ? 0 : 1))
            for layer in layers {
                #expect(row.detail.contains(layer.active ? "\(layer.name) (" : "no \(layer.name): "))
                #expect(layer.active || !layer.weaker.isEmpty)
            }
            print("sandbox of this machine: \(row.detail)")
        }
    }

    @Test(
        "An extension finds its own descriptors, folders and environment and nothing else",
        .plainOnly("a build for a sanitizer leaves walls out"))
    func box() async throws {
        try await TestDevice.whileExtensionIsAsked { device, process in
            let status = ProcessStatus(process)
            #expect(status["NoNewPrivs"] == "1" && status["Seccomp"] == "2" && status["Seccomp_filters"] == "2")
            for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] { #expect(status[set] == "0000000000000000", "\(set)") }
            #expect(ProcessStatus.nice(process) == ProcessStatus.nice(getpid()), "somebody waits for an installation")
            #expect(getpgid(process) == process)
            let descriptors = ProcessStatus.descriptors(process)
            #expect(descriptors.prefix(7) == [0, 1, 2, 3, 4, 5, 6])
            // Kept open, so that the kernel does not forget what the rule is about. In its namespace it is process 1.
            let folders = descriptors.compactMap { ProcessStatus.link($0, process) }.filter { $0.hasPrefix("/proc/") }
            #expect(folders == ["/proc/1"] || folders == ["/proc/\(process)"], "\(folders)")
            #expect(ProcessStatus.limit("Max core file size", process) == "0")
            let home = device.container(.appExtension, of: "\(FixtureBundle.identifier).extension")
            let environment = ProcessStatus.environment(process)
            #expect(environment["HOME"] == home + "/home" && environment["TMPDIR"] == home + "/tmp")
            #expect(environment["SWIFT_BACKTRACE"] == "enable=no")
            let known: Set<String> = [
                "HOME", "TMPDIR", "PATH", "LANG", "LC_ALL", "TZ", "SWIFT_BACKTRACE", "LD_PRELOAD",
                "BACKGROUNDASSETS_DEVICE", "BACKGROUNDASSETS_EXTENSION",
            ]
            #expect(Set(environment.keys).isSubset(of: known), "\(environment.keys.sorted())")
        }
    }

    @Test(
        "Files keep their number between container, temporary folder and home; what is outside is closed",
        .shows("B57", "B117", by: "BADownloaderExtension.backgroundDownload(_:finishedWithFileURL:)"))
    func moves() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan(downloads: [try server.item("one.pack", size: 1000, essential: true)])
            plan.finished = .handle
            try await device.install(plan, from: server, messages: 1)
            let record = try #require(try device.extensionRecords("handled").first)
            #expect(record.reason == nil)
            let texts = record.texts ?? [:]
            let numbers = Set(["vended", "temporary", "placed", "home", "replaced"].map { texts[$0] })
            #expect(numbers.count == 1 && !numbers.contains(nil) && !numbers.contains("none"), "\(texts)")
            #expect(texts["mode"] == "416" && texts["time"] == "1000000.0" && texts["attribute"] == "value")
            #expect(texts["copy"] == "1000")
            #expect(texts["passwd"] == "closed" && texts["outside"] == "closed")
            // These are the call filter's, which builds for a sanitizer leave out.
            #expect(texts["network"] == "closed" || Sanitizer.name != nil)
            #expect(texts["program"] == "closed")
            await server.stop()
        }
    }

    @Test("Queues of the system with more work than threads live in the box")
    func crowd() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.request = .crowd
            try await device.install(plan, from: server)
            #expect(try device.extensionRecords("crowded").count == 1)
            #expect(try await device.rows("extension-answered").count == 1)
            await server.stop()
        }
    }

    @Test("Work that nobody waits for is done with low priority")
    func priority() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.finished = .hold
            try await device.install(plan, from: server)
            try await device.extensionIsAsleep()
            let start = device.journal.count
            let turnstile = try device.turnstile()
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            try await device.row("extension-launched", from: start)
            let process = try await device.launchedExtension()
            // The launcher becomes the extension with the priority that it has given itself.
            try await device.until("the launcher has done its part") {
                Processes.executable(of: process).hasSuffix("FixtureExtension")
            }
            #expect(ProcessStatus.nice(process) == 5)
            turnstile.letPass()
            try await device.told(1, from: start)
            try await app.end()
            await server.stop()
        }
    }

    @Test("An entry point of 8 seconds survives: the extension dies with no thread of the service but the one for ever")
    func longEntryPoint() async throws {
        try await TestDevice.whileExtensionIsAsked { device, process in
            // Threads of pools that have nothing to do end after five seconds.
            _ = try? await device.journal.first(from: .max, within: .seconds(8), "nothing") { _ in false }
            #expect(Processes.state(of: process) != nil)
        }
    }

    @Test(
        "A service that is killed takes its extension along within 100 ms, also a stopped one",
        .plainOnly("a sanitizer takes its time to end"), arguments: [false, true])
    func death(isStopped: Bool) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.request = .wait
            let install = try device.tool(["install", try device.waiting(plan, server)])
            _ = try await device.openTurnstileOfRequest()
            let process = try await device.launchedExtension()
            if isStopped { kill(process, SIGSTOP) }
            let service = try await device.process()
            try install.send(signal: SIGSTOP)
            let start = MonotonicClock.now
            kill(service, SIGKILL)
            try await Processes.gone(process, within: .seconds(60))
            let time = MonotonicClock.now - start
            #expect(time < .milliseconds(100), "\(time)")
            try install.send(signal: SIGKILL)
            _ = try await install.result()
            await server.stop()
        }
    }

    @Test("An app and its extension find the same container")
    func container() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let record = try #require(try device.extensionRecords("request").first)
            let app = try device.launch()
            let container = try #require(try await app.perform("container").path)
            #expect(record.container == container && container == device.container())
            let name = try #require(container.split(separator: "/").last)
            #expect(name.hasPrefix("group.\(FixtureBundle.identifier)~"))
            try await app.end()
            await server.stop()
        }
    }

    @Test("An extension that speaks for itself reaches its download manager only, not the device and its apps")
    func calls() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let refused = [
                #"{"method":"org.backgroundassets.Device.Apps","more":true}"#,
                #"{"method":"org.backgroundassets.Device.Describe"}"#,
                #"{"method":"org.backgroundassets.Device.SetDeveloperMode","parameters":{"on":false}}"#,
                #"{"method":"org.backgroundassets.Device.Uninstall","parameters":{"app":"org.example.fixture"}}"#,
                #"{"method":"org.backgroundassets.Device.Journal","parameters":{"app":"","after":0,"follow":false}}"#,
                #"{"method":"org.backgroundassets.Manager.Declare","parameters":{"app":"org.example.fixture"}}"#,
            ]
            let identity = #"{"method":"org.backgroundassets.Manager.Identity"}"#
            let interfaces = #"{"method":"org.varlink.service.GetInfo"}"#
            var plan = FixturePlan()
            plan.calls = refused + [identity, interfaces]
            try await device.install(plan, from: server)
            let answers = try #require(try device.extensionRecords("called").first?.texts)
            for call in refused {
                let answer = try #require(answers[call])
                let isUnknown = ["InterfaceNotFound", "MethodNotFound"].contains { answer.contains("service.\($0)") }
                #expect(isUnknown, "\(call): \(answer)")
            }
            let groups = try #require(answers[identity])
            #expect(groups.contains("group.\(FixtureBundle.identifier)~"), "\(groups)")
            let known = try #require(answers[interfaces])
            #expect(known.contains("org.backgroundassets.Manager") && !known.contains("Device"), "\(known)")
            await server.stop()
        }
    }

    @Test("A service starts no extension while an earlier process of it lives, and says what it waits for")
    func lock() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            try await device.extensionIsAsleep()
            // What an extension of an earlier service would hold.
            let path = device.container(.appExtension, of: "\(FixtureBundle.identifier).extension") + "/.lock"
            let earlier = open(path, O_RDWR)
            try #require(earlier >= 0 && flock(earlier, LOCK_EX | LOCK_NB) == 0)
            let start = device.journal.count
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            try await device.row("warning", from: start) { $0.detail.contains("earlier process") }
            #expect(device.journal.all.dropFirst(start).allSatisfy { $0.event != "extension-launched" })
            close(earlier)
            try await device.row("extension-launched", from: start)
            try await device.told(1, from: start)
            try await app.end()
            await server.stop()
        }
    }
}

extension TestDevice {
    /// Installs an app, does `body` with the extension's process while that waits in its content request, and looks
    /// whether it then answers.
    fileprivate static func whileExtensionIsAsked(
        _ body: @Sendable (TestDevice, Int32) async throws -> Void
    ) async throws {
        try await run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.request = .wait
            let install = try device.tool(["install", try device.waiting(plan, server)])
            let turnstile = try await device.openTurnstileOfRequest()
            try await body(device, try await device.launchedExtension())
            turnstile.letPass()
            #expect(try await install.result().exit == .exited(0))
            #expect(try await device.rows("extension-answered").count == 1)
            await server.stop()
        }
    }

    /// A written bundle whose extension waits in its content request.
    fileprivate func waiting(_ plan: FixturePlan, _ server: TestServer) throws -> String {
        try FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded())).write(to: folder)
    }

    /// The turnstile, once the extension has been asked.
    fileprivate func openTurnstileOfRequest() async throws -> Turnstile {
        try await row("extension-launched")
        let turnstile = try turnstile()
        // The record is written right before it waits.
        try await until("the extension was asked") { try !extensionRecords("request").isEmpty }
        return turnstile
    }

    /// The process of the extension that was launched last.
    fileprivate func launchedExtension() async throws -> Int32 {
        let row = try #require(try await rows("extension-launched").last)
        return try #require(row.detail.split(separator: " ").last.flatMap { Int32($0) })
    }
}
