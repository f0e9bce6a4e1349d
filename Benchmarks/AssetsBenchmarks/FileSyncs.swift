// The least that makes files durable which somebody has fetched: a sync of each, and nothing else.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc

enum FileSyncs {
    /// With more the disk gains nothing.
    private static let threads = 16
    /// Microseconds between two looks whether all are done.
    private static let look: UInt32 = 500

    private struct State {
        var running = FileSyncs.threads
        var failure: SystemCallError?
    }

    /// Syncs the data of each file, and then their folder; returns milliseconds.
    static func run(_ names: [String], in folder: String) throws -> Double {
        let state = Guarded(State())
        let start = MonotonicClock.now
        for thread in 0..<threads {
            let paths = stride(from: thread, to: names.count, by: threads).map { "\(folder)/\(names[$0])" }
            try SideThread.start {
                var failure: SystemCallError?
                do throws(SystemCallError) {
                    for path in paths { try sync(path, fdatasync) }
                } catch { failure = error }
                state.withLock { [failure] state in
                    state.running -= 1
                    state.failure = state.failure ?? failure
                }
            }
        }
        while state.withLock({ $0.running > 0 }) { usleep(look) }
        if let failure = state.withLock({ $0.failure }) { throw failure }
        try sync(folder, fsync)
        return (MonotonicClock.now - start).milliseconds
    }

    private static func sync(_ path: String, _ call: (Int32) -> Int32) throws(SystemCallError) {
        let file = Descriptor(owning: try check("open") { open(path, O_RDONLY | O_CLOEXEC) })
        let descriptor = file.rawValue
        try check("fsync") { call(descriptor) }
    }
}
