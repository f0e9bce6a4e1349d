// The service of the device that loses its power.
internal import AssetsClient
internal import AssetsOS
internal import CLinux
internal import Glibc

/// Executables, and what else a run needs of its surroundings.
package struct PowerCutPrograms: Sendable {
    package var service: String
    package var launcher: String
    /// A folder on a file system that keeps its power.
    package var folder: String

    package init(service: String, launcher: String, folder: String) {
        self.service = service
        self.launcher = launcher
        self.folder = folder
    }
}

/// A service that is killed again and again.
final class CutService {
    private static let startLimit: Int32 = 30_000

    let location: DeviceLocation
    private let programs: PowerCutPrograms
    private var child: ChildProcess?
    private var starts = 0

    init(root: String, programs: PowerCutPrograms) {
        location = DeviceLocation(root: root, socketPath: root + "/service.socket")
        self.programs = programs
    }

    deinit { kill() }

    var isRunning: Bool { child != nil }

    /// The container of a group, below the device's root.
    func container(of group: String) throws -> String {
        let root = location.root
        guard let folder = ContainerFolders(list: { PlainFile.names(in: "\(root)/\($0)") })[.group, group] else {
            throw PowerCutError("\(group) has no container")
        }
        return folder
    }

    private var log: String { programs.folder + "/service.log" }

    /// Starts it; `isReady` waits until it serves.
    func start(untilReady isReady: Bool = true) throws {
        starts += 1
        let path = "\(programs.folder)/notify-\(starts)"
        let listener = try NotificationListener(path: path)
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        let log = self.log
        let output = Descriptor(
            owning: try check("open") { open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600) })
        var environment = ProcessEnvironment.current.filter {
            ["HOME", "PATH", "TMPDIR"].contains($0.key) || $0.key.hasSuffix("SAN_OPTIONS")
        }
        // The app's extension cannot be read any more once the power of its disk is gone, and dies of that.
        for name in environment.keys where name.hasSuffix("SAN_OPTIONS") { environment[name]? += ":handle_sigbus=0" }
        environment["LANG"] = "C.UTF-8"
        environment["NOTIFY_SOCKET"] = path
        environment["BACKGROUNDASSETS_LAUNCHER"] = programs.launcher
        child = try ChildProcess(
            ProgramStart(
                path: programs.service, arguments: ["--device", location.root], environment: environment,
                descriptors: [null.rawValue, output.rawValue, output.rawValue]))
        guard isReady else { return }
        var watched = pollfd(fd: listener.descriptor.rawValue, events: Int16(POLLIN), revents: 0)
        guard try check("poll", { poll(&watched, 1, Self.startLimit) }) == 1,
            try listener.receive()?.contains(.ready) == true
        else { throw PowerCutError("the service does not start; see \(log)") }
    }

    func connect() throws -> ServiceConnection {
        try ServiceStarter.connect(to: location, startIfNeeded: false)
    }

    /// Gives it time to work; an end of its own is not waited beyond.
    func ends(within limit: Duration) throws {
        guard let process = child?.handle.rawValue else { return }
        let timer = Descriptor(
            owning: try check("timerfd_create") { timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC)) })
        let (seconds, attoseconds) = limit.components
        var time = itimerspec()
        // Zero would stop it.
        time.it_value = timespec(tv_sec: Int(seconds), tv_nsec: max(1, Int(attoseconds / 1_000_000_000)))
        try check("timerfd_settime") { timerfd_settime(timer.rawValue, 0, &time, nil) }
        var watched = [process, timer.rawValue].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        _ = try check("poll") { poll(&watched, 2, -1) }
    }

    /// It does nothing from now on, as if the power were gone for it as well.
    func freeze() { if child != nil { try? send(SIGSTOP) } }

    /// Ends it and everything it has started.
    func kill() {
        guard let child = child.take() else { return }
        child.sendToGroup(signal: SIGKILL)
        _ = child.wait()
    }

    /// Ends it as a system does that is shut down.
    func end() {
        guard let child = child.take() else { return }
        try? child.send(signal: SIGTERM)
        _ = child.wait()
    }

    private func send(_ signal: Int32) throws {
        guard let process = child?.process else { return }
        try check("kill") { Glibc.kill(process, signal) }
    }
}

/// Why a run could not go on.
package struct PowerCutError: Error, CustomStringConvertible {
    package var description: String
    package init(_ description: String) { self.description = description }
}
