// One of many clients that hear of progress.
import AssetsOS
import BackgroundAssets
import Foundation

/// Notes when its delegate method was called; prints "ready" at the first call, and all calls when it is told to end.
final class Listener: NSObject, BADownloadManagerDelegate, Sendable {
    private struct Call {
        var identifier: String
        var total: Int64
        var time: Duration
    }

    private let calls = Guarded<[Call]>([])

    func download(
        _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64
    ) {
        let now = MonotonicClock.now
        let call = Call(identifier: download.identifier, total: totalBytesWritten, time: now)
        let isFirst = calls.withLock { calls in
            calls.append(call)
            return calls.count == 1
        }
        if isFirst { Self.say("ready") }
    }

    /// Listens until SIGTERM.
    static func run(on manager: BADownloadManager) {
        // Before there is another thread, so that all of them leave the signal to this one.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigprocmask(SIG_BLOCK, &signals, nil)
        let listener = Listener()
        manager.delegate = listener
        var signal: Int32 = 0
        sigwait(&signals, &signal)
        let calls = listener.calls.withLock { $0 }
        say(
            calls.map { "\($0.identifier) \($0.total) \(Int64($0.time / .nanoseconds(1)))" }
                .joined(separator: "\n"))
    }

    private static func say(_ text: String) {
        print(text)
        fflush(nil)
    }
}
