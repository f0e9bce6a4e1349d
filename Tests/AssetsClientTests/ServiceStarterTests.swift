import Glibc
import Testing

@testable import AssetsClient
@testable import AssetsOS
@testable import AssetsWire

@Suite(.timeLimit(.minutes(10))) struct ServiceStarterTests {
    /// Stands for the service's executable: locks, listens, says that it is ready, answers Describe, ends with its
    /// first client. A program of its own, because starting one is what is tested.
    private static let program = """
        #!/usr/bin/env python3
        import fcntl, json, os, socket, sys
        root = sys.argv[sys.argv.index("--device") + 1]
        def notify(text):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            s.sendto(text.encode(), os.environ["NOTIFY_SOCKET"])
        mode = open(root + "/mode").read()
        if mode == "broken":
            notify("STATUS=the disk is on fire")
            sys.exit(1)
        lock = open(root + "/service.lock", "a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            notify("X_ANOTHER_SERVES=1")
            sys.exit(0)
        with open(root + "/starts", "a") as starts:
            starts.write(" ".join(sorted(os.environ)) + "\\n")
        s = socket.socket(socket.AF_UNIX)
        s.bind(root + "/service.socket")
        s.listen(50)
        notify("READY=1")
        assert sys.stdin.read() == ""
        for _ in range(int(mode)):
            c, _ = s.accept()
            if not c.recv(10000): continue
            reply = {"device": os.getcwd(), "root": root, "version": "1", "process": os.getppid(), "developer_mode": False,
                "settings": []}
            c.sendall(json.dumps({"parameters": reply}).encode() + b"\\0")
        """

    /// A device folder and the program; `clients` is how many it serves before it ends.
    private func withProgram(
        mode: String, _ body: (DeviceLocation, [String: String]) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let program = folder + "/backgroundassetsd"
            try write(Self.program, to: program, mode: 0o700)
            try write(mode, to: folder + "/mode", mode: 0o600)
            try await body(
                DeviceLocation(root: folder, socketPath: folder + "/service.socket"),
                [
                    "BACKGROUNDASSETS_SERVICE": program, "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder,
                    "LD_PRELOAD": "", "SECRET": "1", "XDG_DATA_HOME": folder,
                ])
        }
    }

    private func write(_ text: String, to path: String, mode: UInt32) throws {
        let file = Descriptor(owning: try check("open") { open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode) })
        let bytes = Array(text.utf8)
        let raw = file.rawValue
        try check("write") { Glibc.write(raw, bytes, bytes.count) }
    }

    @Test("Where nobody listens and nothing may be started, the error says how to start it")
    func notStarted() async throws {
        try await withTemporaryFolder { folder in
            let location = DeviceLocation(root: folder, socketPath: folder + "/service.socket")
            let error = #expect(throws: ClientError.self) {
                _ = try ServiceStarter.connect(to: location, startIfNeeded: false, environment: [:])
            }
            #expect(error?.description.contains("backgroundassetsd --device \(folder)") == true)
        }
    }

    @Test("A running service is used as it is")
    func running() async throws {
        try await withTemporaryFolder { folder in
            try await withService { service in
                let location = DeviceLocation(root: folder, socketPath: folder + "/service.socket")
                try await service.listen(at: location.socketPath)
                let reply = try await onThread {
                    // The environment names no program that could be started.
                    let environment = ["BACKGROUNDASSETS_SERVICE": "/nowhere"]
                    let connection = try ServiceStarter.connect(
                        to: location, startIfNeeded: true, environment: environment)
                    return try connection.call(DeviceInterface.Describe.self, Nothing())
                }
                #expect(reply.process == Int64(getpid()))
            }
        }
    }

    @Test("A service is started with a clean environment, detached, and is ready when the call is made")
    func starts() async throws {
        try await withProgram(mode: "1") { location, environment in
            let reply = try await onThread {
                let connection = try ServiceStarter.connect(
                    to: location, startIfNeeded: true, environment: environment)
                return try connection.call(DeviceInterface.Describe.self, Nothing())
            }
            #expect(reply.root == location.root)
            #expect(reply.device == "/")
            #expect(reply.process != Int64(getpid()))
            let starts = try text(of: location.root + "/starts").split(separator: " ").map {
                $0.filter { !$0.isNewline }
            }
            #expect(Set(starts).isSuperset(of: ["HOME", "PATH", "XDG_DATA_HOME", "NOTIFY_SOCKET"]))
            #expect(Set(starts).isDisjoint(with: ["SECRET", "LD_PRELOAD", "BACKGROUNDASSETS_SERVICE"]))
            // The socket on which it said that it was ready is gone.
            #expect(access(location.root, F_OK) == 0)
            #expect(
                try names(in: location.root) == [
                    "backgroundassetsd", "mode", "service.lock", "service.socket", "starts",
                ])
        }
    }

    @Test("Of many starters one wins, and all are connected to its service")
    func race() async throws {
        try await withProgram(mode: "6") { location, environment in
            try await withThrowingTaskGroup { group in
                for _ in 0..<6 {
                    group.addTask {
                        let reply = try await onThread {
                            let connection = try ServiceStarter.connect(
                                to: location, startIfNeeded: true, environment: environment)
                            return try connection.call(DeviceInterface.Describe.self, Nothing())
                        }
                        #expect(reply.root == location.root)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try text(of: location.root + "/starts").split(separator: "\n").count == 1)
        }
    }

    @Test("A service that cannot start is reported with its last words")
    func broken() async throws {
        try await withProgram(mode: "broken") { location, environment in
            let error = await #expect(throws: ClientError.self) {
                try await onThread {
                    _ = try ServiceStarter.connect(to: location, startIfNeeded: true, environment: environment)
                }
            }
            #expect(error?.description.contains("the disk is on fire") == true)
        }
    }

    @Test("The program is the named one, else the one beside our own, else the first in PATH")
    func find() async throws {
        try await withTemporaryFolder { folder in
            for name in ["named", "own", "path", "other"] {
                mkdir("\(folder)/\(name)", 0o700)
                try write("", to: "\(folder)/\(name)/backgroundassetsd", mode: 0o700)
            }
            try write("", to: folder + "/plain", mode: 0o600)
            let path = ["PATH": "relative:\(folder)/missing:\(folder)/path:\(folder)/other"]
            let named = path.merging(["BACKGROUNDASSETS_SERVICE": folder + "/named/backgroundassetsd"]) { $1 }
            #expect(try ServiceProgram.find(in: named, beside: folder + "/own") == folder + "/named/backgroundassetsd")
            #expect(try ServiceProgram.find(in: path, beside: folder + "/own") == folder + "/own/backgroundassetsd")
            #expect(try ServiceProgram.find(in: path, beside: folder) == folder + "/path/backgroundassetsd")
            // What is named must be a program, and a program must be somewhere.
            for wrong in [
                ["PATH": folder], ["BACKGROUNDASSETS_SERVICE": folder], ["BACKGROUNDASSETS_SERVICE": folder + "/plain"],
            ] {
                let error = #expect(throws: ClientError.self) { try ServiceProgram.find(in: wrong, beside: nil) }
                #expect(error?.description.contains("BACKGROUNDASSETS_SERVICE") == true)
            }
        }
    }

    private func text(of path: String) throws -> String {
        let file = Descriptor(owning: try check("open") { open(path, O_RDONLY | O_CLOEXEC) })
        let raw = file.rawValue
        var bytes = [UInt8](repeating: 0, count: 65536)
        let count = try check("read") { read(raw, &bytes, bytes.count) }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    private func names(in path: String) throws -> [String] {
        let folder = try #require(opendir(path))
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(withUnsafePointer(to: &entry.pointee.d_name.0) { String(cString: $0) })
        }
        return names.filter { !$0.hasPrefix(".") || $0.hasPrefix(".ready") }.sorted()
    }
}
