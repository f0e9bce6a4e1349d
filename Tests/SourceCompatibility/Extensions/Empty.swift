// Nothing is implemented, which compiles; its configuration is spelled out.
import BackgroundAssets
import ExtensionFoundation

@main
struct Empty: BADownloaderExtension {
    var configuration: some BADownloaderExtensionConfiguration { EmptyConfiguration() }
}

struct EmptyConfiguration: BADownloaderExtensionConfiguration {
    nonisolated func accept(connection: NSXPCConnection) -> Bool { false }
}
