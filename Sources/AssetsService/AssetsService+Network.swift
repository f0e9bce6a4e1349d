// The network, as it comes and goes.
package import AssetsModel
package import AssetsOS
internal import AssetsTransfer

/// Tells how the network is.
package protocol NetworkSource: Sendable {
    /// Calls `changed` on the service's executor, once before this returns and after every change until `end`.
    func begin(_ changed: @escaping @Sendable (NetworkView) -> Void) throws(SystemCallError)
    func end()
}

extension AssetsService {
    /// Without news of the network what waits for it is tried again after pauses.
    func followNetwork() {
        do throws(SystemCallError) {
            try seams.network.begin { view in self.assumeIsolated { $0.saw(view) } }
        } catch {
            journal(.warning, .network, "the kernel does not tell of its network (\(error)): it is tried at intervals")
        }
    }

    private func saw(_ view: NetworkView) {
        guard !isStopping else { return }
        let now = seams.loop.now
        for action in connectivity.see(view, at: now, random: seams.random.next()) {
            switch action {
            case .wentOffline: journal(.networkChanged, .offline, "the device has no network")
            case .cameOnline: journal(.networkChanged, .network, "the device has a network")
            case .changed: journal(.networkChanged, .network, "the device has another network")
            case .dropConnections(let addresses):
                launch { service in await service.seams.transfers.dropConnections(keeping: addresses) }
            case .setRetryTimer(let time):
                _ = seams.loop.schedule(at: time) { self.assumeIsolated { $0.networkRetryTimerFired() } }
            }
        }
    }

    private func networkRetryTimerFired() {
        guard !isStopping, connectivity.retryTimerFired(at: seams.loop.now) else { return }
        launch { service in await service.retryWaiting(for: Reason.ofNetwork) }
    }

    /// Whether the network is another one since a moment of process time.
    func hasNewNetwork(since time: Duration?) -> Bool {
        guard let time, let changed = connectivity.changedAt else { return false }
        return changed >= time && !connectivity.isOffline
    }

    /// False for what reaches its server without leaving this machine.
    func needsNetwork(_ record: DownloadRecord) -> Bool {
        guard let address = try? WebAddress(record.request.url) else { return false }
        return proxies.needsNetwork(address)
    }
}
