// One connection to a SQLite database.
internal import CSQLite

/// An open database, closed exactly once.
///
/// Closing writes nothing back: whatever was committed stays in the write-ahead log for the next one who opens.
struct Connection: ~Copyable {
    /// How far a checkpoint goes.
    enum Checkpoint { case passive, truncate }

    /// A process that was killed lets go of the device before the kernel takes its database away: so long the next one
    /// waits for it. In milliseconds.
    private static let busyWait: Int32 = 500

    private let handle: OpaquePointer
    /// Frames in the write-ahead log after the last commit; on the heap because the commit hook writes it.
    private let logFrames: UnsafeMutablePointer<Int32>

    init(path: String, vfs: String?) throws(StoreError) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let result = sqlite3_open_v2(path, &opened, flags, vfs)
        guard let opened, result == SQLITE_OK else {
            let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            sqlite3_close_v2(opened)
            throw StoreError(result: result, message: message, context: "open \(path)")
        }
        handle = opened
        logFrames = .allocate(capacity: 1)
        logFrames.initialize(to: 0)
        sqlite3_busy_timeout(handle, Self.busyWait)
        _ = csqlite_set_option(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Int32(Store.rowSizeMax))
        // Having a hook of our own also turns SQLite's own checkpoints off.
        sqlite3_wal_hook(
            handle,
            { context, _, _, frames in
                context?.assumingMemoryBound(to: Int32.self).pointee = frames
                return SQLITE_OK
            }, logFrames)
    }

    deinit {
        sqlite3_close_v2(handle)
        logFrames.deallocate()
    }

    var writeAheadFrames: Int { Int(logFrames.pointee) }
    /// Bytes of the write-ahead log's file, also those that were already written back.
    var logFileSize: Int64 {
        var file: UnsafeMutablePointer<sqlite3_file>?
        var size: sqlite3_int64 = 0
        guard sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK,
            let file, let methods = file.pointee.pMethods, methods.pointee.xFileSize(file, &size) == SQLITE_OK
        else { return 0 }
        return size
    }
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }
    /// Rows that the last INSERT, UPDATE or DELETE touched.
    var changedRows: Int { Int(sqlite3_changes64(handle)) }

    borrowing func prepare(_ sql: String) throws(StoreError) -> Statement {
        var statement: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        let result = sqlite3_prepare_v3(handle, sql, -1, flags, &statement, nil)
        guard let statement, result == SQLITE_OK else { throw failure(result, "prepare \(sql.prefix(60))") }
        return Statement(owning: statement)
    }

    /// Runs statements that give no rows, or whose rows do not matter.
    borrowing func execute(_ sql: String) throws(StoreError) {
        let result = sqlite3_exec(handle, sql, nil, nil, nil)
        if result != SQLITE_OK { throw failure(result, "run \(sql.prefix(60))") }
    }

    /// The number in the first column of the first row; 0 without a row.
    borrowing func number(_ sql: String) throws(StoreError) -> Int64 {
        try first(sql) { row in row.int64(at: 0) } ?? 0
    }

    /// The text in the first column of the first row; empty without a row.
    borrowing func text(_ sql: String) throws(StoreError) -> String {
        try first(sql) { row in row.text(at: 0) } ?? ""
    }

    /// Runs to the end: what a statement writes is committed, or fails, only after its last row.
    private borrowing func first<R>(_ sql: String, _ read: (borrowing Statement) -> R) throws(StoreError) -> R? {
        let statement = try prepare(sql)
        guard try statement.step() else { return nil }
        let value = read(statement)
        try statement.run()
        return value
    }

    /// Writes the log back into the database; `truncate` also cuts the log to nothing.
    borrowing func checkpoint(_ mode: Checkpoint) throws(StoreError) {
        let number = mode == .passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
        let result = sqlite3_wal_checkpoint_v2(handle, nil, number, nil, nil)
        if result != SQLITE_OK { throw failure(result, "checkpoint") }
        logFrames.pointee = 0
    }

    private borrowing func failure(_ result: Int32, _ context: String) -> StoreError {
        StoreError(result: result, message: String(cString: sqlite3_errmsg(handle)), context: context)
    }
}
