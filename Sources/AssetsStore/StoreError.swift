// What can go wrong in the store, as one error.
internal import CSQLite

/// A refused or failed call of the store: a code to act on, what was being done, and what SQLite said.
package struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Another process has the database open.
        case busy
        /// No space, or a quota is used up.
        case full
        /// The disk refused a read, a write or a sync.
        case io
        /// The database is damaged.
        case corrupt
        /// There is one already: a live download of that app and identifier, a unique identifier, an open intent.
        case duplicate
        /// What should change is not there.
        case missing
        /// A value breaks a rule of the schema, for example a row above `Store.rowSizeMax`.
        case invalid
        /// Written by a newer version of the service.
        case newerSchema
        /// A database, but not of ours.
        case foreign
        /// The store was closed.
        case closed
        case other
    }

    /// What SQLite said.
    package struct Cause: Hashable, Sendable {
        /// The extended result code.
        package var result: Int32
        package var message: String
    }

    package var code: Code
    /// What was being done, with the names of what it concerned.
    package var context: String
    package var cause: Cause?

    package init(_ code: Code, _ context: String, cause: Cause? = nil) {
        self.code = code
        self.context = context
        self.cause = cause
    }

    /// An error out of an extended result code.
    init(result: Int32, message: String, context: String) {
        self.init(Self.code(for: result), context, cause: Cause(result: result, message: message))
    }

    package var description: String {
        guard let cause else { return context }
        return "\(context): \(cause.message) (SQLite \(cause.result))"
    }

    private static func code(for result: Int32) -> Code {
        switch result & 0xFF {
        case SQLITE_BUSY, SQLITE_LOCKED: .busy
        case SQLITE_FULL: .full
        case SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_PERM: .io
        case SQLITE_CORRUPT, SQLITE_NOTADB: .corrupt
        // Extended codes: 2067 and 1555 are violations of UNIQUE and PRIMARY KEY.
        case SQLITE_CONSTRAINT: result == 2067 || result == 1555 ? .duplicate : .invalid
        case SQLITE_TOOBIG, SQLITE_MISMATCH: .invalid
        default: .other
        }
    }
}
