// How this process reaches the service: an app connects, an extension has inherited its connections.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Foundation

/// Names of environment variables that the service and the tools set.
enum EnvironmentKey {
    /// "1" in the process of an extension.
    static let isExtension = "BACKGROUNDASSETS_EXTENSION"
    /// The bundle identifier that a process declares in Developer Mode.
    static let declaredApp = "BACKGROUNDASSETS_APP"
}

/// Descriptors that the process of an extension inherits.
enum InheritedDescriptor {
    /// The service calls the extension's entry points here.
    static let entryPoints: Int32 = 3
    /// The extension's manager calls the service here.
    static let requests: Int32 = 4
    /// The extension's manager hears events here.
    static let events: Int32 = 5
}

/// Opens the two connections of a manager.
protocol ServiceConnector: Sendable {
    /// Whether a lost connection can be replaced.
    var canReconnect: Bool { get }
    /// A connection for calls.
    func openRequests() throws -> ServiceConnection
    /// A connection for one stream of events.
    func openEvents() throws -> ServiceConnection
}

/// Connects an app to its device, starting the service if need be.
struct AppConnector: ServiceConnector {
    let environment: [String: String]
    let canReconnect = true

    func openRequests() throws -> ServiceConnection { try open() }
    func openEvents() throws -> ServiceConnection { try open() }

    private func open() throws -> ServiceConnection {
        let folder = FileManager.default.currentDirectoryPath
        guard let location = DeviceLocation(environment: environment, currentFolder: folder) else {
            throw AssetsFailure.error(
                .callerConnectionInvalid, "there is no device: neither \(DeviceLocation.variable) nor HOME is set")
        }
        let connection = try ServiceStarter.connect(to: location, startIfNeeded: true)
        if let app = environment[EnvironmentKey.declaredApp], !app.isEmpty {
            do {
                _ = try connection.call(
                    ManagerInterface.Declare.self, ManagerInterface.Declare.Parameters(app: app))
            } catch {
                connection.close()
                throw error
            }
        }
        return connection
    }
}

/// Hands out the connections that an extension inherited, each once.
final class InheritedConnector: ServiceConnector {
    let canReconnect = false

    private let left: Guarded<Set<Int32>>

    init() { left = Guarded([InheritedDescriptor.requests, InheritedDescriptor.events]) }

    func openRequests() throws -> ServiceConnection { try take(InheritedDescriptor.requests) }
    func openEvents() throws -> ServiceConnection { try take(InheritedDescriptor.events) }

    private func take(_ descriptor: Int32) throws -> ServiceConnection {
        guard left.withLock({ $0.remove(descriptor) }) != nil else {
            throw AssetsFailure.error(.callerConnectionInvalid, "the service has closed the extension's connection")
        }
        return ServiceConnection(descriptor: Descriptor(owning: descriptor))
    }
}
