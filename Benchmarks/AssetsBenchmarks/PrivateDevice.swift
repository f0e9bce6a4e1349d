// A device of the run's own: its folder and its service.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc

/// A device in Developer Mode that trusts its own development authority.
final class PrivateDevice {
    private static let startLimit = Duration.seconds(10)

    let root: String
    let authority: DevelopmentCertificateAuthority
    private let log: String
    private var service: Program?

    init(folder: String) throws {
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
        let program = try Program(Program.ours("backgroundassetsd"), ["--device", root], log: log)
        service = program
        let deadline = Deadline(in: Self.startLimit)
        while program.isRunning, !deadline.hasPassed {
            if let connection = try? connect() {
                connection.close()
                return
            }
            usleep(2_000)
        }
        throw BenchError("the service does not start: \(program.lastWords)")
    }

    func connect() throws -> ServiceConnection {
        try ServiceStarter.connect(to: DeviceLocation(root: root, socketPath: root + "/service.socket"), startIfNeeded: false)
    }

    /// The service's process.
    func process() throws -> Int32 {
        guard let service, service.isRunning else { throw BenchError("the service has ended: \(service?.lastWords ?? "")") }
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

    func uninstall(_ app: String) throws {
        let connection = try connect()
        defer { connection.close() }
        _ = try connection.call(DeviceInterface.Uninstall.self, .init(app: app))
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
