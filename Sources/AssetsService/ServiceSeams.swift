// What the service is joined with: production parts or simulated ones.
package import AssetsModel
package import AssetsOS
package import AssetsStore
package import AssetsTransfer

/// Everything outside the service's own rules.
package struct ServiceSeams: Sendable {
    /// Where the service itself runs.
    package var loop: any LoopExecutor
    /// Blocking file work: finishing downloads, removing folders.
    package var disk: DiskWorker
    /// Blocking work of minutes: unpacking app bundles.
    package var unpacking: DiskWorker
    package var calendar: any CalendarClock
    package var random: any RandomSource
    package var files: any FileTree
    package var store: Store
    package var transfers: TransferEngine
    package var staging: any BundleStaging
    package var extensions: any ExtensionRunner
    package var network: any NetworkSource
    /// What the service was started with.
    package var environment: [String: String]
    /// How a launched app finds this service.
    package var launchEnvironment: [String: String]

    package init(
        loop: any LoopExecutor, disk: DiskWorker, unpacking: DiskWorker, calendar: any CalendarClock,
        random: any RandomSource, files: any FileTree, store: Store, transfers: TransferEngine,
        staging: any BundleStaging, extensions: any ExtensionRunner, network: any NetworkSource,
        environment: [String: String] = [:], launchEnvironment: [String: String] = [:]
    ) {
        self.loop = loop
        self.disk = disk
        self.unpacking = unpacking
        self.calendar = calendar
        self.random = random
        self.files = files
        self.store = store
        self.transfers = transfers
        self.staging = staging
        self.extensions = extensions
        self.network = network
        self.environment = environment
        self.launchEnvironment = launchEnvironment
    }
}

/// Runs blocking calls on an executor of their own.
package actor DiskWorker {
    private let loop: any LoopExecutor
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(on loop: any LoopExecutor) { self.loop = loop }

    /// Calls `body` on the worker's executor.
    package func run<Value: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try body()
    }
}

/// Makes a validated build out of a bundle folder or archive.
package protocol BundleStaging: Sendable {
    /// Unpacks `source` (an absolute path) into the empty folder `folder` below the device directory and validates it.
    /// Blocks; leaves nothing behind when it throws.
    func stage(
        source: String, into folder: String, allowsLoopbackHTTP: Bool, isCancelled: @escaping @Sendable () -> Bool
    ) throws(AssetsError) -> AppDescription
}
