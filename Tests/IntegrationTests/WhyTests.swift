// `backgroundassets why` with real processes: what it says of holders, of what was given up and of what waits.
import AssetsModel
import AssetsOS
import AssetsStore
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct WhyTests {
    private typealias Standing = DeviceInterface.Standing

    private func why(_ device: TestDevice, _ download: String...) async throws -> [Standing] {
        let result = try await device.tool(["why", FixtureBundle.identifier] + download).result(within: .seconds(60))
        try #require(result.exit == .exited(0), "\(result.errors)")
        return try result.values(Standing.self)
    }

    /// As people see it.
    private func text(_ device: TestDevice, _ download: String...) async throws -> [String] {
        let words = ["--device", device.root, "why", FixtureBundle.identifier] + download
        let program = try Program(Products.tool, words, environment: device.environment)
        program.closeInput()
        let result = try await program.result(within: .seconds(60))
        #expect(result.exit == .exited(0) && result.errors == [])
        return result.output
    }

    @Test("Who never gives exclusive control back is named with its process, and nothing held is one line")
    func holder() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let free = try await text(device)
            #expect(free.count == 1 && free[0].hasPrefix("nothing holds '\(FixtureBundle.identifier)'"), "\(free)")
            #expect(free[0].contains("gate: open") && free[0].contains("the next periodic check comes in"))
            let app = try device.launch()
            let other = try device.launch()
            try await app.perform("acquire")
            #expect(try await app.event("control").acquired == true)
            let alone = try #require(try await why(device).first { $0.subject == "control" })
            #expect(!alone.held && alone.detail.contains("nobody waits for it"))
            try await other.perform("acquire")
            _ = try await device.row("control-waits")
            let held = try #require(try await why(device).first { $0.subject == "control" })
            let holder = "process \(app.program.process) of the app"
            #expect(held.held && held.reason == "control" && held.detail.hasPrefix(holder), "\(held.detail)")
            #expect(held.detail.contains("and process \(other.program.process) of the app waits for it"))
            #expect(held.release.hasPrefix("\(holder) gives it back or ends") && held.latest == 0)
            let lines = try await text(device)
            let place = try #require(lines.firstIndex { $0.hasPrefix("exclusive control: control: \(holder)") })
            #expect(lines[place + 1].hasPrefix("    released when \(holder) gives it back"))
            // Its end is what releases it.
            kill(app.program.process, SIGKILL)
            #expect(try await other.event("control").acquired == true)
            #expect(try await why(device).allSatisfy { !$0.held })
            try await other.end()
            await server.stop()
        }
    }

    @Test("A message that was given up says so after its limit, and its file is kept until the app takes it")
    func givenUp() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            var plan = FixturePlan()
            plan.crashes = 100
            try await device.install(plan, from: server)
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("fatal.pack", size: 1000))
            let died = try await device.row("message-waits")
            let paused = try #require(try await why(device, "fatal.pack").first)
            #expect(paused.subject == "message" && paused.uniqueIdentifier == died.download)
            #expect(paused.held && paused.detail.contains("after 8 it is given up"), "\(paused.detail)")
            try await app.end()
            // The pauses up to there are of hours.
            let deaths = PolicyNumbers.deliveriesMax - 1
            try await device.restart(after: [
                .setMessageWait(id: died.download, deaths: deaths, notBefore: .zero, detail: "died")
            ])
            let closed = try await device.row("message-closed")
            #expect(closed.reason == "crash" && closed.detail.contains("8 times"))
            for name in ["fatal.pack", died.download] {
                let kept = try #require(try await why(device, name).first)
                #expect(kept.subject == "kept-file" && kept.held && kept.reason == "crash")
                #expect(kept.detail.contains("died in the callback 8 times"), "\(kept.detail)")
                let path = try #require(kept.detail.components(separatedBy: "its file is kept: ").last)
                #expect(path.hasPrefix(device.container()) && Files.read(path)?.count == 1000, "\(path)")
            }
            let lines = try await text(device)
            #expect(lines.contains { $0.hasPrefix("given up message 'fatal.pack' (\(died.download)): crash: ") })
            #expect(lines.contains("    released when the app moves the file, or schedules it again"))
            let kept = try #require(try await why(device, "fatal.pack").first)
            unlink(try #require(kept.detail.components(separatedBy: ": ").last))
            #expect(try await why(device).allSatisfy { !$0.held })
            let gone = try await device.cli("why", FixtureBundle.identifier, "fatal.pack")
            #expect(gone.exit == .exited(10) && gone.errors.joined().contains("backgroundassets downloads"))
            await server.stop()
        }
    }

    @Test("A download that waits for room or for its server says what releases it, and when at the latest")
    func waiting() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(FixturePlan(), from: server)
            let app = try device.launch()
            let port = try unusedPort()
            let far = FixtureItem("far.pack", url: "https://localhost:\(port)/far.pack", size: 1000)
            _ = try await app.perform("schedule", far)
            try await device.until("its pause is told of") {
                let standing = try #require(try await why(device, "far.pack").first)
                #expect(standing.subject == "download" && standing.identifier == "far.pack")
                return standing.reason == "network" && standing.latest > 0
                    && standing.release == "the network changes or its pause is over"
            }
            // As if the disk had nothing left for it.
            #expect(try await device.cli("settings", "free-space", "1000TiB").exit == .exited(0))
            let start = device.journal.count
            _ = try await app.perform("schedule", try server.item("large.pack", size: 1_000_000))
            _ = try await device.row("download-waits", from: start) { $0.reason == "space" }
            let lacking = try #require(try await why(device, "large.pack").first)
            #expect(lacking.reason == "space" && lacking.detail.contains("more bytes must be free"))
            #expect(lacking.release.hasPrefix("there is room on the device's disk") && lacking.latest > 0)
            let lines = try await text(device, "large.pack")
            #expect(lines.count == 2)
            #expect(lines[0].hasPrefix("download 'large.pack' (\(lacking.uniqueIdentifier)): space: "), "\(lines)")
            #expect(lines[1].contains("; at the latest 20"), "\(lines)")
            try await app.end()
            await server.stop()
        }
    }

    @Test(
        "With its runtime used up the extension and its messages say when there is some again",
        .shows("B116", by: "backgroundassets why"))
    func budget() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            try await device.install(limits: LimitPlan(), from: server)
            try await device.use(.seconds(300))
            let app = try device.launch()
            _ = try await app.perform("foreground", try server.item("one.pack", size: 1000))
            _ = try await device.row("extension-refused")
            let standings = try await why(device)
            let spent = try #require(standings.first { $0.subject == "extension" })
            let message = try #require(standings.first { $0.subject == "message" })
            #expect(spent.held && spent.reason == "budget" && spent.detail.hasPrefix("absent, 300 s of the 300 s"))
            let tomorrow = Date().timeIntervalSince1970 + 86_400
            #expect(spent.latest > tomorrow - 700 && spent.latest < tomorrow + 700)
            #expect(message.identifier == "one.pack" && message.reason == "budget")
            #expect(abs(message.latest - spent.latest) < 60)
            // What the message says releases it does.
            try await app.perform("delegate full")
            _ = try await app.event("finished") { $0.download?.identifier == "one.pack" }
            try await device.until("nothing but the extension waits") {
                try await why(device).filter(\.held).map(\.subject) == ["extension"]
            }
            try await app.end()
            await server.stop()
        }
    }

    @Test("An unknown app is refused with the next step, a missing one is a wrong command line")
    func unknown() async throws {
        try await TestDevice.run { device in
            let unknown = try await device.cli("why", "com.example.nobody")
            #expect(unknown.exit == .exited(15) && unknown.errors.joined().contains("backgroundassets apps"))
            #expect(try await device.cli("why").exit == .exited(64))
        }
    }

    /// A port on which nobody listens.
    private func unusedPort() throws -> UInt16 {
        let socket = try check("socket") { Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) }
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try check("bind") { bind(socket, address, length) }
                try check("getsockname") { getsockname(socket, address, &length) }
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
    }
}
