// The production service: real parts joined, one process for one device.
internal import AssetsInstaller
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer
internal import AssetsWire
internal import Glibc

/// What `backgroundassetsd` was told on its command line.
package struct ServiceOptions: Hashable, Sendable {
    /// A device's folder; nil means the user's own device.
    package var device: String?
    /// How long the service stays when nobody needs it.
    package var idleExit = PolicyNumbers.idleExit

    package init(device: String? = nil) { self.device = device }

    /// Seconds as they stand on the command line; nil when the text is no time from zero to a year.
    package static func idleExit(_ text: String) -> Duration? {
        guard let seconds = Double(text), seconds >= 0, seconds <= 366 * 86_400 else { return nil }
        return .seconds(seconds)
    }
}

/// Runs the service until it is asked to stop or nobody needs it.
package enum ServiceMain {
    package static let version = ProductVersion.current

    /// Exit statuses of the service.
    package enum Status: Int32 {
        case done = 0
        case failed = 1
    }

    /// Serves on the calling thread. Returns the exit status.
    package static func run(_ options: ServiceOptions) -> Status {
        SignalSource.block([SIGTERM, SIGINT, SIGHUP])
        signal(SIGPIPE, SIG_IGN)
        let environment = ProcessEnvironment.current
        do throws(AssetsError) {
            let location = try prepare(options, environment)
            let lock = try lock(location, environment)
            let running = try RunningService(
                location: location, idleExit: options.idleExit, environment: environment)
            let status = running.run()
            _ = consume lock
            return status
        } catch {
            report(error, environment)
            return .failed
        }
    }

    /// Tells why the service cannot serve: whoever watches, and whoever waits for it to be ready.
    static func report(_ error: AssetsError, _ environment: [String: String]) {
        complain(error.description)
        try? ServiceNotification(environment: environment)?.send(.status(error.description))
    }

    /// Finds and makes the device's folder.
    private static func prepare(
        _ options: ServiceOptions, _ environment: [String: String]
    ) throws(AssetsError) -> DeviceLocation {
        let isRoot = geteuid() == 0
        guard !isRoot || options.device != nil else {
            throw AssetsError(
                .deviceUnusable, "the user's device is not served for root", remedy: "run as an ordinary user")
        }
        if isRoot {
            complain("running as root: extensions and apps are not kept from anything this device's folder allows")
        }
        guard let location = DeviceLocation(device: options.device, environment: environment, currentFolder: folder())
        else {
            throw AssetsError(
                .deviceUnusable, "no device folder: neither HOME nor XDG_DATA_HOME is set",
                remedy: "name one with --device")
        }
        var made = ""
        for part in location.root.split(separator: "/") {
            made += "/" + part
            guard mkdir(made, 0o700) == -1, errno != EEXIST else { continue }
            throw AssetsError(
                .deviceUnusable, "\(made): \(String(cString: strerror(errno)))", remedy: "name another with --device")
        }
        return location
    }

    private static func folder() -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard let path = getcwd(&buffer, buffer.count) else { return "/" }
        return String(cString: path)
    }

    private static func lock(
        _ location: DeviceLocation, _ environment: [String: String]
    ) throws(AssetsError) -> LockFile {
        do throws(LockFailure) { return try LockFile(path: location.lockPath) } catch {
            switch error {
            case .held(let process):
                try? ServiceNotification(environment: environment)?.send(.anotherServes)
                throw AssetsError(
                    .busy,
                    "the device \(location.root) is already served" + (process.map { " by process \($0)" } ?? ""),
                    remedy: "connect to that service, or end it first")
            case .failed(let failure):
                throw AssetsError(
                    .deviceUnusable, "\(location.lockPath): \(failure)", remedy: "check the folder's permissions")
            }
        }
    }

    static func complain(_ text: String) {
        let line = Array("backgroundassetsd: \(text)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }
}
