// Stopping an extension between its entry points, and letting it go on.
internal import AssetsOS
internal import Glibc

extension ExtensionProcess {
    /// What came of an attempt to stop it.
    package enum Stop: Hashable, Sendable {
        case stopped
        /// It holds a lock of this file and goes on.
        case locked(String)
    }

    /// Between two looks whether all its threads stand still, and how many looks: a thread in the middle of a disk access
    /// stops after it.
    private static let look = Duration.milliseconds(1)
    private static let looksMax = 100

    /// Stops it unless it holds a file lock below `folder`. `ended` is told on the loop, unless the process ends before or
    /// goes on meanwhile.
    ///
    /// A lock is looked for twice: what is seen before the stop is never stopped, and what was taken right then is given a
    /// chance to be let go of.
    package func stop(
        below folder: String, isExempt: @escaping @Sendable (String) -> Bool, ended: @escaping @Sendable (Stop) -> Void
    ) {
        guard exit == nil else { return }
        stopAttempt += 1
        let attempt = stopAttempt
        if let path = FileLocks.held(by: child.process, below: folder, isExempt: isExempt) {
            return loop.perform { [self] in if stopAttempt == attempt { ended(.locked(path)) } }
        }
        child.sendToGroup(signal: SIGSTOP)
        awaitStop(attempt, looks: 0) { [self] in
            if let path = FileLocks.held(by: child.process, below: folder, isExempt: isExempt) {
                resume()
                return ended(.locked(path))
            }
            unwatchMemory()
            ended(.stopped)
        }
    }

    private func awaitStop(_ attempt: Int, looks: Int, _ body: @escaping @Sendable () -> Void) {
        _ = loop.schedule(after: looks == 0 ? .zero : Self.look) { [self] in
            guard stopAttempt == attempt, exit == nil else { return }
            guard child.isStopped || looks >= Self.looksMax else {
                return awaitStop(attempt, looks: looks + 1, body)
            }
            body()
        }
    }

    /// Lets it go on; an attempt to stop it that is under way comes to nothing.
    package func resume() {
        stopAttempt += 1
        child.sendToGroup(signal: SIGCONT)
        watchMemory()
    }
}
