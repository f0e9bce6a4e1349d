// What an extension is to the system: a program with one entry point that a service starts.

/// A program that a system service starts to do one kind of work for an app.
///
/// You do not conform to this protocol directly. Conform to the protocol of an extension point, such as
/// `BADownloaderExtension`, and mark the type `@main`.
public protocol AppExtension {
    /// The type that configures the extension.
    associatedtype Configuration: AppExtensionConfiguration

    /// Makes the extension. The system calls this once, on the main actor, when the process starts.
    @MainActor @preconcurrency init()

    /// How the extension is set up.
    @MainActor @preconcurrency var configuration: Self.Configuration { get }

    /// The extension point that this extension serves.
    var extensionPoint: AppExtensionPoint { get }
}

extension AppExtension {
    /// The extension point with an empty name: the protocols of extension points say their own.
    public var extensionPoint: AppExtensionPoint { AppExtensionPoint(identifier: "") }

    /// Starts the extension.
    ///
    /// The protocol of an extension point replaces this with an entry point that serves its calls.
    ///
    /// - Throws: ``AppExtensionError/noExtensionPoint(_:)``, because a bare `AppExtension` serves no extension point.
    public static func main() throws {
        throw AppExtensionError.noExtensionPoint(String(describing: Self.self))
    }
}

/// Why an extension cannot be started.
public enum AppExtensionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The named type conforms to no protocol of an extension point.
    case noExtensionPoint(String)
    /// The process was not started by the service of its extension point.
    case notStartedByService(String)

    /// What is wrong, as a sentence.
    public var description: String {
        switch self {
        case .noExtensionPoint(let type):
            "\(type) serves no extension point; conform to a protocol such as BADownloaderExtension"
        case .notStartedByService(let service):
            "an extension is started by \(service) only"
        }
    }
}

/// How an extension treats those who connect to it.
@MainActor @preconcurrency public protocol AppExtensionConfiguration: Sendable {
    /// Says whether a connection is to be accepted.
    nonisolated func accept(connection: NSXPCConnection) -> Bool
}

extension AppExtensionConfiguration {
    /// Accepts no connection.
    public nonisolated func accept(connection: NSXPCConnection) -> Bool { false }
}

/// A kind of extension, named as in an extension's property list.
public struct AppExtensionPoint: Hashable, Sendable {
    /// The value of `EXExtensionPointIdentifier`.
    public let identifier: String

    /// Makes an extension point of that name.
    public init(identifier: String) { self.identifier = identifier }
}

/// A connection between processes.
///
/// There is no XPC on Linux and nothing makes such a connection; the class is here so that sources which implement
/// ``AppExtensionConfiguration/accept(connection:)`` compile.
public final class NSXPCConnection: Sendable {
    /// Nobody makes one.
    private init() {}
}
