// A partial file of which nothing is there yet: made by the write of its first bytes, on the thread that writes them.
internal import AssetsModel
internal import AssetsOS

/// Most files are small and come in one piece. Such a one is made, written and synced in one go, and needs nothing that only
/// helps to go on with a part of it: neither the note of its version nor room set aside.
///
/// Unchecked: used by one executor at a time, as `AppendableFile` demands, but for two: `sync` may run on another while
/// bytes are appended, when the transfer's class has changed meanwhile, and `read` is asked for only what was written.
/// By then the file is there and stays the same.
final class FreshFile: AppendableFile, @unchecked Sendable {
    private let path: String
    private let files: any FileTree
    /// Attributes that every file gets.
    private let marks: [String: String]
    /// What is put beside its bytes.
    var note: PartialNote?
    /// Bytes of the whole; 0 when unknown.
    var total: Int64 = 0
    private var file: (any AppendableFile)?
    /// It came in one piece, and is to be synced before anybody hears of that.
    private(set) var isWhole = false
    /// Changes of its bytes that are done, and how many of them were when the last sync began.
    private let changes = Guarded((done: 0, synced: -1))

    init(_ path: String, in files: any FileTree, marks: [String: String]) {
        self.path = path
        self.files = files
        self.marks = marks
    }

    /// All there is of it is on stable storage.
    var isSynced: Bool { changes.withLock { $0.synced == $0.done } }

    var exists: Bool { file != nil }
    var length: Int64 { file?.length ?? 0 }
    var inode: UInt64 { file?.inode ?? 0 }
    var allocated: Int64 { get throws(SystemCallError) { try file?.allocated ?? 0 } }

    func append(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError) {
        defer { noteChange() }
        isWhole = Int64(bytes.count) == total && length == 0
        let file = try made(isWhole: isWhole)
        try file.append(bytes)
        if isWhole { file.beginSync() }
    }

    func beginSync() { file?.beginSync() }

    /// Syncs what came in one piece.
    func syncWhole() throws(SystemCallError) {
        do throws(SystemCallError) { try sync() } catch {
            // The kernel may have dropped what it could not write.
            try? file?.truncate(to: 0)
            throw error
        }
    }

    func truncate(to length: Int64) throws(SystemCallError) {
        defer { noteChange() }
        try file?.truncate(to: length)
    }

    func reserve(total: Int64) throws(SystemCallError) -> Bool { try made(isWhole: false).reserve(total: total) }

    func sync() throws(SystemCallError) {
        let (done, synced) = changes.withLock { $0 }
        guard synced != done else { return }
        try made(isWhole: true).sync()
        // What was changed meanwhile, that sync may have missed.
        changes.withLock { $0.synced = max($0.synced, done) }
    }

    /// Called once the bytes have changed: a sync that began before says nothing of them.
    private func noteChange() { changes.withLock { $0.done += 1 } }

    func setAttribute(name: String, value: String) throws(SystemCallError) {
        try file?.setAttribute(name: name, value: value)
    }

    func read(
        from offset: Int64, count: Int64, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws(SystemCallError) {
        try file?.read(from: offset, count: count, body)
    }

    /// The file on the disk.
    @discardableResult
    func made(isWhole: Bool) throws(SystemCallError) -> any AppendableFile {
        if let file { return file }
        let made = try files.openAppendable(path)
        do throws(SystemCallError) {
            for (name, value) in marks.sorted(by: { $0.key < $1.key }) {
                try made.setAttribute(name: name, value: value)
            }
            if !isWhole, let text = note?.text { try made.setAttribute(name: PartialNote.attribute, value: text) }
        } catch {
            // Without extended attributes a file cannot be marked, and starts over when it is interrupted.
        }
        file = made
        return made
    }
}
