// How a verb reaches the service, and how the service's refusals become failures of the tool.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import CommandLineKit
internal import Glibc

/// The device that a command line means.
struct ServiceAccess: Sendable {
    /// The value of `--device`.
    let deviceOption: String?
    let environment: [String: String]

    /// Where the device is.
    func location() throws(Failure) -> DeviceLocation {
        let folder = getcwd(nil, 0)
        defer { free(folder) }
        let current = folder.map { String(cString: $0) } ?? "/"
        guard let location = DeviceLocation(device: deviceOption, environment: environment, currentFolder: current)
        else {
            throw Failure("there is no device: neither HOME nor XDG_DATA_HOME is set", remedy: "name one with --device")
        }
        return location
    }

    /// A connection to the device's service, which is started when it does not run.
    func connect() throws(Failure) -> ServiceConnection {
        let location = try location()
        do throws(ClientError) {
            return try ServiceStarter.connect(to: location, startIfNeeded: true)
        } catch {
            throw Failure(error)
        }
    }

    /// Calls a method on a connection of its own.
    func call<M: WireMethod>(_ method: M.Type, _ parameters: M.Parameters) throws(Failure) -> M.Reply {
        let connection = try connect()
        defer { connection.close() }
        do throws(ClientError) {
            return try connection.call(method, parameters)
        } catch {
            throw Failure(error)
        }
    }

    /// Takes the pages of a stream until it ends or `each` has had enough.
    func stream<M: WireMethod>(
        _ method: M.Type, _ parameters: M.Parameters, _ each: (M.Reply) -> Void
    ) throws(Failure) {
        let connection = try connect()
        defer { connection.close() }
        do {
            try connection.stream(method, parameters) { reply in
                each(reply)
                return true
            }
        } catch {
            throw Failure(error)
        }
    }
}

extension Failure {
    /// What the client library threw.
    init(_ error: any Error) {
        guard let error = error as? ClientError else {
            self.init("\(error)")
            return
        }
        switch error.kind {
        case .refused(let code, let reason, let remedy):
            self.init(code: code, reason, remedy: remedy, status: ErrorTable.status(for: code))
        case .unreachable(let reason):
            self.init(reason, status: ExitStatus.noService)
        case .violation(let reason):
            self.init(
                "the service's answer was not understood: \(reason)", remedy: "tool and service may differ in version")
        }
    }
}
