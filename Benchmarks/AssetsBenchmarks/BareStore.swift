// The peer of a Schedule call: the same rows committed by SQLite in a bare loop.
internal import AssetsOS
internal import BenchmarkKit
internal import CSQLite

/// A copy of a device's database, opened as the service opens it, into which rows are committed one by one.
///
/// Table, indexes and values are those of a download that the service itself has queued, and of the journal row that
/// tells of it: only numbers, identifiers and nothing else differ.
final class BareStore {
    /// As the service's store.
    private static let cacheKibibytes = 2048
    private static let logSizeMax = 16 << 20
    private static let frameSize = 4096 + 24

    /// A value of a row.
    private enum Value {
        case null
        case integer(Int64)
        case text([UInt8])
    }

    private struct Row {
        var columns: [String]
        var values: [Value]
    }

    private let database: OpaquePointer
    private var downloadInsert: OpaquePointer?
    private var journalInsert: OpaquePointer?
    private var begin: OpaquePointer?
    private var commit: OpaquePointer?
    private var download = Row(columns: [], values: [])
    private var journal = Row(columns: [], values: [])
    private var nextSequence: Int64 = 0
    private var nextJournal: Int64 = 0
    private var logFrames: Int32 = 0

    /// - Parameter path: a copy of the database of a device with one queued download, closed by its service.
    init(path: String) throws {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
        let result = sqlite3_open_v2(path, &opened, flags, nil)
        guard let opened, result == SQLITE_OK else { throw BenchError("\(path) cannot be opened by SQLite") }
        database = opened
        for pragma in [
            "locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON",
            "temp_store = MEMORY", "mmap_size = 0", "cache_size = -\(Self.cacheKibibytes)",
            "journal_size_limit = \(Self.logSizeMax)", "trusted_schema = OFF", "cell_size_check = ON",
        ] { try execute("PRAGMA \(pragma)") }
        download = try row("SELECT * FROM downloads WHERE kind = 'url' ORDER BY sequence DESC LIMIT 1")
        journal = try row("SELECT * FROM journal WHERE event = 'download-queued' ORDER BY number DESC LIMIT 1")
        nextSequence = try integer(download, "sequence") + 1
        nextJournal = try integer(row("SELECT max(number) AS number FROM journal"), "number") + 1
        downloadInsert = try prepare(insert("downloads", download))
        journalInsert = try prepare(insert("journal", journal))
        begin = try prepare("BEGIN IMMEDIATE")
        commit = try prepare("COMMIT")
        countLogFrames()
    }

    deinit {
        for statement in [downloadInsert, journalInsert, begin, commit] { sqlite3_finalize(statement) }
        sqlite3_close_v2(database)
    }

    private func countLogFrames() {
        sqlite3_wal_hook(
            database,
            { context, _, _, frames in
                if let context { Unmanaged<BareStore>.fromOpaque(context).takeUnretainedValue().logFrames = frames }
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Commits one download with its journal row: durable when it returns.
    func queue(id: String, identifier: String) throws {
        try set(&download, "sequence", .integer(nextSequence))
        try set(&download, "id", .text(Array(id.utf8)))
        try set(&download, "identifier", .text(Array(identifier.utf8)))
        try set(&journal, "number", .integer(nextJournal))
        try set(&journal, "download", .text(Array(id.utf8)))
        try set(&journal, "detail", .text(Array(identifier.utf8)))
        try run(begin)
        try run(downloadInsert, download)
        try run(journalInsert, journal)
        try run(commit)
        nextSequence += 1
        nextJournal += 1
        if Int(logFrames) * Self.frameSize > Self.logSizeMax {
            sqlite3_wal_checkpoint_v2(database, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
            logFrames = 0
        }
    }

    // MARK: Statements

    private func failure(_ what: String) -> BenchError {
        BenchError("SQLite cannot \(what.prefix(60)): \(String(cString: sqlite3_errmsg(database)))")
    }

    private func execute(_ sql: String) throws {
        guard sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK else { throw failure(sql) }
    }

    private func prepare(_ sql: String) throws -> OpaquePointer {
        var statement: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        guard sqlite3_prepare_v3(database, sql, -1, flags, &statement, nil) == SQLITE_OK, let statement else {
            throw failure(sql)
        }
        return statement
    }

    private func insert(_ table: String, _ row: Row) -> String {
        let places = row.columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        return "INSERT INTO \(table)(\(row.columns.joined(separator: ", "))) VALUES (\(places))"
    }

    private func run(_ statement: OpaquePointer?, _ row: Row? = nil) throws {
        defer { sqlite3_reset(statement) }
        if let row {
            for (index, value) in row.values.enumerated() {
                let place = Int32(index + 1)
                switch value {
                case .null: sqlite3_bind_null(statement, place)
                case .integer(let number): sqlite3_bind_int64(statement, place, number)
                case .text(let bytes):
                    _ = bytes.withUnsafeBytes {
                        csqlite_bind_text(statement, place, $0.baseAddress, Int32($0.count))
                    }
                }
            }
        }
        guard sqlite3_step(statement) == SQLITE_DONE else { throw failure("commit a row") }
    }

    // MARK: Rows

    private func row(_ sql: String) throws -> Row {
        let statement = try prepare(sql)
        defer { sqlite3_finalize(statement) }
        guard sqlite3_step(statement) == SQLITE_ROW else { throw BenchError("there is no row for \(sql)") }
        var row = Row(columns: [], values: [])
        for index in 0..<sqlite3_column_count(statement) {
            row.columns.append(String(cString: sqlite3_column_name(statement, index)))
            switch sqlite3_column_type(statement, index) {
            case SQLITE_NULL: row.values.append(.null)
            case SQLITE_INTEGER: row.values.append(.integer(sqlite3_column_int64(statement, index)))
            case SQLITE_TEXT:
                let bytes = UnsafeBufferPointer(
                    start: sqlite3_column_text(statement, index), count: Int(sqlite3_column_bytes(statement, index)))
                row.values.append(.text(Array(bytes)))
            default: throw BenchError("a value of \(sql) is neither number nor text")
            }
        }
        return row
    }

    private func place(_ row: Row, _ column: String) throws -> Int {
        guard let index = row.columns.firstIndex(of: column) else {
            throw BenchError("the device's database has no column \(column); this bench fits another schema")
        }
        return index
    }

    private func integer(_ row: Row, _ column: String) throws -> Int64 {
        guard case .integer(let number) = row.values[try place(row, column)] else {
            throw BenchError("\(column) is no number")
        }
        return number
    }

    private func set(_ row: inout Row, _ column: String, _ value: Value) throws {
        row.values[try place(row, column)] = value
    }
}
