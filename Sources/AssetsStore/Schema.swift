// The tables, and how a database gets them.

/// The steps that lead from an empty file to today's tables. `PRAGMA user_version` says how many were taken.
///
/// A step that was released never changes: what comes later is a step of its own.
struct Schema {
    let steps: [String]

    static let current = Schema(steps: [first, digests, places, occasions, extensions, givenUp])

    /// Marks a database as ours: "BAst".
    static let applicationID: Int64 = 0x4241_7374

    /// Takes the steps that are missing, each in one transaction.
    func migrate(_ connection: borrowing Connection) throws(StoreError) {
        let version = try connection.number("PRAGMA user_version")
        let application = try connection.number("PRAGMA application_id")
        if application != Self.applicationID {
            let tables = try connection.number("SELECT count(*) FROM sqlite_schema")
            guard version == 0, application == 0, tables == 0 else {
                throw StoreError(.foreign, "open the database: it was made by another program")
            }
        }
        guard version >= 0, version <= steps.count else {
            throw StoreError(
                .newerSchema, "open the database: it has schema \(version), this service knows \(steps.count)")
        }
        for index in Int(version)..<steps.count {
            do throws(StoreError) {
                try connection.execute("BEGIN IMMEDIATE")
                try connection.execute(steps[index])
                try connection.execute("PRAGMA application_id = \(Self.applicationID)")
                try connection.execute("PRAGMA user_version = \(index + 1)")
                try connection.execute("COMMIT")
            } catch {
                if connection.isInTransaction { try? connection.execute("ROLLBACK") }
                throw error
            }
        }
    }

    /// Times are microseconds of the calendar clock. States of a download: 0 waiting, 1 finishing, 2 finished,
    /// 3 failed; below 2 it is live, from 2 on a message.
    private static let first = """
        CREATE TABLE apps(
            id TEXT PRIMARY KEY CHECK (id <> ''),
            description TEXT NOT NULL,
            buildFolder TEXT NOT NULL,
            source TEXT NOT NULL,
            gate TEXT NOT NULL,
            installedAt INTEGER NOT NULL,
            launchedAt INTEGER,
            essential INTEGER NOT NULL,
            nonEssential INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE installations(
            id TEXT PRIMARY KEY CHECK (id <> ''),
            source TEXT NOT NULL,
            kind TEXT NOT NULL,
            phase TEXT NOT NULL,
            app TEXT NOT NULL,
            buildFolder TEXT NOT NULL,
            startedAt INTEGER NOT NULL,
            errorCode INTEGER,
            errorReason TEXT,
            errorRemedy TEXT
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE downloads(
            sequence INTEGER PRIMARY KEY,
            id TEXT NOT NULL CHECK (id <> ''),
            app TEXT NOT NULL CHECK (app <> ''),
            identifier TEXT NOT NULL,
            url TEXT NOT NULL,
            method TEXT NOT NULL,
            headers TEXT,
            body BLOB,
            appGroup TEXT NOT NULL,
            isEssential INTEGER NOT NULL,
            size INTEGER NOT NULL,
            priority INTEGER NOT NULL,
            kind TEXT NOT NULL,
            transferClass INTEGER NOT NULL,
            state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
            target TEXT,
            inode INTEGER,
            length INTEGER,
            failureDomain TEXT,
            failureCode INTEGER,
            failureReason TEXT,
            attempts INTEGER NOT NULL,
            failures INTEGER NOT NULL,
            firstFailure INTEGER,
            notBefore INTEGER,
            reason TEXT NOT NULL,
            detail TEXT NOT NULL,
            etag TEXT,
            lastModified TEXT,
            total INTEGER,
            syncedOffset INTEGER,
            storageEpoch TEXT,
            received INTEGER NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX downloadsByID ON downloads(id);
        CREATE UNIQUE INDEX liveByIdentifier ON downloads(app, identifier) WHERE state < 2;
        CREATE INDEX liveByApp ON downloads(app, sequence) WHERE state < 2;
        CREATE INDEX finishing ON downloads(sequence) WHERE state = 1;
        CREATE INDEX messagesByApp ON downloads(app, sequence) WHERE state >= 2;
        CREATE INDEX queue ON downloads(transferClass, app, priority DESC, sequence, state, notBefore, size)
            WHERE state < 2;
        CREATE INDEX delayed ON downloads(transferClass, notBefore) WHERE state = 0 AND notBefore IS NOT NULL;

        CREATE TABLE intents(
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            kind TEXT NOT NULL,
            payload TEXT NOT NULL
        ) STRICT;

        CREATE TABLE settings(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

        CREATE TABLE journal(
            number INTEGER PRIMARY KEY,
            time INTEGER NOT NULL,
            event TEXT NOT NULL,
            reason TEXT NOT NULL,
            app TEXT NOT NULL,
            download TEXT NOT NULL,
            detail TEXT NOT NULL
        ) STRICT;
        """

    /// sha256 is what the app declared, digest what the finished file was found to come to, sentDigest what the server says
    /// of the version of the partial file.
    private static let digests = """
        ALTER TABLE downloads ADD COLUMN sha256 BLOB;
        ALTER TABLE downloads ADD COLUMN digest TEXT;
        ALTER TABLE downloads ADD COLUMN sentDigest TEXT;
        ALTER TABLE downloads ADD COLUMN isSecondTry INTEGER;
        """

    /// Places in the queue: who stepped back for others goes behind those that waited then.
    private static let places = """
        ALTER TABLE downloads ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
        UPDATE downloads SET place = sequence;
        DROP INDEX queue;
        CREATE INDEX queue ON downloads(transferClass, app, priority DESC, place, state, notBefore, size)
            WHERE state < 2;
        """

    /// When extensions are asked, and which of them are being asked; how often an extension died in a message's callback.
    private static let occasions = """
        ALTER TABLE downloads ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;

        CREATE TABLE plans(
            app TEXT PRIMARY KEY CHECK (app <> ''),
            lastUse INTEGER NOT NULL,
            lastCheck INTEGER NOT NULL,
            due INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE events(
            app TEXT PRIMARY KEY CHECK (app <> ''),
            request INTEGER NOT NULL,
            origin TEXT NOT NULL,
            manifest TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// Runs of extensions, for their developers, and what each has used of its day: a `RuntimeLedger` as JSON. Runtimes are
    /// microseconds.
    private static let extensions = """
        CREATE TABLE extensionRuns(
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE CHECK (id <> ''),
            app TEXT NOT NULL,
            launchedAt INTEGER NOT NULL,
            endedAt INTEGER,
            calls INTEGER NOT NULL,
            runtime INTEGER NOT NULL,
            memoryPeak INTEGER NOT NULL,
            warnings TEXT NOT NULL,
            reason TEXT NOT NULL,
            detail TEXT NOT NULL
        ) STRICT;
        CREATE INDEX runsByApp ON extensionRuns(app, number);

        CREATE TABLE extensionRuntimes(
            app TEXT PRIMARY KEY CHECK (app <> ''),
            ledger TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// Messages that were given up, and their files, which stay.
    private static let givenUp = """
        CREATE TABLE givenUp(
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE CHECK (id <> ''),
            app TEXT NOT NULL,
            identifier TEXT NOT NULL,
            time INTEGER NOT NULL,
            path TEXT,
            inode INTEGER,
            detail TEXT NOT NULL
        ) STRICT;
        CREATE INDEX givenUpByApp ON givenUp(app, number);
        """
}
