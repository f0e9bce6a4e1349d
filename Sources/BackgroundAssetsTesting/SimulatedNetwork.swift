// The machine's network in a simulation.
package import AssetsModel
internal import AssetsOS
internal import AssetsService

/// What the simulated kernel says of the network. It outlives the service's processes.
package final class SimulatedNetwork: NetworkSource {
    /// A machine with one address and a way beyond.
    package static let online = NetworkView(
        addresses: ["127.0.0.1", "192.0.2.10"], connected: ["192.0.2.10"], ways: ["link 2 via 192.0.2.1"])
    /// One that lost its only link.
    package static let offline = NetworkView(addresses: ["127.0.0.1"])

    private struct State {
        var view = SimulatedNetwork.online
        var lane: SimulatedLane?
        var changed: (@Sendable (NetworkView) -> Void)?
    }
    private let state = Guarded(State())

    init() {}

    /// The lane of the process that is to be told.
    func attach(to lane: SimulatedLane) {
        state.withLock { state in
            state.lane = lane
            state.changed = nil
        }
    }

    /// How the network is; a change is told as the kernel does.
    package var view: NetworkView {
        get { state.withLock { $0.view } }
        set {
            let (lane, changed) = state.withLock { state in
                state.view = newValue
                return (state.lane, state.changed)
            }
            if let changed { lane?.perform { changed(newValue) } }
        }
    }

    package func begin(_ changed: @escaping @Sendable (NetworkView) -> Void) {
        let view = state.withLock { state in
            state.changed = changed
            return state.view
        }
        changed(view)
    }

    package func end() { state.withLock { $0.changed = nil } }
}
