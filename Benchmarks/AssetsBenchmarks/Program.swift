// Programs that the benches run, and what must not outlive them.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc
internal import RootHelperClient

/// Processes and folders of this run, for the way out.
enum Leftovers {
    private struct State {
        var processes: Set<Int32> = []
        var folders: Set<String> = []
    }

    private static let removalsMax = 100
    private static let state = Guarded(State())

    static func add(process: Int32) { state.withLock { _ = $0.processes.insert(process) } }
    /// It was reaped: its number may soon be another's.
    static func forget(process: Int32) { state.withLock { _ = $0.processes.remove(process) } }
    /// Makes a folder; not while everything is being removed.
    static func addFolder(_ make: () throws -> String) throws -> String {
        try state.withLock { state in
            let folder = try make()
            state.folders.insert(folder)
            return folder
        }
    }

    /// Kills what still runs, then removes what it wrote. A second caller waits for the first: a run that a signal ends
    /// must not be over before its folders are gone.
    static func removeAll() {
        state.withLock { state in
            // The youngest first: a command whose service has gone would start another one.
            for process in state.processes.sorted(by: >) {
                kill(-process, SIGKILL)
                waitpid(process, nil, 0)
            }
            for folder in state.folders.sorted() { remove(folder) }
            state = State()
        }
    }

    /// Whoever measures may write on until it needs us next: then something new is found once or twice.
    private static func remove(_ folder: String) {
        for _ in 1...removalsMax {
            do { return try Folder.remove(folder) } catch { usleep(1_000) }
        }
    }
}

/// A started program that ends with this run at the latest; one process group.
final class Program {
    let name: String
    private let log: String
    private let child: ChildProcess
    private var exit: ChildExit?
    var process: Int32 { child.process }

    /// `log` takes what it prints; `input` is its standard input, else there is none. In a network it runs on the device's
    /// side.
    init(
        _ path: String, _ arguments: [String], log: String, environment: [String: String] = Program.environment,
        input: Int32? = nil, in network: HelperNetwork? = nil
    ) throws {
        name = path.split(separator: "/").last.map(String.init) ?? path
        self.log = log
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        let flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC
        let output = Descriptor(owning: try check("open") { open(log, flags, 0o600) })
        var command = (path: path, arguments: arguments)
        var environment = environment
        if let network {
            command = network.command(on: .device, path, arguments, products: try Self.products())
            environment[HelperPacket.variable] = HelperConnection.path
        }
        child = try ChildProcess(
            ProgramStart(
                path: command.path, arguments: command.arguments, environment: environment,
                descriptors: [input ?? null.rawValue, output.rawValue, output.rawValue]))
        Leftovers.add(process: child.process)
    }

    deinit { if exit == nil { _ = end(SIGKILL) } }

    /// What programs need of our own environment.
    static let environment: [String: String] = {
        let kept: Set<String> = ["HOME", "USER", "LOGNAME", "PATH", "TMPDIR"]
        return ProcessEnvironment.current.filter { kept.contains($0.key) }.merging(["LANG": "C.UTF-8"]) { $1 }
    }()

    /// Runs a program to its end and returns how long it took; one that fails or takes too long is an error.
    static func run(
        _ path: String, _ arguments: [String], log: String, within limit: Duration = .seconds(60)
    ) throws -> Duration {
        let start = MonotonicClock.now
        let program = try Program(path, arguments, log: log)
        let exit = try program.wait(within: limit)
        let time = MonotonicClock.now - start
        guard exit.isSuccess else { throw BenchError("\(program.name) \(exit): \(program.lastWords)") }
        return time
    }

    /// Waits for its end; kills it and throws when that takes longer than `limit`.
    func wait(within limit: Duration) throws -> ChildExit {
        if let exit { return exit }
        var watched = pollfd(fd: child.handle.rawValue, events: Int16(POLLIN), revents: 0)
        let milliseconds = Int32(limit.milliseconds)
        guard try check("poll", { poll(&watched, 1, milliseconds) }) == 1 else {
            _ = end(SIGKILL)
            throw BenchError("\(name) did not end within \(limit): \(lastWords)")
        }
        return reap()
    }

    /// Sends a signal to it and all its children and waits for its end.
    func end(_ signal: Int32) -> ChildExit {
        if let exit { return exit }
        child.sendToGroup(signal: signal)
        return reap()
    }

    /// Sends a signal that does not end it, to it and all its children.
    func send(_ signal: Int32) { child.sendToGroup(signal: signal) }

    var isRunning: Bool {
        var watched = pollfd(fd: child.handle.rawValue, events: Int16(POLLIN), revents: 0)
        return exit == nil && poll(&watched, 1, 0) == 0
    }

    /// The end of what it printed, on one line.
    var lastWords: String {
        let lines = (try? Folder.text(log))?.split(separator: "\n").suffix(4) ?? []
        return lines.joined(separator: " | ")
    }

    private func reap() -> ChildExit {
        let ended = child.wait()
        exit = ended
        Leftovers.forget(process: child.process)
        return ended
    }

    /// The path of a command.
    static func find(_ name: String) throws -> String {
        let path = (environment["PATH"] ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin"
        for folder in path.split(separator: ":") where access("\(folder)/\(name)", X_OK) == 0 {
            return "\(folder)/\(name)"
        }
        throw BenchError("\(name) is not installed; scripts/bootstrap installs it")
    }

    private static func products() throws -> String {
        let folder = ProcessEnvironment.value("BACKGROUNDASSETS_BENCH_PRODUCTS", in: ProcessEnvironment.current)
        return try folder ?? Folder.ofThisProgram()
    }

    /// The path of an executable of this build.
    static func ours(_ name: String) throws -> String {
        let path = "\(try products())/\(name)"
        guard access(path, X_OK) == 0 else { throw BenchError("\(path) is missing; start this with: make bench") }
        return path
    }
}
