// Visits to exclusive control, one after the other: what an app waits for that wants it too.
import BackgroundAssets
import Foundation

/// While a file of this name lies in the container, which the bench puts there and takes away.
struct Visits {
    /// What a careful extension does while it has control: it moves a file and reads a list.
    private static let work = Duration.milliseconds(5)

    private let mark: String

    init(in container: URL) { mark = container.appending(path: "Visits").path }

    /// Returns when they are over.
    func run() {
        let done = DispatchSemaphore(value: 0)
        let mark = mark
        Task {
            while FileManager.default.fileExists(atPath: mark) {
                try? await BADownloadManager.shared.withExclusiveControl { Self.doWork() }
            }
            done.signal()
        }
        done.wait()
    }

    /// Keeps the processor busy for so much of its time.
    private static func doWork() {
        let end = processorTime + work
        while processorTime < end {}
    }

    private static var processorTime: Duration {
        var now = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
        return .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec)
    }
}
