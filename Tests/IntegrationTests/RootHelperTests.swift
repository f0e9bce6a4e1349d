// The root helper itself: what it makes is what tests take it for, and goes with them.
import AssetsOS
import Foundation
import Glibc
import RootHelperClient
import Testing

@Suite struct RootHelperTests {
    private static let size: Int64 = 24 << 20

    @Test("Tests run as an ordinary user, also when root starts them")
    func ordinaryUser() {
        #expect(geteuid() != 0 && getuid() != 0)
        // What an owner may not write, root may.
        #expect(access("/proc/sys/kernel/hostname", W_OK) == -1)
    }

    @Test(
        "After a power cut what was synced is there, and what was not is gone", .needs(.fileSystems),
        arguments: [FileSystemOptions.Kind.ext4, .ext4WithoutJournal], [false, true])
    func powerCut(kind: FileSystemOptions.Kind, hasWriteCache: Bool) async throws {
        try await blocking {
            let files = try HelperFileSystem(.init(kind, bytes: Self.size, hasWriteCache: hasWriteCache))
            let content = randomBytes(100_000, seed: 1)
            try Self.write(content, to: files.path + "/synced", syncs: true)
            try Self.untilSeen {
                try Self.write(content, to: files.path + "/lost", syncs: false)
                try files.cutPower()
                #expect(open(files.path + "/synced", O_RDONLY | O_CLOEXEC) == -1 && errno == EIO)
                try files.mountAgain()
                #expect(Files.read(files.path + "/synced") == content)
                return Files.read(files.path + "/lost") != content
            }
            // It goes on as any file system does.
            try Self.write(content, to: files.path + "/again", syncs: true)
            try files.cutPower()
            try files.mountAgain()
            #expect(Files.read(files.path + "/again") == content)
            files.remove()
            #expect(!Files.exists(files.path))
        }
    }

    @Test(
        "A disk with a write cache forgets what went past the page cache without a flush, all of it or some",
        .needs(.fileSystems), arguments: [UInt64?.none, 7])
    func writeCache(seed: UInt64?) async throws {
        try await blocking {
            let files = try HelperFileSystem(.init(bytes: Self.size, hasWriteCache: true))
            let path = files.path + "/direct"
            let blocks = 64
            try Self.untilSeen {
                // The places are the file's already, so that a write changes nothing else.
                try Self.write(Data(count: blocks << 16), to: path, syncs: true)
                try Self.writeDirectly(randomBytes(blocks << 16, seed: 3), to: path)
                try files.cutPower(seed: seed)
                try files.mountAgain()
                let left = try #require(Files.read(path))
                let written = (0..<blocks).count { left[$0 << 16..<($0 + 1) << 16].contains { $0 != 0 } }
                return seed == nil ? written == 0 : written > 0 && written < blocks
            }
        }
    }

    @Test("A small file system fills up", .needs(.fileSystems), arguments: [FileSystemOptions.Kind.ext4, .tmpfs])
    func full(kind: FileSystemOptions.Kind) async throws {
        try await blocking {
            let files = try HelperFileSystem(.init(kind, bytes: Self.size))
            #expect(throws: SystemCallError(call: "write", number: ENOSPC)) {
                try Self.write(Data(count: Int(Self.size) + 1), to: files.path + "/big", syncs: false)
            }
        }
    }

    @Test("What a connection has goes with it", .needs(.fileSystems))
    func removal() async throws {
        try await blocking {
            var files: HelperFileSystem? = try HelperFileSystem(.init(bytes: Self.size, hasWriteCache: true))
            let path = try #require(files).path
            #expect(
                Self.mounts().contains { $0.hasSuffix(path) } && Self.mounts().contains { $0.hasSuffix(path + ".disk") }
            )
            files = nil
            // The helper answers one after the other.
            _ = HelperConnection.whyMissing(.fileSystems)
            #expect(!Self.mounts().contains { $0.contains(path) })
        }
    }

    @Test("Whoever is not the tests' user is not served, and senseless requests are refused", .needs(.fileSystems))
    func refusals() async throws {
        let path = try #require(HelperConnection.path)
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_uid == getuid() && status.st_mode & 0o077 == 0)
        try await blocking {
            let connection = try HelperConnection()
            #expect(throws: HelperError.self) { try connection.call(.cutPower(seed: nil)) }
            #expect(throws: HelperError.self) { try connection.call(.makeFileSystem(.init(bytes: 0))) }
            #expect(throws: HelperError.self) { try connection.call(.makeFileSystem(.init(bytes: .max))) }
            #expect(throws: HelperError.self) {
                try connection.call(.run(network: 999, .device, path: "/bin/true", arguments: [], environment: [:]))
            }
        }
    }

    // MARK: Networks

    @Test(
        "A program on the device's side reaches a server of the other side, until the cable is pulled",
        .needs(.networks))
    func network() async throws {
        let network = try HelperNetwork()
        let (socket, port) = try network.listen(on: .world)
        func connects() async throws -> Bool {
            let (path, arguments) = network.command(
                on: .device, "/usr/bin/env",
                ["bash", "-c", "exec 3<> /dev/tcp/\(NetworkSide.world.address)/\(port)"], products: Products.folder)
            return try await Program.run(path, arguments).exit.isSuccess
        }
        #expect(try await connects())
        try network.change(.address(isThere: false))
        #expect(try await !connects())
        try network.change(.address(isThere: true))
        #expect(try await connects())
        try network.change(.link(isUp: false))
        #expect(try await !connects())
        try network.change(.link(isUp: true))
        #expect(try await connects())
        _ = socket
    }

    @Test("The device's side has a default route, that can be taken away", .needs(.networks))
    func route() async throws {
        let network = try HelperNetwork()
        func routes() async throws -> [String] {
            let (path, arguments) = network.command(
                on: .device, "/usr/bin/env", ["ip", "route", "show", "default"], products: Products.folder)
            return try await Program.run(path, arguments).output
        }
        #expect(try await routes().first?.hasPrefix("default via 10.77.0.1 dev eth0") == true)
        try network.change(.defaultRoute(isThere: false))
        #expect(try await routes() == [])
    }

    @Test("A rate holds for what comes to the device", .needs(.networks), .plainOnly("a rate is a figure"))
    func rate() async throws {
        let network = try HelperNetwork()
        try network.change(.rate(bytesPerSecond: 1_000_000))
        let (socket, port) = try network.listen(on: .world)
        onThread {
            let accepted = accept(socket.rawValue, nil, nil)
            let bytes = [UInt8](repeating: 1, count: 1_000_000)
            _ = Glibc.write(accepted, bytes, bytes.count)
            close(accepted)
        }
        let (path, arguments) = network.command(
            on: .device, "/usr/bin/env",
            ["bash", "-c", "exec 3<> /dev/tcp/\(NetworkSide.world.address)/\(port); wc -c <&3"],
            products: Products.folder)
        let start = MonotonicClock.now
        #expect(try await Program.run(path, arguments).output == ["1000000"])
        let time = MonotonicClock.now - start
        #expect(time > .milliseconds(800))
        try network.change(.rate(bytesPerSecond: nil))
    }

    @Test(
        "A program on a side has the tests' user, folder, environment and descriptors, and tells its end",
        .needs(.networks))
    func entering() async throws {
        let network = try HelperNetwork()
        let folder = try TestFolder()
        defer { folder.remove() }
        func run(_ script: String) throws -> Program {
            let (path, arguments) = network.command(
                on: .world, "/usr/bin/env", ["bash", "-c", script], products: Products.folder)
            return try Program(
                path, arguments, environment: ProcessEnvironment.current.merging(["WORD": "hello"]) { $1 },
                folder: folder.path)
        }
        let program = try run("echo $WORD $(id -u) $(id -G) $PWD; cat; echo complaint >&2; exit 3")
        program.write("line")
        program.closeInput()
        let result = try await program.result()
        #expect(result.output == ["hello \(getuid()) \(getgid()) \(folder.path)", "line"])
        #expect(result.errors == ["complaint"])
        #expect(result.exit == .exited(3))

        let patient = try run("trap 'echo told; exit 0' TERM; echo ready; read; read")
        _ = try await patient.output.first("ready") { $0 == "ready" }
        try patient.send(signal: SIGTERM)
        #expect(try await patient.result().output == ["ready", "told"])
        #expect(try await run("kill -SEGV $$").result().exit == .killed(signal: SIGSEGV))
    }

    @Test("What runs on the device's side asks a name server that the test has, and that one only", .needs(.networks))
    func names() async throws {
        let network = try HelperNetwork()
        func command(_ side: NetworkSide, _ words: String...) -> (path: String, arguments: [String]) {
            network.command(on: side, "/usr/bin/env", words, products: Products.folder)
        }
        func servers(_ side: NetworkSide) async throws -> [String] {
            let (path, arguments) = command(side, "cat", "/etc/resolv.conf")
            return try await Program.run(path, arguments).output
        }
        let machine = try await servers(.world)
        let before = try await servers(.device)
        #expect(before == machine)
        let socket = try network.takeNameQuestions()
        #expect(try await servers(.device) == ["nameserver \(NetworkSide.world.address)"])
        #expect(try await servers(.world) == machine)
        let (path, arguments) = command(.device, "getent", "ahosts", "dead.example.org")
        let program = try Program(path, arguments, environment: ProcessEnvironment.current)
        #expect(await NameQuestions.next(at: socket) == "dead")
        try program.send(signal: SIGTERM)
        #expect(try await program.end() == .killed(signal: SIGTERM))
    }

    @Test(
        "Whoever kills the program that stands for another kills that one, and so does the end of the network",
        .needs(.networks))
    func endings() async throws {
        var network: HelperNetwork? = try HelperNetwork()
        func start() async throws -> (Program, Int32) {
            let (path, arguments) = try #require(network).command(
                on: .device, "/usr/bin/env", ["bash", "-c", "echo $$; read; read"], products: Products.folder)
            let program = try Program(path, arguments, environment: ProcessEnvironment.current)
            let line = try await program.output.first("process") { _ in true }
            return (program, try #require(Int32(line)))
        }
        let (killed, process) = try await start()
        try killed.send(signal: SIGKILL)
        try await Processes.gone(process)
        let (left, second) = try await start()
        network = nil
        try await Processes.gone(second)
        #expect(try await left.end() == .killed(signal: SIGKILL))
    }

    // MARK: Files

    private static func write(_ data: Data, to path: String, syncs: Bool) throws {
        let file = Descriptor(
            owning: try check("open") { open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600) })
        let raw = file.rawValue
        var done = 0
        while done < data.count {
            done += try check("write") {
                data.withUnsafeBytes { Glibc.write(raw, $0.baseAddress?.advanced(by: done), $0.count - done) }
            }
        }
        guard syncs else { return }
        try check("fsync") { fsync(raw) }
        let folder = try Descriptor.directory((path as NSString).deletingLastPathComponent)
        let rawFolder = folder.rawValue
        try check("fsync") { fsync(rawFolder) }
    }

    /// Past the page cache, and without a flush.
    private static func writeDirectly(_ data: Data, to path: String) throws {
        let file = Descriptor(owning: try check("open") { open(path, O_WRONLY | O_CLOEXEC | __O_DIRECT) })
        let raw = file.rawValue
        // Aligned as such writes have to be.
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: data.count, alignment: 4096)
        defer { memory.deallocate() }
        data.copyBytes(to: memory)
        #expect(try check("write") { Glibc.write(raw, memory.baseAddress, memory.count) } == data.count)
    }

    /// Somebody else's `sync` may come between a write and the power cut, but not always.
    private static func untilSeen(_ body: () throws -> Bool) throws {
        for _ in 1...10 where try body() { return }
        Issue.record("nothing was ever lost")
    }

    private static func mounts() -> [String] {
        let text = Files.read("/proc/self/mounts").map { String(decoding: $0, as: UTF8.self) } ?? ""
        return text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            return fields.count > 1 ? String(fields[1]) : nil
        }
    }
}
