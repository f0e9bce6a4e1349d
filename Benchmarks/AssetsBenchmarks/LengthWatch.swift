// When a file grew: what its reader can have, and how long nothing came.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc
internal import Synchronization

/// Watches the length of a file, which may not be there yet, from a thread of its own.
final class LengthWatch: Sendable {
    private struct Seen {
        /// When it was found longer, in the order of time.
        var growths: [Duration] = []
        var length: Int64 = 0
        /// Bytes that were in the file and went again.
        var lost: Int64 = 0
    }

    private static let interval: useconds_t = 50

    private let path: String
    private let seen = Guarded(Seen())
    private let isEnded = Atomic(false)
    private let hasLeft = Atomic(false)

    init(_ path: String) throws {
        self.path = path
        try SideThread.start { self.run() }
    }

    private func run() {
        while !isEnded.load(ordering: .acquiring) {
            look()
            usleep(Self.interval)
        }
        hasLeft.store(true, ordering: .releasing)
    }

    private func look() {
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        let (length, now) = (Int64(status.st_size), MonotonicClock.now)
        seen.withLock { seen in
            if length > seen.length { seen.growths.append(now) }
            seen.lost += max(0, seen.length - length)
            seen.length = length
        }
    }

    var length: Int64 { seen.withLock { $0.length } }
    var lost: Int64 { seen.withLock { $0.lost } }

    /// Whether it has grown since a moment.
    func hasGrown(since moment: Duration) -> Bool { seen.withLock { ($0.growths.last ?? .zero) >= moment } }

    /// The longest time without a new byte, of those that begin or end between two moments; nil where none has ended.
    func longestGap(from start: Duration, to end: Duration) -> Duration? {
        let growths = seen.withLock { $0.growths }
        guard let first = growths.lastIndex(where: { $0 <= start }),
            let last = growths[first...].firstIndex(where: { $0 >= end })
        else { return nil }
        return zip(growths[first..<last], growths[(first + 1)...]).map { $1 - $0 }.max()
    }

    /// Returns when nobody looks any more.
    func end() {
        isEnded.store(true, ordering: .releasing)
        while !hasLeft.load(ordering: .acquiring) { usleep(Self.interval) }
    }
}
