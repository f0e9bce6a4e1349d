// Accepting connections on an event loop.
internal import Glibc

/// Accepts connections of a listening socket and hands them on, nonblocking.
///
/// All members are used on the loop only, which each of them checks.
package final class SocketListener: @unchecked Sendable {
    // Sendable because every access is on the loop's one thread: `checkIsolated` stops the process otherwise.

    /// Connections accepted in one go, so that a flood leaves time for those that are open.
    private static let batchMax = 16
    /// Rest when the process has no descriptors or memory left, for then the socket stays readable.
    private static let restWhenExhausted = Duration.milliseconds(100)

    private let loop: EventLoop
    private var listener: Descriptor?
    private let accepted: @Sendable (consuming Descriptor) -> Void
    private var restTimer: TimerToken?

    /// Takes over a listening socket. Call on the loop.
    package init(
        _ listener: consuming Descriptor, on loop: EventLoop,
        accepted: @escaping @Sendable (consuming Descriptor) -> Void
    ) throws(SystemCallError) {
        loop.checkIsolated()
        try UnixSocket.setNonblocking(listener)
        self.loop = loop
        self.accepted = accepted
        self.listener = consume listener
        try start()
    }

    /// Accepts nothing more.
    package func close() {
        loop.checkIsolated()
        if let restTimer { loop.cancel(restTimer) }
        restTimer = nil
        guard let listener = listener.take() else { return }
        loop.unwatch(listener.rawValue)
    }

    /// Accepts whoever waits now, at once. True when there was anybody.
    ///
    /// With the socket's name removed before, nobody who connected is left behind when the listener then closes.
    package func acceptLast() -> Bool {
        loop.checkIsolated()
        var isAny = false
        while let connection = try? acceptOne() {
            accepted(connection)
            isAny = true
        }
        return isAny
    }

    private func start() throws(SystemCallError) {
        switch listener {
        case .some(let open):
            try loop.watch(open.rawValue, for: .read) { [self] _ in acceptWaiting() }
        case nil: return
        }
    }

    private func acceptWaiting() {
        for _ in 0..<Self.batchMax {
            do throws(SystemCallError) {
                guard let connection = try acceptOne() else { return }
                accepted(connection)
            } catch {
                return rest()
            }
        }
    }

    private func acceptOne() throws(SystemCallError) -> Descriptor? {
        switch listener {
        case .some(let open): try UnixSocket.accept(open)
        case nil: nil
        }
    }

    private func rest() {
        switch listener {
        case .some(let open): loop.unwatch(open.rawValue)
        case nil: return
        }
        restTimer = loop.schedule(after: Self.restWhenExhausted) { [self] in
            restTimer = nil
            // Fails only for want of memory: then it rests again.
            do throws(SystemCallError) { try start() } catch { rest() }
        }
    }
}
