// Threads of a run, and how they wait for each other.
internal import AssetsOS
internal import Glibc

/// Counts until somebody waits for it.
final class Bell: Sendable {
    private let reading: Descriptor
    private let writing: Descriptor

    init() throws(SystemCallError) {
        var ends: [Int32] = [-1, -1]
        try check("pipe") { pipe(&ends) }
        reading = Descriptor(owning: ends[0])
        writing = Descriptor(owning: ends[1])
        for end in ends {
            try check("fcntl") { fcntl(end, F_SETFD, FD_CLOEXEC) }
            try check("fcntl") { fcntl(end, F_SETFL, O_NONBLOCK) }
        }
    }

    /// Is not heard beyond what a pipe holds, which nobody counts.
    func ring() {
        var byte: UInt8 = 0
        _ = write(writing.rawValue, &byte, 1)
    }

    /// Takes one ring, and waits for it where there is none; false when none comes in time.
    func hears(within limit: Duration) throws(SystemCallError) -> Bool {
        let raw = reading.rawValue
        var watched = pollfd(fd: raw, events: Int16(POLLIN), revents: 0)
        let (seconds, attoseconds) = limit.components
        let milliseconds = Int32(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
        guard try check("poll", { poll(&watched, 1, milliseconds) }) == 1 else { return false }
        var byte: UInt8 = 0
        return read(raw, &byte, 1) == 1
    }

    func wait(for limit: Duration) throws {
        guard try hears(within: limit) else { throw PowerCutError("nothing happens within \(limit)") }
    }
}

/// A thread that is waited for.
final class Worker: Sendable {
    private let body: @Sendable () -> Void
    private let thread = Guarded(pthread_t())

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
        let me = Unmanaged.passRetained(self).toOpaque()
        let code = thread.withLock { thread in
            pthread_create(
                &thread, nil,
                { raw in
                    if let raw { Unmanaged<Worker>.fromOpaque(raw).takeRetainedValue().body() }
                    return nil
                }, me)
        }
        precondition(code == 0, "no thread can be made: \(code)")
    }

    func join() { pthread_join(thread.withLock { $0 }, nil) }
}
