// An open device database with its compiled statements: what the store's methods work on.
internal import Glibc

/// Belongs to one store and is used on its executor only.
final class Database {
    private let connection: Connection
    /// Boxes, because arrays cannot hold what cannot be copied; by `Query.rawValue`.
    private var statements: [Box?] = Array(repeating: nil, count: Query.allCases.count)
    /// What the next rows get. Given by us and not by SQLite: a number is not used again although its row was removed.
    var counters = Counters()

    struct Counters {
        var nextSequence: Int64 = 1
        var firstJournal: Int64 = 1
        var nextJournal: Int64 = 1
        /// Rows of the journal: numbers have no gaps, because rows are only removed from the front.
        var journalCount: Int64 { nextJournal - firstJournal }
    }

    private final class Box {
        let statement: Statement
        init(_ statement: consuming Statement) { self.statement = statement }
    }

    /// Opens the database, makes it when missing and brings it to today's schema.
    init(path: String, vfs: String?, schema: Schema) throws(StoreError) {
        connection = try Connection(path: path, vfs: vfs)
        // One process has the database; so no shared memory is needed, and a second service is refused.
        try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        try connection.execute("PRAGMA trusted_schema = OFF")
        try connection.execute("PRAGMA cell_size_check = ON")
        try schema.migrate(connection)
        let mode = try connection.text("PRAGMA journal_mode = WAL")
        guard mode == "wal" else { throw StoreError(.other, "open \(path): no write-ahead log, but \(mode)") }
        try connection.execute("PRAGMA synchronous = FULL")
        try connection.execute("PRAGMA foreign_keys = ON")
        try connection.execute("PRAGMA temp_store = MEMORY")
        try connection.execute("PRAGMA mmap_size = 0")
        try connection.execute("PRAGMA cache_size = -\(Store.cacheSizeMax / 1024)")
        try connection.execute("PRAGMA journal_size_limit = \(Store.logSizeMax)")
        try readCounters()
        // A log that was not written back tells of a kill or a power cut: that is the time to look for damage.
        if connection.logFileSize > 0 { try findDamage() }
    }

    private func readCounters() throws(StoreError) {
        counters.nextSequence = try connection.number("SELECT max(sequence) FROM downloads") + 1
        counters.nextJournal = try connection.number("SELECT max(number) FROM journal") + 1
        let first = try connection.number("SELECT min(number) FROM journal")
        counters.firstJournal = first == 0 ? counters.nextJournal : first
    }

    /// Reads every page once.
    private func findDamage() throws(StoreError) {
        let answer = try connection.text("PRAGMA quick_check(1)")
        if answer != "ok" { throw StoreError(.corrupt, "check the database: \(answer)") }
    }

    /// Lends the statement of `query`, compiled at its first use, and ends its run afterwards.
    func use<R>(_ query: Query, _ body: (borrowing Statement) throws(StoreError) -> R) throws(StoreError) -> R {
        let box: Box
        if let known = statements[query.rawValue] {
            box = known
        } else {
            box = Box(try connection.prepare(query.sql))
            statements[query.rawValue] = box
        }
        defer { box.statement.reset() }
        do throws(StoreError) {
            return try body(box.statement)
        } catch {
            var error = error
            if error.context == "SQL" { error.context = "\(query)" }
            throw error
        }
    }

    /// All rows of a query.
    func rows<R>(
        _ query: Query, bind: (borrowing Statement) throws(StoreError) -> Void = { _ in },
        read: (borrowing Statement) throws(StoreError) -> R
    ) throws(StoreError) -> [R] {
        try use(query) { statement throws(StoreError) in
            try bind(statement)
            var rows: [R] = []
            while try statement.step() { rows.append(try read(statement)) }
            return rows
        }
    }

    /// The first row of a query.
    func row<R>(
        _ query: Query, bind: (borrowing Statement) throws(StoreError) -> Void,
        read: (borrowing Statement) throws(StoreError) -> R
    ) throws(StoreError) -> R? {
        try use(query) { statement throws(StoreError) in
            try bind(statement)
            return try statement.step() ? try read(statement) : nil
        }
    }

    /// Runs a query that gives no rows; returns how many rows it touched.
    @discardableResult
    func run(_ query: Query, bind: (borrowing Statement) throws(StoreError) -> Void = { _ in }) throws(StoreError)
        -> Int
    {
        try use(query) { statement throws(StoreError) in
            try bind(statement)
            try statement.run()
        }
        return connection.changedRows
    }

    /// Runs `body` in one write transaction: all of it is on stable storage afterwards, or nothing of it was done.
    func transaction<R>(_ body: () throws(StoreError) -> R) throws(StoreError) -> R {
        let before = counters
        try run(.begin)
        do throws(StoreError) {
            let value = try body()
            try run(.commit)
            return value
        } catch {
            counters = before
            // Some errors have already rolled back.
            if connection.isInTransaction { _ = try? run(.rollback) }
            throw error
        }
    }

    /// Bytes in the write-ahead log.
    var logSize: Int { connection.writeAheadFrames * Self.frameSize }

    func checkpoint(_ mode: Connection.Checkpoint) throws(StoreError) { try connection.checkpoint(mode) }

    /// A page of 4 KiB and its header.
    private static let frameSize = 4096 + 24
}

extension Database {
    /// Moves a damaged database and its log to the first free `<path>.damaged-<n>`, so that both can be examined.
    static func setAside(_ path: String) throws(StoreError) -> String {
        for number in 1...Store.damagedCopiesMax {
            let copy = "\(path).damaged-\(number)"
            // Both get their second name before they lose their first, so that a kill in between loses nothing and
            // never leaves the one without the other.
            guard try link(path, copy) else { continue }
            for suffix in logSuffixes { _ = try link(path + suffix, copy + suffix) }
            for name in [path] + logSuffixes.map({ path + $0 }) where unlink(name) != 0 && errno != ENOENT {
                throw failure("unlink", name)
            }
            return copy
        }
        throw StoreError(.full, "set \(path) aside: there are \(Store.damagedCopiesMax) damaged copies already")
    }

    /// What SQLite keeps beside a database.
    private static let logSuffixes = ["-wal", "-journal"]

    /// False when the second name is taken; a missing file is left out.
    private static func link(_ path: String, _ copy: String) throws(StoreError) -> Bool {
        if Glibc.link(path, copy) == 0 || errno == ENOENT { return true }
        guard errno == EEXIST else { throw failure("link", path) }
        return false
    }

    private static func failure(_ call: String, _ path: String) -> StoreError {
        StoreError(.io, "set \(path) aside: \(call): \(String(cString: strerror(errno)))")
    }
}
