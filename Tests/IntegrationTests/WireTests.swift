// The wire for other languages: the varlink package of Python against the socket.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Testing

@Suite struct WireTests {
    @Test("Python's varlink package lists the interfaces, and schedules a download and follows it to its end")
    func python() async throws {
        try await TestDevice.run { device in
            let python = device.folder + "/venv/bin/python3"
            guard try await makeEnvironment(device) else {
                let text = "SKIPPED: PyPI cannot be reached, so nothing was shown with Python's varlink package"
                FileHandle.standardError.write(Data("\n*** \(text) ***\n\n".utf8))
                try Test.cancel("\(text)")
            }
            let server = try await device.server()
            let manifest = try server.put("manifest.json", FixturePlan().encoded())
            let app = try FixtureBundle(manifestURL: manifest).write(to: device.folder)
            #expect(try await device.install(app).exit == .exited(0))
            try await server.fault("one.pack:rate=1MB")
            let url = try server.put("one.pack", randomBytes(300_000, seed: 1))

            try Files.write(device.folder + "/client.py", Data(Self.script.utf8))
            let result = try await Program.run(
                python,
                [
                    device.folder + "/client.py", device.location.socketPath, FixtureBundle.identifier,
                    "group." + FixtureBundle.identifier, url,
                ], environment: device.environment)
            #expect(result.exit == .exited(0), "\(result.errors.joined(separator: "\n"))")
            let interfaces = ["org.backgroundassets.Device", "org.backgroundassets.Manager", "org.varlink.service"]
            #expect(result.output.first == interfaces.joined(separator: " "))
            let events = result.output.dropFirst().map { $0.split(separator: " ").map(String.init) }
            #expect(events.first == ["session"])
            #expect(events.last == ["finished", "300000", "True"])
            #expect(events.dropFirst().first?.first == "began")
            let written = events.filter { $0.first == "progress" }.compactMap { Int($0[1]) }
            #expect(written.count > 1 && written.reduce(0, +) == 300_000)
            try await device.row("client-connected") { $0.reason == "declared" }
            try await device.row("message-handled")
            // A stranger without Developer Mode is nobody.
            #expect(try await device.cli("settings", "developer-mode", "off").exit == .exited(0))
            let refused = try await Program.run(
                python,
                [device.folder + "/client.py", device.location.socketPath, FixtureBundle.identifier, "", ""],
                environment: device.environment)
            #expect(refused.exit == .exited(1))
            #expect(refused.errors.last?.contains("55") == true, "\(refused.errors)")
            await server.stop()
        }
    }

    /// A virtual environment with the package; false when it cannot be had from PyPI.
    private func makeEnvironment(_ device: TestDevice) async throws -> Bool {
        let folder = device.folder + "/venv"
        let made = try await Program.run("/usr/bin/env", ["python3", "-m", "venv", folder], within: .seconds(120))
        try #require(made.exit == .exited(0), "\(made.output + made.errors): run scripts/bootstrap")
        let fetched = try await Program.run(
            folder + "/bin/python3", ["-m", "pip", "install", "--quiet", "--retries", "1", "varlink==31.0.0"],
            within: .seconds(120))
        return fetched.exit == .exited(0)
    }

    private static let script = """
        import os, sys, varlink
        address, app, group, url = sys.argv[1:]
        client = varlink.Client.new_with_address("unix:" + address)
        print(" ".join(sorted(client.get_interfaces())))

        def manager():
            manager = client.open("org.backgroundassets.Manager")
            try:
                manager.Declare(app)
            except varlink.VarlinkError as error:
                sys.exit("refused with " + str(error.parameters()["code"]))
            return manager

        calls, listener = manager(), manager()
        unique = "01234567-89AB-4CDE-8F01-23456789ABCD"
        for page in listener.Events(_more=True):
            for event in page["events"]:
                kind = event["kind"]
                if kind == "session":
                    print(kind)
                    session = event["session"]
                    calls.SetDelegate(session, True)
                    calls.StartForeground({
                        "identifier": "one", "unique_identifier": unique, "url": url, "method": "GET", "headers": [],
                        "body": "", "group": group, "essential": False, "size": 300000, "priority": 0, "kind": "url",
                        "state": 0})
                elif kind == "progress":
                    print(kind, event["written"])
                elif kind == "finished":
                    print(kind, os.path.getsize(event["path"]), event["download"]["unique_identifier"] == unique)
                    calls.Answer(session, [event["number"]], [])
                    sys.exit(0)
                else:
                    print(kind)
        """
}
