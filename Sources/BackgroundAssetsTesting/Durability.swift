// How hard a simulated power cut is.

/// What becomes of data and names that were not synced.
package enum PowerCut: Hashable, Sendable {
    /// All of it is forgotten.
    case forgetsAll
    /// Each unsynced page, length and name survives or not, as the seed says: what real disks do.
    case forgetsSome(seed: UInt64)

    /// Nil when nothing survives.
    func coins(stream: String) -> SeededSequence? {
        switch self {
        case .forgetsAll: nil
        case .forgetsSome(let seed): SeededSequence(seed: seed, stream: stream)
        }
    }
}

/// When a simulated disk refuses its work. Calls are counted from 1.
package enum DiskFault: Hashable, Sendable {
    /// One call fails and nothing of it is done.
    case fails(call: Int)
    /// From this call on all fail, as if the process had been killed there; a power cut ends it.
    case dies(call: Int)

    func hits(_ call: Int) -> Bool {
        switch self {
        case .fails(let number): call == number
        case .dies(let number): call >= number
        }
    }
}
