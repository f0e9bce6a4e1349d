// What an extension is to the system: a program with one entry point that a service starts.

/// A program that a system service starts to do one kind of work for an app.
///
/// You do not conform to this protocol directly. Conform to the protocol of an extension point, such as
/// `BADownloaderExtension`, and mark the type `@main`: a struct, a final class, or a class whose `init()` is `required`.
public protocol AppExtension {
    /// The type that configures the extension.
    associatedtype Configuration: AppExtensionConfiguration

    /// Makes the extension. The system calls this once, on the main thread, when the process starts.
    @MainActor @preconcurrency init()

    /// How the extension is set up. The protocols of extension points have a default.
    @MainActor @preconcurrency var configuration: Self.Configuration { get }

    /// The extension point that this extension serves. The protocols of extension points have a default; on Linux the
    /// property list of the extension decides, not this value.
    @MainActor @preconcurrency @AppExtensionPoint.Bind var extensionPoint: AppExtensionPoint { get }
}

extension AppExtension {
    /// Names an extension point, inside an extension's own type.
    public typealias Identifier = AppExtensionPoint.Identifier

    /// Makes an extension point of its identifier, inside an extension's own type.
    public typealias Bind = AppExtensionPoint.Bind

    /// The extension point with an empty name: the protocols of extension points say their own.
    @MainActor @preconcurrency public var extensionPoint: AppExtensionPoint { AppExtensionPoint(identifier: "") }

    /// Starts the extension.
    ///
    /// The protocol of an extension point replaces this with an entry point that serves its calls.
    ///
    /// - Throws: ``AppExtensionError/noExtensionPoint(_:)``, because a bare `AppExtension` serves no extension point.
    public static func main() throws {
        throw AppExtensionError.noExtensionPoint(String(describing: Self.self))
    }
}

/// Why an extension cannot be started. Apple has no such type; there is nothing to catch in an extension.
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
    /// Says whether a connection is to be accepted. It is never called: nothing on Linux connects to an extension.
    ///
    /// - Parameter connection: The connection.
    /// - Returns: Whether to accept it.
    nonisolated func accept(connection: NSXPCConnection) -> Bool
}

extension AppExtensionConfiguration {
    /// Accepts no connection.
    public nonisolated func accept(connection: NSXPCConnection) -> Bool { false }
}

/// A kind of extension, named as in an extension's property list.
///
/// Of Apple's type this is the part that an extension uses. Apps cannot define extension points of their own.
public struct AppExtensionPoint: Hashable, Sendable {
    /// The value of `EXExtensionPointIdentifier`.
    public let identifier: String

    /// Makes an extension point of that name.
    ///
    /// - Parameter identifier: The value of `EXExtensionPointIdentifier`.
    public init(identifier: String) { self.identifier = identifier }

    /// Names an extension point.
    public struct Identifier: Hashable, Sendable {
        /// The value of `EXExtensionPointIdentifier`.
        public let value: String

        /// Names an extension point of the system.
        ///
        /// - Parameter value: Its name.
        public init(_ value: StaticString) { self.value = "\(value)" }

        /// Names an extension point of an app.
        ///
        /// - Parameters:
        ///   - bundleIdentifier: The app.
        ///   - name: The extension point's name within the app.
        public init(host bundleIdentifier: StaticString, name: StaticString) {
            value = "\(bundleIdentifier).\(name)"
        }
    }

    /// Makes an extension point of its identifier:
    ///
    ///     @AppExtensionPoint.Bind
    ///     var extensionPoint: AppExtensionPoint { AppExtensionPoint.Identifier("com.example.point") }
    @resultBuilder
    public struct Bind {
        /// Makes the extension point.
        public static func buildBlock(_ identifier: AppExtensionPoint.Identifier) -> AppExtensionPoint {
            AppExtensionPoint(identifier: identifier.value)
        }

        /// Takes an extension point that was made otherwise.
        public static func buildBlock(_ point: AppExtensionPoint) -> AppExtensionPoint { point }
    }
}

/// A connection between processes.
///
/// There is no XPC on Linux and nothing makes such a connection; the class is here so that sources which implement
/// ``AppExtensionConfiguration/accept(connection:)`` compile.
public final class NSXPCConnection: Sendable {
    /// Nobody makes one.
    private init() {}
}
