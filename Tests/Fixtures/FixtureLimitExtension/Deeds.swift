// The deeds of a LimitPlan.
import BackgroundAssets
import Dispatch
import FixturePlan
import Foundation
import Glibc

struct Deeds {
    let container: URL
    /// The manifest, or the finished file.
    let manifest: URL

    func perform(_ deed: LimitPlan.Deed) {
        switch deed.kind {
        case .nothing: break
        case .inflate: inflate(to: deed.bytes)
        case .map: look(at: try? Data(contentsOf: manifest, options: .mappedIfSafe), "mapped")
        case .read: look(at: try? Data(contentsOf: manifest), "read")
        case .reserve: reserve(deed.bytes)
        case .recurse: _ = recurse(0)
        case .work: work(for: deed.milliseconds)
        case .crash: abort()
        case .exit: _exit(3)
        case .hang: while true { pause() }
        case .nonsense: say("{\"parameters\": ")
        case .chatter:
            // With a lock it stays awake for a moment.
            lock(.flock, for: 900)
            later(after: 200) { say("{\"parameters\":{\"implemented\":true}}") }
        case .flock, .posixLock, .descriptionLock: lock(deed.kind, for: deed.milliseconds)
        case .control: askForControl()
        case .delegate: SlowDelegate.set(in: container, milliseconds: deed.milliseconds)
        case .write: try? Data(repeating: 1, count: deed.bytes).write(to: home("written"))
        case .wait: passTurnstile(in: container)
        }
    }

    private func note(_ event: String, count: Int? = nil, value: String? = nil) {
        var record = FixtureRecord(event)
        (record.count, record.value) = (count, value)
        append(record, to: container)
    }

    private func home(_ name: String) -> URL {
        URL(fileURLWithPath: NSHomeDirectory()).appendingPathComponent(name)
    }

    /// As an extension does that unpacks a file: a page at a time, each different.
    private func inflate(to bytes: Int) {
        var pages: [[UInt8]] = []
        while pages.count * 4096 < bytes {
            pages.append([UInt8](repeating: UInt8(pages.count % 251), count: 4096))
            // A gigabyte a second is more than files are unpacked at.
            if pages.count % 256 == 0 { work(for: 1) }
        }
        // Seen by somebody who looks every few milliseconds.
        work(for: 50)
        note("inflated", count: pages.reduce(0) { $0 + $1.count })
    }

    private func look(at data: Data?, _ event: String) {
        let sum = data?.reduce(UInt64(0)) { $0 &+ UInt64($1) }
        work(for: 50)
        note(event, count: data?.count, value: sum.map { "\($0)" })
    }

    private func reserve(_ bytes: Int) {
        let place = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        note("reserved", value: place == MAP_FAILED ? String(cString: strerror(errno)) : "done")
    }

    @inline(never) private func recurse(_ depth: UInt64) -> UInt64 {
        depth == .max ? 0 : recurse(depth + 1) &* 31 &+ depth
    }

    private func work(for milliseconds: Int) {
        let end = DispatchTime.now() + .milliseconds(milliseconds)
        while DispatchTime.now() < end {}
    }

    /// On the socket of the entry points.
    private func say(_ text: String) {
        let bytes = Array(text.utf8) + [0]
        _ = send(3, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// On a thread that nobody knows of: it goes on when the entry point has returned.
    private func later(after milliseconds: Int, _ body: @escaping @Sendable () -> Void) {
        let thread = Thread {
            _ = poll(nil, 0, Int32(milliseconds))
            body()
        }
        thread.stackSize = 64 << 10
        thread.start()
    }

    private func lock(_ kind: LimitPlan.Deed.Kind, for milliseconds: Int) {
        let file = open(container.appendingPathComponent("database").path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        var range = flock(l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 0, l_pid: 0)
        let isHeld =
            switch kind {
            case .posixLock: fcntl(file, F_SETLK, &range) == 0
            // F_OFD_SETLK, which this module does not name.
            case .descriptionLock: fcntl(file, 37, &range) == 0
            default: flock(file, LOCK_EX | LOCK_NB) == 0
            }
        note("locked", value: isHeld ? "held" : String(cString: strerror(errno)))
        later(after: milliseconds) { close(file) }
    }

    /// As a library might that works on a queue of its own: the entry point has returned by then.
    /// Outside of the entry point; with a lock it stays awake until it has asked.
    private func askForControl() {
        let container = container
        lock(.flock, for: 900)
        later(after: 0) {
            BADownloadManager.shared.withExclusiveControl { (isAcquired: Bool, error: (any Error)?) in
                var record = FixtureRecord("control")
                record.acquired = isAcquired
                append(record, to: container)
            }
        }
    }
}

/// Takes its time for each message.
private final class SlowDelegate: NSObject, BADownloadManagerDelegate {
    // Set once, on the main thread.
    nonisolated(unsafe) private static var current: SlowDelegate?

    private let container: URL
    private let milliseconds: Int

    private init(_ container: URL, _ milliseconds: Int) {
        self.container = container
        self.milliseconds = milliseconds
    }

    static func set(in container: URL, milliseconds: Int) {
        let delegate = SlowDelegate(container, milliseconds)
        current = delegate
        BADownloadManager.shared.delegate = delegate
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        _ = poll(nil, 0, Int32(milliseconds))
        var record = FixtureRecord("finished")
        record.download = download.listed
        record.byDelegate = true
        try? moveAsset(fileURL, as: download.identifier, in: container)
        append(record, to: container)
    }
}
