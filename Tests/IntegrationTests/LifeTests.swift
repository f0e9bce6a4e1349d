// How a service begins and ends.
import AssetsClient
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct LifeTests {
    @Test("The tests run as an ordinary user where scripts/run-tests starts them")
    func ordinaryUser() {
        let isStartedByScript =
            ProcessEnvironment.value("BACKGROUNDASSETS_TEST_PRODUCTS", in: ProcessEnvironment.current) != nil
        #expect(!isStartedByScript || (getuid() != 0 && geteuid() != 0))
    }

    @Test("Clients that find no service start one, and only one")
    func onDemand() async throws {
        try await TestDevice.run(starting: false) { device in
            let clients = try (0..<4).map { _ in try device.tool(["settings"]) }
            var processes: [Int64] = []
            for client in clients {
                let result = try await client.result()
                #expect(result.exit == .exited(0), "\(result.errors)")
                processes += try result.values(DeviceInterface.Describe.Reply.self).map(\.process)
            }
            #expect(processes.count == 4 && Set(processes).count == 1)
            // Those that found the device served may still be on their way out.
            for process in Processes.using(device.folder) where !processes.contains(Int64(process)) {
                try await Processes.gone(process)
            }
            #expect(Processes.using(device.folder).map(Int64.init) == Array(Set(processes)))
            // It is nobody's child and holds nothing of the client that started it.
            let process = Int32(try #require(processes.first))
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/cwd") == "/")
            let environment = Files.read("/proc/\(process)/environ").map { String(decoding: $0, as: UTF8.self) } ?? ""
            #expect(!environment.contains("BACKGROUNDASSETS_SERVICE"))
        }
    }

    @Test("A service takes the socket that its service manager hands over")
    func socketActivation() async throws {
        try await TestDevice.run(starting: false) { device in
            let listener = try UnixSocket.listen(at: device.location.socketPath)
            // The client is there first, as with a real service manager.
            let client = SharedDescriptor(try UnixSocket.connect(to: device.location.socketPath))
            // LISTEN_PID is the service's own: a shell puts it there and becomes the service.
            let program = try Program(
                "/bin/sh", ["-c", #"LISTEN_PID=$$ exec "$0" --device "$1""#, Products.service, device.root],
                environment: device.environment.merging(["LISTEN_FDS": "1"]) { $1 },
                inherited: [listener.rawValue])
            let reply = try await blocking {
                let stream = FrameStream(client, frameMax: WireLimit.messageMax)
                try stream.send(try WireCodec.call(DeviceInterface.Describe.self, Nothing()))
                guard let frame = try stream.receive() else { throw HarnessError("no answer") }
                return try WireCodec.decodeReply(DeviceInterface.Describe.self, frame)
            }
            #expect(reply.process == Int64(program.process))
            #expect(reply.root == device.root)
            try program.send(signal: SIGTERM)
            #expect(try await program.end() == .exited(0))
            // The socket is the service manager's: it is still there for the next one.
            #expect(Files.exists(device.location.socketPath))
            _ = try UnixSocket.connect(to: device.location.socketPath)
            _ = consume listener
        }
    }

    @Test("The service manager hears that the service is ready and that it stops")
    func notification() async throws {
        try await TestDevice.run(starting: false) { device in
            let path = device.folder + "/notify"
            let listener = try NotificationListener(path: path)
            let program = try Program(
                Products.service, ["--device", device.root],
                environment: device.environment.merging(["NOTIFY_SOCKET": path]) { $1 })
            let socket = listener.descriptor.rawValue
            try await readable(socket)
            #expect(try listener.receive() == [.ready])
            try program.send(signal: SIGTERM)
            try await readable(socket)
            #expect(try listener.receive() == [.stopping])
            #expect(try await program.end() == .exited(0))
        }
    }

    private func readable(_ descriptor: Int32) async throws {
        try await blocking {
            var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&watched, 1, 60_000) == 1 else { throw HarnessError("no notification") }
        }
    }

    @Test(
        "SIGTERM ends the service cleanly: its extension is gone, the database is in one file, status 0")
    func termination() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("a.pack", size: 1000, essential: true)
            let bundle = FixtureBundle(
                manifestURL: try server.put("manifest.json", FixturePlan(downloads: [item]).encoded()))
            #expect(try await device.install(try bundle.write(to: device.folder)).exit == .exited(0))
            try await device.told(1)
            let service = try await device.process()
            // The extension stays for a moment in case there is more to tell.
            let children = Processes.children(of: service)
            #expect(children.map { Processes.executable(of: $0) }.allSatisfy { $0.hasSuffix("/FixtureExtension") })
            #expect(children.count == 1)
            #expect(try await device.terminate() == .exited(0))
            for child in children { #expect(Processes.state(of: child) == nil) }
            let log = device.root + "/device.sqlite-wal"
            #expect((Files.read(log)?.count ?? 0) == 0)
            // The next one has everything, and says when the last one ended.
            try await device.start(developerMode: false)
            #expect(try await device.apps().map(\.launchable) == [true])
            #expect(try await device.wholeJournal().contains { $0.event == "service-stopped" })
            await server.stop()
        }
    }

    @Test("Each signal that asks for the end gets it", arguments: [SIGTERM, SIGINT, SIGHUP])
    func signals(signal: Int32) async throws {
        try await TestDevice.run { device in
            let program = try #require(device.program)
            try program.send(signal: signal)
            #expect(try await program.end() == .exited(0))
        }
    }

    @Test("An app that runs during the end of its service is served by the next one")
    func restart() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let manifest = try server.put("manifest.json", FixturePlan().encoded())
            let bundle = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            #expect(try await device.install(bundle).exit == .exited(0))
            let app = try device.launch()
            #expect(try await app.perform("list").downloads == [])
            try await device.terminate()
            #expect(try await app.perform("list").downloads == [])
            try await app.end()
            await server.stop()
        }
    }

    @Test("A service that nobody needs any more ends after a while, but not while a client is connected")
    func idleExit() async throws {
        // So long that also on a busy machine the client is there before.
        let patience = Duration.seconds(2)
        try await TestDevice.run(starting: false) { device in
            // This client follows the journal.
            let program = try await device.start(options: ["--idle-exit", "2"])
            // Time in which a service that forgot its client would have gone; nothing is waited for.
            try await blocking { _ = poll(nil, 0, Int32(patience / .milliseconds(1)) * 2) }
            #expect(program.exit == nil)
            let left = MonotonicClock.now
            try await device.unfollow()
            let result = try await program.result()
            #expect(MonotonicClock.now - left >= patience)
            #expect(result.exit == .exited(0) && result.errors == [])
            #expect(!Files.exists(device.location.socketPath))
            #expect((Files.read(device.root + "/device.sqlite-wal")?.count ?? 0) == 0)
            // The next client has the next service.
            #expect(try await device.process() != program.process)
        }
    }

    @Test("A client that comes in the moment in which the service leaves is served all the same")
    func arrivalAtTheEnd() async throws {
        try await TestDevice.run(starting: false) { device in
            let script = device.folder + "/leaves-early"
            try Files.write(
                script, Data("#!/bin/sh\nexec '\(Products.service)' --idle-exit 0.002 \"$@\"\n".utf8))
            #expect(chmod(script, 0o700) == 0)
            let environment = device.environment.merging(["BACKGROUNDASSETS_SERVICE": script]) { $1 }
            let location = device.location
            let processes = try await withThrowingTaskGroup(of: [Int64].self) { group in
                for number in 0..<2 {
                    group.addTask {
                        try await blocking {
                            var processes: [Int64] = []
                            for round in 0..<40 {
                                let connection = try ServiceStarter.connect(
                                    to: location, startIfNeeded: true, environment: environment)
                                processes.append(try connection.call(DeviceInterface.Describe.self, Nothing()).process)
                                connection.close()
                                // Around the time after which the service leaves, always a little different.
                                _ = poll(nil, 0, Int32((round * 7 + number * 3) % 13))
                            }
                            return processes
                        }
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(processes.count == 80)
            // Else nobody has met a service that left.
            #expect(Set(processes).count > 5)
        }
    }

    @Test("A service whose device is removed or moved away ends", arguments: [true, false])
    func deviceGone(isMoved: Bool) async throws {
        try await TestDevice.run { device in
            let program = try #require(device.program)
            if isMoved {
                #expect(rename(device.root, device.root + ".old") == 0)
            } else {
                try FileManager.default.removeItem(atPath: device.root)
            }
            let result = try await program.result()
            #expect(result.exit == .exited(0) && result.errors.count == 1)
            #expect(result.errors.first?.contains("\(device.root) was removed or moved away") == true)
        }
    }

    @Test("Where the product is installed, in bin and lib, extensions in their sandbox are repaired")
    func installed() async throws {
        try await TestDevice.run(starting: false) { device in
            let (bin, lib) = (device.folder + "/prefix/bin", device.folder + "/prefix/lib/backgroundassets")
            for folder in [bin, lib] { try Files.makeFolder(folder) }
            for (name, folder) in [
                ("backgroundassetsd", bin), ("extension-launcher", bin), ("libFoundationRepair.so", lib),
            ] {
                try FileManager.default.copyItem(atPath: Products.folder + "/" + name, toPath: folder + "/" + name)
            }
            let environment = device.environment.merging([
                "BACKGROUNDASSETS_SERVICE": bin + "/backgroundassetsd",
                "BACKGROUNDASSETS_LAUNCHER": bin + "/extension-launcher",
            ]) { $1 }
            func tool(_ arguments: String...) async throws -> ProgramResult {
                try await Program.run(Products.tool, ["--json"] + arguments, environment: environment)
            }
            #expect(try await tool("settings", "developer-mode", "on").exit == .exited(0))
            let server = try await device.server()
            let item = try server.item("base.pack", size: 1000, essential: true)
            let manifest = try server.put("manifest.json", FixturePlan(downloads: [item]).encoded())
            let bundle = FixtureBundle(manifestURL: manifest)
            let result = try await tool("install", try bundle.write(to: device.folder))
            #expect(result.exit == .exited(0), "\(result.errors)")
            let rows = try await tool("journal").values(JournalEntry.self)
            #expect(rows.contains { $0.event == "extension-answered" })
            let complaints = rows.filter { $0.detail.contains("preload") || $0.detail.contains("not repaired") }
            #expect(complaints.map(\.detail) == [])
            let reply = try #require(try await tool("settings").values(DeviceInterface.Describe.Reply.self).first)
            kill(Int32(reply.process), SIGTERM)
            try await Processes.gone(Int32(reply.process))
            await server.stop()
        }
    }

    @Test("The user's own device is started on demand in the user's folders, but not for root")
    func ownDevice() async throws {
        try await TestDevice.run(starting: false) { device in
            var environment = device.environment
            environment["BACKGROUNDASSETS_DEVICE"] = nil
            environment["XDG_DATA_HOME"] = device.folder + "/own/data"
            environment["XDG_RUNTIME_DIR"] = device.folder + "/own"
            if geteuid() == 0 {
                let result = try await Program.run(
                    Products.service, [], environment: environment, folder: device.folder)
                #expect(result.exit == .exited(1))
                #expect(result.errors.last?.contains("not served for root; run as an ordinary user") == true)
                #expect(!Files.exists(device.folder + "/own/data"))
            } else {
                // In the data folder, with the socket in the runtime folder.
                let result = try await Program.run(Products.tool, ["--json", "settings"], environment: environment)
                let reply = try #require(try result.values(DeviceInterface.Describe.Reply.self).first)
                #expect(reply.root == device.folder + "/own/data/backgroundassets")
                #expect(Files.exists(device.folder + "/own/backgroundassets/service.socket"))
                // Named by its folder it is the same device.
                let again = try await Program.run(
                    Products.tool, ["--json", "--device", reply.root, "settings"], environment: environment)
                #expect(try again.values(DeviceInterface.Describe.Reply.self).first == reply)
                kill(Int32(reply.process), SIGTERM)
                try await Processes.gone(Int32(reply.process))
            }
        }
    }
}
