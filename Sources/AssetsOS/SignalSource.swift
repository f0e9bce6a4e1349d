// Signals as events of a loop: nothing of ours ever runs inside a signal handler.
internal import CLinux
internal import Glibc

/// Delivers signals to a handler on an event loop.
///
/// The signals must be blocked in every thread, so `block` is called before the first one is started.
package final class SignalSource: @unchecked Sendable {
    // Everything is `let`, and `cancel` acts on the loop only, which `unwatch` checks.
    private let loop: EventLoop
    private let descriptor: Descriptor

    /// Blocks `signals` in the calling thread and in all threads that it starts from now on.
    package static func block(_ signals: [Int32]) {
        var set = signalSet(signals)
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Calls `handler` with the number of each signal that arrives. Call on the loop.
    package init(
        _ signals: [Int32], on loop: EventLoop, _ handler: @escaping @Sendable (Int32) -> Void
    ) throws(SystemCallError) {
        var set = signalSet(signals)
        let made = Descriptor(
            owning: try check("signalfd") { signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK)) })
        let raw = made.rawValue
        self.loop = loop
        descriptor = consume made
        try loop.watch(raw, for: .read) { _ in
            var information = signalfd_siginfo()
            while read(raw, &information, MemoryLayout<signalfd_siginfo>.size) > 0 {
                handler(Int32(information.ssi_signo))
            }
        }
    }

    /// Stops listening. Call on the loop, before the source is let go.
    package func cancel() { loop.unwatch(descriptor.rawValue) }
}

private func signalSet(_ signals: [Int32]) -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    return set
}
