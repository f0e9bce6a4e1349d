// One compiled SQL statement.
internal import CSQLite

/// A compiled statement, finalized exactly once. Parameters count from 1, columns from 0, as in SQLite.
struct Statement: ~Copyable {
    private let handle: OpaquePointer

    /// Takes ownership of `handle`.
    init(owning handle: OpaquePointer) { self.handle = handle }

    deinit { sqlite3_finalize(handle) }

    // MARK: Parameters

    borrowing func bind(_ value: Int64, at index: Int32) throws(StoreError) {
        try check(sqlite3_bind_int64(handle, index, value))
    }

    borrowing func bind(_ value: Int64?, at index: Int32) throws(StoreError) {
        if let value { try bind(value, at: index) } else { try bindNull(at: index) }
    }

    borrowing func bind(_ value: Bool, at index: Int32) throws(StoreError) { try bind(value ? 1 : 0, at: index) }

    /// The bytes go to SQLite in one copy; a native Swift string needs no other.
    borrowing func bind(_ value: String, at index: Int32) throws(StoreError) {
        var value = value
        let result = value.withUTF8 { bytes in
            // SQLite takes a null pointer for NULL, also when the count is 0.
            csqlite_bind_text(
                handle, index, UnsafeRawPointer(bytes.baseAddress) ?? Self.noBytes, Int32(clamping: bytes.count))
        }
        try check(result)
    }

    borrowing func bind(_ value: String?, at index: Int32) throws(StoreError) {
        if let value { try bind(value, at: index) } else { try bindNull(at: index) }
    }

    borrowing func bind(_ value: [UInt8], at index: Int32) throws(StoreError) {
        let result = value.withUnsafeBytes { bytes in
            csqlite_bind_blob(handle, index, bytes.baseAddress ?? Self.noBytes, Int32(clamping: bytes.count))
        }
        try check(result)
    }

    borrowing func bindNull(at index: Int32) throws(StoreError) { try check(sqlite3_bind_null(handle, index)) }

    /// Never read: its address stands for "no bytes".
    private static var noBytes: UnsafeRawPointer { UnsafeRawPointer(("" as StaticString).utf8Start) }

    // MARK: Running

    /// True when a row is ready, false when the statement is done.
    borrowing func step() throws(StoreError) -> Bool {
        let result = sqlite3_step(handle)
        if result == SQLITE_ROW { return true }
        if result == SQLITE_DONE { return false }
        throw failure(result)
    }

    /// Runs a statement that gives no rows.
    borrowing func run() throws(StoreError) {
        while try step() {}
    }

    /// Ends a run, so that its read lock goes and the next one can begin; parameters keep their values.
    borrowing func reset() { sqlite3_reset(handle) }

    // MARK: Columns of the current row

    borrowing func isNull(at column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
    borrowing func int64(at column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
    borrowing func optionalInt64(at column: Int32) -> Int64? { isNull(at: column) ? nil : int64(at: column) }

    /// Empty for NULL.
    borrowing func text(at column: Int32) -> String {
        // The order matters: the count is that of the text only after the text was asked for.
        guard let bytes = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    borrowing func optionalText(at column: Int32) -> String? { isNull(at: column) ? nil : text(at: column) }

    /// Empty for NULL.
    borrowing func bytes(at column: Int32) -> [UInt8] {
        guard let bytes = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(handle, column))))
    }

    // MARK: Errors

    private borrowing func check(_ result: Int32) throws(StoreError) {
        if result != SQLITE_OK { throw failure(result) }
    }

    private borrowing func failure(_ result: Int32) -> StoreError {
        StoreError(result: result, message: String(cString: sqlite3_errmsg(sqlite3_db_handle(handle))), context: "SQL")
    }
}
