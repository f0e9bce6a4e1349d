// The network as the kernel tells of it.
internal import AssetsModel
internal import AssetsOS

/// The machine's network. Used on the service's loop only.
final class KernelNetwork: NetworkSource, @unchecked Sendable {
    // Sendable because `monitor` is used on the service's loop only: `NetworkMonitor` checks it.
    private let loop: EventLoop
    private var monitor: NetworkMonitor?

    init(on loop: EventLoop) { self.loop = loop }

    func begin(_ changed: @escaping @Sendable (NetworkView) -> Void) throws(SystemCallError) {
        monitor = try NetworkMonitor(on: loop, settleTime: PolicyNumbers.networkSettleTime) { state in
            changed(NetworkView(addresses: state.addresses, connected: state.connected, ways: state.ways))
        }
    }

    func end() {
        monitor?.cancel()
        monitor = nil
    }
}
