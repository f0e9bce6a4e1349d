// Learning without a timer that a folder we work in is gone.
internal import Glibc

/// Tells once when a folder was removed or moved away.
///
/// All members are used on the loop only, which `EventLoop` checks.
package final class FolderWatch: @unchecked Sendable {
    // Sendable because every access is on the loop's one thread: `checkIsolated` stops the process otherwise.

    private let loop: EventLoop
    private let path: String
    private let inode: UInt64
    private var queue: Descriptor?
    private let gone: @Sendable () -> Void

    /// Watches a folder and a file in it that lives as long as the folder does. Call on the loop.
    ///
    /// A folder that somebody has open is not reported when it is removed; a file that loses its name is.
    package init(
        _ folder: String, holding file: String, on loop: EventLoop, gone: @escaping @Sendable () -> Void
    ) throws(SystemCallError) {
        loop.checkIsolated()
        self.loop = loop
        path = file
        self.gone = gone
        var status = stat()
        try check("stat") { stat(file, &status) }
        inode = UInt64(status.st_ino)
        let queue = Descriptor(
            owning: try check("inotify_init1") { inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC)) })
        let raw = queue.rawValue
        try check("inotify_add_watch") { inotify_add_watch(raw, folder, UInt32(IN_MOVE_SELF | IN_DELETE_SELF)) }
        try check("inotify_add_watch") {
            inotify_add_watch(raw, file, UInt32(IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF))
        }
        self.queue = consume queue
        try loop.watch(raw, for: .read) { [self] _ in look(raw) }
    }

    /// Watches no longer; nothing is told after that.
    package func cancel() {
        loop.checkIsolated()
        guard let queue = queue.take() else { return }
        loop.unwatch(queue.rawValue)
    }

    private func look(_ queue: Int32) {
        var events = [UInt8](repeating: 0, count: 4096)
        while read(queue, &events, events.count) > 0 {}
        var status = stat()
        // A changed mode or time is an event too.
        if stat(path, &status) == 0, UInt64(status.st_ino) == inode { return }
        cancel()
        gone()
    }
}
