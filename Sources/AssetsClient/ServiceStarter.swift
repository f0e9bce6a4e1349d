// Reaching the service of a device, and starting it where nobody else does.
package import AssetsOS
internal import Glibc

/// Connects to the service of a device.
package enum ServiceStarter {
    /// Time in which a service has to be ready.
    private static let readyWithin = Duration.seconds(10)
    /// Rest between two tries while another process's service starts, which tells only that one.
    private static let retryAfter: useconds_t = 5_000
    /// Another process's service has to listen within this, or one more is started.
    private static let startAgainAfter = Duration.milliseconds(250)

    /// Connects to the service; starts it first when nobody listens and `startIfNeeded` says so.
    package static func connect(
        to location: DeviceLocation, startIfNeeded: Bool,
        environment: [String: String] = ProcessEnvironment.current
    ) throws(ClientError) -> ServiceConnection {
        if let connection = try tryConnecting(to: location) { return connection }
        guard startIfNeeded else {
            throw .unreachable(
                "no asset service serves \(location.root): nobody listens at \(location.socketPath); "
                    + "start it with: \(ServiceProgram.name) --device \(location.root)")
        }
        let program = try ServiceProgram.find(in: environment)
        let deadline = MonotonicClock.now + readyWithin
        while true {
            switch try start(program, location, environment, until: deadline) {
            case .ready, .anotherServes:
                // Who serves now may be about to leave: it does not listen any more, but still has the device.
                let patience = min(deadline, MonotonicClock.now + startAgainAfter)
                if let connection = try wait(for: location, until: patience) { return connection }
                guard patience == deadline else { continue }
                throw .unreachable("the asset service of \(location.root) does not listen at \(location.socketPath)")
            case .ended(let status):
                // Another starter may have been faster.
                if let connection = try tryConnecting(to: location) { return connection }
                throw .unreachable(
                    "\(program) ended before it served \(location.root)\(status.isEmpty ? "" : ": " + status); "
                        + "run it by hand to see why: \(program) --device \(location.root)")
            case .silent:
                throw .unreachable(
                    "\(program) was not ready to serve \(location.root) within \(readyWithin); "
                        + "look at its processes and disk")
            }
        }
    }

    /// nil when nobody listens.
    private static func tryConnecting(to location: DeviceLocation) throws(ClientError) -> ServiceConnection? {
        do throws(SystemCallError) {
            return ServiceConnection(descriptor: try UnixSocket.connect(to: location.socketPath))
        } catch {
            if error.number == ENOENT || error.number == ECONNREFUSED { return nil }
            throw .unreachable(
                "the asset service at \(location.socketPath) cannot be reached (\(error)); check who owns that path")
        }
    }

    private static func wait(
        for location: DeviceLocation, until deadline: Duration
    ) throws(ClientError) -> ServiceConnection? {
        while true {
            if let connection = try tryConnecting(to: location) { return connection }
            guard MonotonicClock.now < deadline else { return nil }
            usleep(retryAfter)
        }
    }

    // MARK: Starting

    private enum Start {
        case ready
        case anotherServes
        /// With the last words of the service.
        case ended(String)
        case silent
    }

    private static func start(
        _ program: String, _ location: DeviceLocation, _ environment: [String: String], until deadline: Duration
    ) throws(ClientError) -> Start {
        do throws(SystemCallError) {
            let folder = SocketFolder.of(location.socketPath)
            try UnixSocket.makePrivateFolder(folder)
            let path = "\(folder)/.ready-\(SystemRandomSource().uuid())"
            let listener = try NotificationListener(path: path)
            // The program's standard input: it reads nothing there, and we see when it has ended.
            var life = try UnixSocket.pair()
            let ours = life.takeFirst()
            try spawn(program, location, environment, notify: path, input: life.takeSecond())
            return try follow(listener, ours, until: deadline)
        } catch {
            throw .unreachable(
                "\(program) cannot be started (\(error)); check that it is installed and may be run")
        }
    }

    private static func spawn(
        _ program: String, _ location: DeviceLocation, _ environment: [String: String], notify: String,
        input: consuming Descriptor
    ) throws(SystemCallError) {
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        let root = try Descriptor.directory("/")
        var clean = ServiceProgram.cleanEnvironment(environment)
        clean["NOTIFY_SOCKET"] = notify
        try ChildProcess.startDetached(
            ProgramStart(
                path: program, arguments: ["--device", location.root], environment: clean,
                descriptors: [input.rawValue, null.rawValue, null.rawValue], directory: root.rawValue))
    }

    /// Listens until the program is ready, gives up or has ended.
    private static func follow(
        _ listener: borrowing NotificationListener, _ life: borrowing Descriptor, until deadline: Duration
    ) throws(SystemCallError) -> Start {
        var status = ""
        while true {
            var watched = [
                pollfd(fd: listener.descriptor.rawValue, events: Int16(POLLIN), revents: 0),
                pollfd(fd: life.rawValue, events: Int16(POLLIN), revents: 0),
            ]
            let left = max(.zero, deadline - MonotonicClock.now)
            let (seconds, attoseconds) = left.components
            let milliseconds = Int32(seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1)
            try check("poll") { poll(&watched, 2, left > .zero ? milliseconds : 0) }
            while let states = try listener.receive() {
                for state in states {
                    switch state {
                    case .ready: return .ready
                    case .anotherServes: return .anotherServes
                    case .status(let text): status = text
                    case .stopping: break
                    }
                }
            }
            if watched[1].revents != 0 { return .ended(status) }
            if left == .zero { return .silent }
        }
    }
}

/// The folder part of a socket's path.
private enum SocketFolder {
    static func of(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }
}
