import Glibc
import Testing

@testable import AssetsOS

@Suite(.timeLimit(.minutes(10))) struct ProcessTests {
    /// Runs a shell command with a pipe as output; returns what it wrote and how it ended.
    private func shell(
        _ command: String, environment: [String: String] = [:], directory: Int32? = nil, newSession: Bool = false
    ) throws -> (output: String, exit: ChildExit) {
        let (child, output) = try start(command, environment, directory, newSession)
        let text = String(decoding: try readAll(output.rawValue), as: UTF8.self)
        return (text, child.value.wait())
    }

    private final class Box: Sendable {
        let value: ChildProcess
        init(_ value: consuming ChildProcess) { self.value = value }
    }

    private func start(
        _ command: String, _ environment: [String: String] = [:], _ directory: Int32? = nil, _ newSession: Bool = false
    ) throws -> (Box, SharedDescriptor) {
        var pair = try UnixSocket.pair()
        let near = SharedDescriptor(pair.takeFirst())
        let far = pair.takeSecond()
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        let child = try ChildProcess(
            ProgramStart(
                path: "/bin/sh", arguments: ["-c", command], environment: environment,
                descriptors: [null.rawValue, far.rawValue, null.rawValue], directory: directory, newSession: newSession)
        )
        return (Box(child), near)
    }

    @Test("A program gets its arguments, exactly its environment, and its exit code is told")
    func basics() throws {
        let (output, exit) = try shell("/usr/bin/env | sort; exit 7", environment: ["B": "two words", "A": "1"])
        let lines = output.split(separator: "\n").filter {
            !$0.hasPrefix("PWD=") && !$0.hasPrefix("_=") && !$0.hasPrefix("SHLVL=")
        }
        #expect(lines == ["A=1", "B=two words"])
        #expect(exit == .exited(7))
        #expect(!exit.isSuccess)
    }

    @Test("A program inherits the named descriptors and no other")
    func descriptors() throws {
        // An open descriptor without close-on-exec, as a careless library leaves it.
        let leaked = open("/dev/null", O_RDONLY)
        defer { close(leaked) }
        let (output, exit) = try shell("/bin/ls /proc/$$/fd; true")
        #expect(exit.isSuccess)
        #expect(output == "0\n1\n2\n")
    }

    @Test("A program starts in the given folder, in an own group, or in an own session")
    func placement() async throws {
        try await withTemporaryFolder { folder in
            let directory = try Descriptor.directory(folder)
            #expect(
                try shell("pwd -P", directory: directory.rawValue).output.hasSuffix(
                    folder.split(separator: "/").last! + "\n"))
            // Fields of stat: pid, name, state, parent, group, session.
            let group = try shell("cut -d' ' -f1,5,6 /proc/$$/stat").output.split(separator: " ").map {
                Int32($0.filter(\.isNumber))
            }
            #expect(group[0] == group[1])
            #expect(group[2] == getsid(0))
            let session = try shell("cut -d' ' -f1,5,6 /proc/$$/stat", newSession: true).output
                .split(separator: " ").map { Int32($0.filter(\.isNumber)) }
            #expect(session[0] == session[2])
        }
    }

    @Test("What cannot be run throws the reason", arguments: [("/nowhere/program", ENOENT), ("/etc/passwd", EACCES)])
    func cannotRun(path: String, number: Int32) {
        #expect(throws: SystemCallError(call: "execve", number: number)) {
            _ = try ChildProcess(ProgramStart(path: path))
        }
        #expect(throws: SystemCallError(call: "execve", number: number)) {
            try ChildProcess.startDetached(ProgramStart(path: path))
        }
    }

    @Test("The end of a program is told on the loop")
    func whenEnded() async throws {
        try await withLoop { loop in
            let (child, _) = try start("read line")
            let inbox = Inbox<ChildExit>()
            try await loop.perform { try child.value.whenEnded(on: loop) { inbox.put($0) } }
            #expect(try await inbox.next() == .exited(1))

            let (victim, _) = try start("while :; do sleep 60; done")
            try await loop.perform { try victim.value.whenEnded(on: loop) { inbox.put($0) } }
            victim.value.sendToGroup(signal: SIGKILL)
            #expect(try await inbox.next() == .killed(signal: SIGKILL))
            // It was reaped: nobody is left to get a signal.
            try victim.value.send(signal: SIGKILL)
        }
    }

    @Test("A detached program is nobody's child and leaves no zombie")
    func detached() throws {
        var pair = try UnixSocket.pair()
        let near = pair.takeFirst()
        do {
            let far = pair.takeSecond()
            try ChildProcess.startDetached(
                ProgramStart(
                    path: "/bin/sh", arguments: ["-c", "echo $$; read go; cut -d' ' -f4,6 /proc/$$/stat"],
                    descriptors: [far.rawValue, far.rawValue]))
        }
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = try check("read") { read(near.rawValue, &bytes, 100) }
        let process = try #require(Int32(String(decoding: bytes.prefix(count).dropLast(), as: UTF8.self)))
        #expect(waitpid(process, nil, WNOHANG) == -1)
        write(near.rawValue, "\n", 1)
        let fields = String(decoding: try readAll(near.rawValue), as: UTF8.self).split(separator: " ")
        #expect(fields.first != "\(getpid())")
        #expect(fields.last.map { $0.filter(\.isNumber) } != "\(getsid(0))")
    }

    @Test("A second lock of a file is refused and names the holder")
    func lockFile() async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/lock"
            do {
                let lock = try LockFile(path: path)
                let failure = #expect(throws: LockFailure.self) { _ = try LockFile(path: path) }
                #expect(failure == .held(by: getpid()))
                #expect(mode(of: path) == 0o600)
                withExtendedLifetime(lock.isHeld) {}
            }
            _ = try LockFile(path: path)
            #expect(try contents(path) == "\(getpid())\n")
            let failure = #expect(throws: LockFailure.self) { _ = try LockFile(path: folder + "/missing/lock") }
            #expect(failure == .failed(SystemCallError(call: "open", number: ENOENT)))
        }
    }

    @Test("A lock that is let go of is free although a child has its descriptor")
    func lockWithCopy() async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/lock"
            var copy: Descriptor?
            do {
                let lock = try LockFile(path: path)
                copy = try Self.copy(ofDescriptorOf: path)
                withExtendedLifetime(lock.isHeld) {}
            }
            _ = try LockFile(path: path)
            withExtendedLifetime(copy?.rawValue) {}
        }
    }

    /// A descriptor that shares everything with the one that this process has of a file, as one does after a fork.
    private static func copy(ofDescriptorOf path: String) throws -> Descriptor? {
        for number in Int32(0)..<1024 {
            var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
            guard readlink("/proc/self/fd/\(number)", &bytes, bytes.count - 1) > 0 else { continue }
            let name = String(decoding: bytes.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            if name == path { return Descriptor(owning: try check("fcntl") { fcntl(number, F_DUPFD_CLOEXEC, 0) }) }
        }
        return nil
    }

    @Test("The lock of a process that was killed is free")
    func lockOfDead() async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/lock"
            let (holder, output) = try start(
                "exec 9>\(path); flock -n 9 && echo locked; exec sleep 60", ["PATH": "/usr/bin:/bin"])
            var byte: UInt8 = 0
            #expect(read(output.rawValue, &byte, 1) == 1)
            let failure = #expect(throws: LockFailure.self) { _ = try LockFile(path: path) }
            #expect(failure == .held(by: nil))
            try holder.value.send(signal: SIGKILL)
            #expect(holder.value.wait() == .killed(signal: SIGKILL))
            _ = try LockFile(path: path)
        }
    }

    @Test("Signals arrive on the loop")
    func signals() throws {
        let loop = try EventLoop()
        var before = sigset_t()
        pthread_sigmask(SIG_BLOCK, nil, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        SignalSource.block([SIGUSR1, SIGUSR2])
        let seen = Guarded<[Int32]>([])
        let source = Guarded<SignalSource?>(nil)
        _ = loop.schedule(at: .zero) {
            let made = try? SignalSource([SIGUSR1, SIGUSR2], on: loop) { number in
                let count = seen.withLock { seen in
                    seen.append(number)
                    return seen.count
                }
                if count == 2 { loop.stop() }
            }
            source.withLock { $0 = made }
            // To this thread alone, which runs the loop: the others of the test run do not block them.
            pthread_kill(pthread_self(), SIGUSR1)
            pthread_kill(pthread_self(), SIGUSR2)
        }
        loop.run()
        #expect(seen.withLock { $0.sorted() } == [SIGUSR1, SIGUSR2].sorted())
        #expect(source.withLock { $0 != nil })
    }
}
