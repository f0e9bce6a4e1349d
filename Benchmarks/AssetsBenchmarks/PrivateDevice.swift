// A device of the run's own: its folder and its service.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc
internal import RootHelperClient

/// A device in Developer Mode that trusts its own development authority.
final class PrivateDevice {
    private static let startLimit = Duration.seconds(10)

    let root: String
    let authority: DevelopmentCertificateAuthority
    private let log: String
    private let network: HelperNetwork?
    private var service: Program?

    /// In a network its service runs on the device's side.
    init(folder: String, in network: HelperNetwork? = nil) throws {
        self.network = network
        root = folder + "/device"
        log = folder + "/service.log"
        try Folder.make(root)
        authority = try DevelopmentCertificateAuthority(folder: root + "/DevelopmentCA")
        try start()
        let connection = try connect()
        defer { connection.close() }
        _ = try connection.call(DeviceInterface.SetDeveloperMode.self, .init(on: true))
    }

    /// Starts the service and returns once it answers.
    func start() throws {
        let deadline = Deadline(in: Self.startLimit)
        while true {
            let program = try Program(
                Program.ours("backgroundassetsd"), ["--device", root], log: log, in: network)
            service = program
            while program.isRunning, !deadline.hasPassed {
                if let connection = try? connect() {
                    connection.close()
                    return
                }
                usleep(2_000)
            }
            // A child of a service that was killed has the device's lock until it becomes another program.
            guard !program.isRunning, !deadline.hasPassed else {
                throw BenchError("the service does not start: \(program.lastWords)")
            }
        }
    }

    func connect() throws -> ServiceConnection {
        try ServiceStarter.connect(
            to: DeviceLocation(root: root, socketPath: root + "/service.socket"), startIfNeeded: false)
    }

    /// The service's process.
    func process() throws -> Int32 {
        guard let service, service.isRunning else {
            throw BenchError("the service has ended: \(service?.lastWords ?? "")")
        }
        return service.process
    }

    func end(_ signal: Int32) {
        _ = service?.end(signal)
        service = nil
    }

    // MARK: Apps

    /// Installs an app and returns once it can be launched.
    func install(_ source: String) throws {
        let connection = try connect()
        defer { connection.close() }
        var last: DeviceInterface.InstallUpdate?
        try connection.stream(DeviceInterface.Install.self, .init(source: source, sourceKind: "store")) {
            last = $0.update
            return true
        }
        guard last?.phase == "launchable" else {
            throw BenchError("\(source) was not installed: \(last?.detail ?? "no answer")")
        }
    }

    /// The container of an installed app's group.
    func container(of group: String) throws -> String {
        let files = try DeviceTree(root: root)
        let folders = try ContainerFolders { path throws(SystemCallError) in try files.list(path) }
        guard let folder = folders[.group, group] else { throw BenchError("\(group) has no container") }
        return "\(root)/\(folder)"
    }

    func uninstall(_ app: String) throws {
        let connection = try connect()
        defer { connection.close() }
        _ = try connection.call(DeviceInterface.Uninstall.self, .init(app: app))
    }

    /// The end of the journal, on one line.
    func lastRows() throws -> String {
        try journal(after: 0).suffix(12).map { "\($0.event) \($0.reason) \($0.detail)" }.joined(separator: " | ")
    }

    /// Journal rows after `number`.
    func journal(after number: Int64) throws -> [DeviceInterface.JournalEntry] {
        let connection = try connect()
        defer { connection.close() }
        var entries: [DeviceInterface.JournalEntry] = []
        try connection.stream(DeviceInterface.Journal.self, .init(app: "", after: number, follow: false)) {
            entries += $0.entries
            return true
        }
        return entries
    }
}
