// Ctrl-C and the request to end, taken by a thread instead of a handler, so that ordinary code may answer them.
internal import Glibc

/// SIGINT and SIGTERM of this process.
package enum Interrupts {
    /// Blocks the signals. Call first, on the main thread: threads made later inherit it, so that none can be hit.
    package static func block() {
        var signals = set
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Waits for the next one and returns its number.
    package static func wait() -> Int32 {
        var signals = set
        var signal: Int32 = 0
        while sigwait(&signals, &signal) != 0 {}
        return signal
    }

    /// Calls `body` on a thread of its own each time one arrives, with how many there were.
    package static func observe(_ body: @escaping @Sendable (_ count: Int) -> Void) {
        final class Box {
            let body: @Sendable (Int) -> Void
            init(_ body: @escaping @Sendable (Int) -> Void) { self.body = body }
        }
        var thread = pthread_t()
        let box = Unmanaged.passRetained(Box(body))
        let code = pthread_create(
            &thread, nil,
            { raw in
                guard let raw else { return nil }
                let body = Unmanaged<Box>.fromOpaque(raw).takeRetainedValue().body
                var count = 0
                while true {
                    _ = Interrupts.wait()
                    count += 1
                    body(count)
                }
            }, box.toOpaque())
        guard code == 0 else {
            // Without the thread Ctrl-C would do nothing: better that it ends the process as usual.
            box.release()
            var signals = set
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            return
        }
        pthread_detach(thread)
    }

    private static var set: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        return signals
    }
}
