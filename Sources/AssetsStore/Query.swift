// Every statement that the store runs more than once: compiled at its first use, kept until the store closes.
internal import AssetsModel

/// Names a statement of the cache.
enum Query: Int, CaseIterable {
    case begin, commit, rollback
    case saveApp, removeApp, removeLiveOfApp, removeMessagesOfApp, apps, app
    case saveInstallation, removeInstallation, installations
    case insertDownload, setState, setClass, setWait, setResume, stepBack, setMessageWait, removeDownload
    case downloadByID, liveDownload
    case demoteForeground, releaseWaits, setBackWaits
    case downloads, downloadsOfApp, live, finishing, liveOfApp, messages, messagesOfApp
    case nextQueuedApp, queueOfApp, earliestNotBefore, counts
    case saveRun, trimRuns, removeRuns, runsOfApp, openRuns, saveRuntime, removeRuntime, runtimes
    case saveGivenUp, trimGivenUp, removeGivenUp, removeGivenUpOfApp, givenUpOfApp
    case setSetting, removeSetting, settings
    case savePlan, removePlan, plans, openEvent, closeEvent, events
    case openIntent, closeIntent, intents
    case insertJournal, journal, journalOfApp, lastJournalTime, trimJournal

    var sql: String {
        switch self {
        case .begin: "BEGIN IMMEDIATE"
        case .commit: "COMMIT"
        case .rollback: "ROLLBACK"
        default: appSQL ?? downloadSQL ?? listSQL ?? extensionSQL ?? otherSQL
        }
    }

    private var appSQL: String? {
        switch self {
        case .saveApp: "INSERT OR REPLACE INTO apps(\(Self.appColumns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        case .removeApp: "DELETE FROM apps WHERE id = ?1"
        // Two statements, because each partial index knows one half of an app's downloads.
        case .removeLiveOfApp: "DELETE FROM downloads WHERE app = ?1 AND state < 2"
        case .removeMessagesOfApp: "DELETE FROM downloads WHERE app = ?1 AND state >= 2"
        case .apps: "SELECT \(Self.appColumns) FROM apps ORDER BY id"
        case .app: "SELECT \(Self.appColumns) FROM apps WHERE id = ?1"
        case .saveInstallation:
            "INSERT OR REPLACE INTO installations(\(Self.installationColumns)) "
                + "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        case .removeInstallation: "DELETE FROM installations WHERE id = ?1"
        case .installations: "SELECT \(Self.installationColumns) FROM installations ORDER BY startedAt, id"
        default: nil
        }
    }

    private var downloadSQL: String? {
        switch self {
        case .insertDownload: "INSERT INTO downloads(\(DownloadColumn.list)) VALUES (\(DownloadColumn.parameters))"
        case .setState:
            """
            UPDATE downloads SET state = ?2, target = ?3, inode = ?4, length = ?5, digest = ?6, failureDomain = ?7, \
            failureCode = ?8, failureReason = ?9 WHERE id = ?1
            """
        case .demoteForeground: "UPDATE downloads SET transferClass = 0 WHERE transferClass = 1 AND state < 2"
        case .releaseWaits:
            """
            UPDATE downloads SET notBefore = NULL, failures = 0, \
            firstFailure = iif(reason = '\(Reason.offline.rawValue)' AND transferClass = 0 AND failures = 0, NULL, firstFailure) \
            WHERE sequence IN \
            (SELECT sequence FROM downloads INDEXED BY delayed \
            WHERE state = 0 AND notBefore IS NOT NULL AND reason = ?1 LIMIT ?2)
            """
        case .setBackWaits:
            """
            UPDATE downloads SET notBefore = notBefore - ?1, firstFailure = firstFailure - ?1 \
            WHERE notBefore IS NOT NULL OR firstFailure IS NOT NULL
            """
        case .setClass: "UPDATE downloads SET transferClass = ?2 WHERE id = ?1"
        case .setWait:
            """
            UPDATE downloads SET notBefore = ?2, reason = ?3, detail = ?4, failures = ?5, firstFailure = ?6, \
            attempts = ?7 WHERE id = ?1
            """
        case .setResume:
            """
            UPDATE downloads SET etag = ?2, lastModified = ?3, total = ?4, syncedOffset = ?5, storageEpoch = ?6, \
            sentDigest = ?7, isSecondTry = ?8, received = ?9 WHERE id = ?1
            """
        case .stepBack: "UPDATE downloads SET place = ?2 WHERE id = ?1"
        case .setMessageWait:
            "UPDATE downloads SET deaths = ?2, notBefore = ?3, detail = ?4 WHERE id = ?1 AND state >= 2"
        case .removeDownload: "DELETE FROM downloads WHERE id = ?1"
        case .downloadByID: "SELECT \(DownloadColumn.list) FROM downloads WHERE id = ?1"
        case .liveDownload:
            "SELECT \(DownloadColumn.list) FROM downloads WHERE app = ?1 AND identifier = ?2 AND state < 2"
        default: nil
        }
    }

    private var listSQL: String? {
        let select = "SELECT \(DownloadColumn.list) FROM downloads"
        let page = "ORDER BY sequence LIMIT ?3"
        return switch self {
        case .downloads: "\(select) WHERE sequence > ?2 \(page)"
        // Merges the two partial indexes; neither half is sorted.
        case .downloadsOfApp:
            """
            \(select) INDEXED BY liveByApp WHERE app = ?1 AND sequence > ?2 AND state < 2 UNION ALL \
            \(select) INDEXED BY messagesByApp WHERE app = ?1 AND sequence > ?2 AND state >= 2 \(page)
            """
        case .live: "\(select) WHERE sequence > ?2 AND state < 2 \(page)"
        case .finishing: "\(select) INDEXED BY finishing WHERE sequence > ?2 AND state = 1 \(page)"
        case .liveOfApp: "\(select) INDEXED BY liveByApp WHERE app = ?1 AND sequence > ?2 AND state < 2 \(page)"
        case .messages: "\(select) WHERE sequence > ?2 AND state >= 2 \(page)"
        case .messagesOfApp:
            "\(select) INDEXED BY messagesByApp WHERE app = ?1 AND sequence > ?2 AND state >= 2 \(page)"
        // A walk from app to app: how much each has queued costs nothing.
        case .nextQueuedApp:
            """
            SELECT min(app) FROM downloads INDEXED BY queue WHERE transferClass = ?1 AND app > ?2 AND state < 2
            """
        case .queueOfApp:
            """
            SELECT id, url, priority, place, iif(total > 0, total, size), received FROM downloads INDEXED BY queue \
            WHERE transferClass = ?1 AND app = ?2 AND state < 2 AND state = 0 \
            AND (notBefore IS NULL OR notBefore <= ?3) ORDER BY priority DESC, place LIMIT ?4
            """
        case .earliestNotBefore:
            """
            SELECT min(notBefore) FROM downloads INDEXED BY delayed \
            WHERE transferClass = ?1 AND notBefore > ?2 AND state = 0 AND notBefore IS NOT NULL
            """
        // total() instead of sum(): sizes that apps made up must not end in an overflow error.
        case .counts:
            """
            SELECT count(*), CAST(total(size) AS INTEGER) FROM downloads INDEXED BY queue \
            WHERE app = ?1 AND transferClass = ?2 AND state < 2
            """
        default: nil
        }
    }

    private var extensionSQL: String? {
        switch self {
        // A run keeps the number that it got when it began.
        case .saveRun:
            """
            INSERT INTO extensionRuns(\(Self.runColumns)) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 \
            WHERE EXISTS (SELECT 1 FROM apps WHERE apps.id = ?2) ON CONFLICT(id) DO UPDATE SET endedAt = ?4, \
            calls = ?5, runtime = ?6, memoryPeak = ?7, warnings = ?8, reason = ?9, detail = ?10
            """
        case .trimRuns:
            """
            DELETE FROM extensionRuns WHERE app = ?1 AND number <= \
            (SELECT number FROM extensionRuns WHERE app = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)
            """
        case .removeRuns: "DELETE FROM extensionRuns WHERE app = ?1"
        case .runsOfApp: "SELECT \(Self.runColumns) FROM extensionRuns WHERE app = ?1 ORDER BY number DESC LIMIT ?2"
        case .openRuns: "SELECT \(Self.runColumns) FROM extensionRuns WHERE endedAt IS NULL AND reason = 'none'"
        case .saveRuntime:
            """
            INSERT OR REPLACE INTO extensionRuntimes(app, ledger) SELECT ?1, ?2 \
            WHERE EXISTS (SELECT 1 FROM apps WHERE id = ?1)
            """
        case .removeRuntime: "DELETE FROM extensionRuntimes WHERE app = ?1"
        case .runtimes: "SELECT app, ledger FROM extensionRuntimes"
        default: givenUpSQL
        }
    }

    private var givenUpSQL: String? {
        switch self {
        case .saveGivenUp:
            """
            INSERT OR REPLACE INTO givenUp(\(Self.givenUpColumns)) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 \
            WHERE EXISTS (SELECT 1 FROM apps WHERE apps.id = ?2)
            """
        case .trimGivenUp:
            """
            DELETE FROM givenUp WHERE app = ?1 AND number <= \
            (SELECT number FROM givenUp WHERE app = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)
            """
        case .removeGivenUp: "DELETE FROM givenUp WHERE id = ?1"
        case .removeGivenUpOfApp: "DELETE FROM givenUp WHERE app = ?1"
        case .givenUpOfApp: "SELECT \(Self.givenUpColumns) FROM givenUp WHERE app = ?1 ORDER BY number"
        default: nil
        }
    }

    private var otherSQL: String {
        switch self {
        case .setSetting: "INSERT OR REPLACE INTO settings(name, value) VALUES (?1, ?2)"
        case .removeSetting: "DELETE FROM settings WHERE name = ?1"
        case .settings: "SELECT name, value FROM settings"
        case .savePlan: "INSERT OR REPLACE INTO plans(app, lastUse, lastCheck, due) VALUES (?1, ?2, ?3, ?4)"
        case .removePlan: "DELETE FROM plans WHERE app = ?1"
        case .plans: "SELECT app, lastUse, lastCheck, due FROM plans"
        case .openEvent: "INSERT INTO events(app, request, origin, manifest) VALUES (?1, ?2, ?3, ?4)"
        case .closeEvent: "DELETE FROM events WHERE app = ?1"
        case .events: "SELECT app, request, origin, manifest FROM events"
        case .openIntent: "INSERT INTO intents(id, kind, payload) VALUES (?1, ?2, ?3)"
        case .closeIntent: "DELETE FROM intents WHERE id = ?1"
        case .intents: "SELECT id, kind, payload FROM intents ORDER BY number"
        case .insertJournal: "INSERT INTO journal(\(Self.journalColumns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
        case .journal: "SELECT \(Self.journalColumns) FROM journal WHERE number > ?2 ORDER BY number LIMIT ?3"
        // No index by app: it would cost every row, and a walk through the bounded journal costs milliseconds.
        case .journalOfApp:
            "SELECT \(Self.journalColumns) FROM journal WHERE number > ?2 AND app = ?1 ORDER BY number LIMIT ?3"
        case .lastJournalTime: "SELECT time FROM journal ORDER BY number DESC LIMIT 1"
        case .trimJournal: "DELETE FROM journal WHERE number < ?1"
        default: preconditionFailure("no SQL for \(self)")
        }
    }

    private static let appColumns =
        "id, description, buildFolder, source, gate, installedAt, launchedAt, essential, nonEssential"
    private static let installationColumns =
        "id, source, kind, phase, app, buildFolder, startedAt, errorCode, errorReason, errorRemedy"
    private static let runColumns =
        "id, app, launchedAt, endedAt, calls, runtime, memoryPeak, warnings, reason, detail"
    private static let givenUpColumns = "id, app, identifier, time, path, inode, detail"
    private static let journalColumns = "number, time, event, reason, app, download, detail"
}
