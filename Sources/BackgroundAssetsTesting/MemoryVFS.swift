// A file system for SQLite in memory, which forgets what was not synced.
package import AssetsOS
internal import CSQLite
internal import Synchronization

/// A SQLite VFS of its own name. Open a store with `vfs: vfs.name`.
///
/// It has no shared memory, so a write-ahead log needs exclusive locking, which is what the store uses. Names follow
/// the rules of SQLite's unix VFS: they are durable once a journal or log that was made was synced, or a file was
/// deleted with a sync.
package final class MemoryVFS: Sendable {
    /// The name under which SQLite knows it: unique in the process.
    package let name: String
    let calendar: any CalendarClock
    let random: Guarded<SeededSequence>
    let disk = Guarded(MemoryDisk())
    private let registration: Registration

    private static let count = Atomic<Int>(0)

    package init(seed: UInt64, calendar: any CalendarClock) {
        name = "memory-\(Self.count.add(1, ordering: .relaxed).newValue)"
        self.calendar = calendar
        random = Guarded(SeededSequence(seed: seed, stream: "sqlite"))
        registration = Registration(name: name)
        registration.register(for: self)
    }

    deinit { registration.end() }

    // MARK: Trouble

    /// Forgets what was not synced. Stores that are open on it get I/O errors from now on.
    package func powerCut(_ cut: PowerCut = .forgetsAll) { disk.withLock { $0.cutPower(cut) } }

    /// Closes and unlocks all files as the kernel does for a killed process; what was written is there. Stores that are
    /// open on it get I/O errors from now on.
    package func endProcess() { disk.withLock { $0.endProcess() } }

    /// Lets the writing calls (write, truncate, sync, delete, and an open that makes a file) fail.
    package func setFault(_ fault: DiskFault?) { disk.withLock { $0.fault = fault } }

    /// Writing calls so far.
    package var calls: Int { disk.withLock { $0.calls } }

    /// Bytes of a file; nil when there is no such name.
    package func contents(_ path: String) -> [UInt8]? {
        disk.withLock { disk in disk.names[path].flatMap { disk.files[$0]?.bytes } }
    }

    /// The C structure that SQLite holds; it stays where it is until the VFS goes.
    ///
    /// Unchecked: written once before SQLite gets it, read by SQLite only, and freed when nobody can reach it any more.
    private final class Registration: @unchecked Sendable {
        private let vfs: UnsafeMutablePointer<sqlite3_vfs>
        private let text: UnsafeMutablePointer<CChar>

        init(name: String) {
            let bytes = name.utf8CString
            let text = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
            bytes.withUnsafeBufferPointer { source in
                if let start = source.baseAddress { text.initialize(from: start, count: source.count) }
            }
            self.text = text
            vfs = .allocate(capacity: 1)
            vfs.initialize(to: sqlite3_vfs())
        }

        func register(for owner: MemoryVFS) {
            vfs.pointee = makeMemoryVFS(name: text, owner: Unmanaged.passUnretained(owner).toOpaque())
            sqlite3_vfs_register(vfs, 0)
        }

        func end() {
            sqlite3_vfs_unregister(vfs)
            vfs.deallocate()
            text.deallocate()
        }
    }
}
