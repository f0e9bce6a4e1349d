// What this machine does for transfers: the order of its disk, the patience of background downloads, the protocol.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Testing

@Suite struct TransferAbilityTests {
    @Test(
        "Each small file is synced once, then the row that says so, and only then it gets its place",
        .plainOnly("the leak sanitizer does not run under a tracer"))
    func syncsOnce() async throws {
        try await TestDevice.run(starting: false) { device in
            let trace = device.folder + "/trace"
            try await device.start(
                under: SyscallTrace.command(["fdatasync", "fsync", "renameat", "renameat2"], to: trace))
            let server = try await device.server()
            let items = try (0..<20).map { try server.item("small-\($0).pack", size: 10_000 + $0, essential: $0 < 10) }
            try await device.install(FixturePlan(downloads: items), from: server, messages: items.count)
            let began = try await device.rows("download-began")
            let program = try #require(device.program)
            _ = try await device.terminate()
            _ = try await program.end()
            await server.stop()

            let calls = SyscallTrace(String(decoding: try #require(Files.read(trace)), as: UTF8.self))
            for item in items {
                let row = try #require(began.first { $0.detail.hasPrefix("\(item.identifier),") })
                let partial = "\(row.download).partial"
                let syncs = calls.events.filter {
                    $0.moment == .begin && ["fdatasync", "fsync"].contains($0.name) && $0.arguments.contains(partial)
                }
                #expect(syncs.count == 1, "\(item.identifier): \(syncs)")
                let synced = try #require(calls.place(of: .end, ["fdatasync"]) { $0.contains(partial) })
                let commit = try #require(
                    calls.place(of: .begin, ["fdatasync", "fsync"], from: synced) { $0.contains("-wal>") })
                let written = try #require(
                    calls.place(of: .end, ["fdatasync", "fsync"], from: commit) { $0.contains("-wal>") })
                let moved = try #require(
                    calls.place(of: .begin, ["renameat", "renameat2"]) { $0.contains("\"\(partial)\"") })
                #expect(written < moved, "\(item.identifier)")
            }
        }
    }

    @Test("A limit of background downloads is kept over a restart, holds until it is lifted, and why tells of it")
    func backgroundRate() async throws {
        try await TestDevice.run { device in
            let low = try await device.cli("settings", "background-rate", "10KiB")
            #expect(low.exit != .exited(0) && low.errors.contains { $0.contains("at least 64KiB") }, "\(low.errors)")
            #expect(try await device.cli("settings", "background-rate", "64KiB/s").exit == .exited(0))
            _ = try await device.terminate()
            try await device.start()
            let shown = try await device.cli("settings").output.joined()
            #expect(shown.contains("65536"), "\(shown)")

            let server = try await device.server()
            let item = try server.item("large.pack", size: 3_000_000)
            try await device.install(FixturePlan(downloads: [item]), from: server)
            try await device.until("some bytes") {
                try await device.downloads().first.map { $0.received > 130_000 } ?? false
            }
            // What the last piece was charged with is not over yet.
            let began = try await device.row("download-began") { $0.detail.hasPrefix("large.pack,") }
            #expect(Date().timeIntervalSince1970 - began.time > Double(130_000 - 65_536) / 65_536 - 0.1)
            let why = try await device.cli("why", FixtureBundle.identifier, item.identifier).output.joined()
            #expect(why.contains("background-rate lets all background downloads have 65536 bytes a second"), "\(why)")

            #expect(try await device.cli("settings", "background-rate", "default").exit == .exited(0))
            try await device.told(1)
            let finished = try await device.row("download-finished") { $0.detail.hasPrefix("large.pack,") }
            // Half of what it would have taken under the limit.
            #expect(finished.time - began.time < Double(item.size) / 65_536 / 2)
            #expect(device.asset(item.identifier)?.count == item.size)
            await server.stop()
        }
    }

    @Test("The journal says what protocol is spoken and what background transfers yield with, and the kernel agrees")
    func abilities() async throws {
        try await TestDevice.run { device in
            let row = try await device.row("transfers-ready")
            #expect(row.detail.contains("libcurl") && row.detail.contains("HTTP/"))
            #expect(
                row.detail.hasSuffix(
                    "background transfers have idle disk priority, network class Lower Effort, lowest socket priority"),
                "\(row.detail)")
            let tasks = "/proc/\(try await device.process())/task"
            var classes: [String: Set<String>] = [:]
            for thread in Files.names(in: tasks) {
                let name = Files.read("\(tasks)/\(thread)/comm").map { String(decoding: $0.dropLast(), as: UTF8.self) }
                // Others come and go.
                guard let name, ["background", "write", "transfer"].contains(name) else { continue }
                let answer = try await Program.run("/usr/bin/ionice", ["-p", thread])
                classes[name, default: []].insert(try #require(answer.output.first, "\(answer.errors)"))
            }
            #expect(classes["background"] == ["idle"], "\(classes)")
            for name in ["write", "transfer"] { #expect(classes[name]?.contains("idle") == false, "\(classes)") }
        }
    }
}
