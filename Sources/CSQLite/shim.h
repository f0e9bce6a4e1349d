#pragma once
#include <sqlite3.h>

// Swift sees neither variadic functions nor casts in macros.

/// Binds bytes that SQLite copies.
static inline int csqlite_bind_text(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_text(statement, index, (const char *)bytes, count, SQLITE_TRANSIENT);
}

static inline int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}

/// Sets one of the on-off options of a connection.
static inline int csqlite_set_option(sqlite3 *database, int option, int on) {
    return sqlite3_db_config(database, option, on, (int *)0);
}
