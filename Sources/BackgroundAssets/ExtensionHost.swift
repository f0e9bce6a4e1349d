// The process of an extension: the service calls, the extension's methods answer.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Dispatch
public import ExtensionFoundation
internal import Foundation

extension BADownloaderExtension {
    /// Starts the extension and serves the calls of the asset service until it closes the connection.
    ///
    /// - Throws: ``AppExtensionError/notStartedByService(_:)`` in a process that the service did not start.
    @MainActor @preconcurrency public static func main() throws {
        guard ProcessInfo.processInfo.environment[EnvironmentKey.isExtension] == "1" else {
            Diagnostics.warn("\(AppExtensionError.notStartedByService("the asset service"))")
            exit(EX_USAGE)
        }
        let host = ExtensionHost(
            Self(), socket: Descriptor(owning: InheritedDescriptor.entryPoints),
            ended: {
                // The service has closed the socket: nothing that is still to do counts.
                _exit(0)
            })
        host.start()
        host.serveMainThread()
    }
}
