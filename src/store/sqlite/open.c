/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening the database: whether it is ours, its format, its tables, its
 * statements. Where the file lies is the business of database_file.c.
 */
#include "base/error.h"
#include "os/clock.h"
#include "store/sqlite/sqlite.h"

#include <string.h>
#include <time.h>

#define APPLICATION_ID 0x6761766c /* "gavl", in the header of the file */
#define OPEN_TIMEOUT (5 * NS_PER_S)
#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)
#define LOG_PAGES 2000                           /* checked in when the log has grown to so many */
#define LOG_BYTES (32 + LOG_PAGES * (24 + 1024)) /* a header, and a page with its own header each */

/*
 * Pages of 1 KiB, because a batch of renewals dirties many pages and each
 * goes to the log whole. Keys without a row id, so that a row is found in one
 * tree and not in two.
 */
#define MARKS                                                                                                \
    "CREATE TABLE IF NOT EXISTS marks (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) WITHOUT "     \
    "ROWID;"                                                                                                 \
    "INSERT OR IGNORE INTO marks VALUES ('leaves_whole', 1);"

static const char schema[] =
    "CREATE TABLE groups ("
    " name TEXT NOT NULL PRIMARY KEY, format INTEGER NOT NULL, epoch INTEGER NOT NULL, version INTEGER NOT "
    "NULL,"
    " nonce_high INTEGER NOT NULL, nonce_low INTEGER NOT NULL, lease_ms INTEGER NOT NULL,"
    " since_wall_ms INTEGER NOT NULL, renewed_wall_ms INTEGER NOT NULL, held INTEGER NOT NULL,"
    " boot_id TEXT NOT NULL, pid INTEGER NOT NULL, pid_ns INTEGER NOT NULL, start_ticks INTEGER NOT NULL,"
    " holder TEXT NOT NULL, address TEXT NOT NULL, successor TEXT NOT NULL, wish_epoch INTEGER NOT NULL,"
    " wish_force INTEGER NOT NULL, wish_successor TEXT NOT NULL, applied_at INTEGER NOT NULL,"
    " applied_boot_id TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE candidates ("
    " group_name TEXT NOT NULL, id TEXT NOT NULL, format INTEGER NOT NULL, instance INTEGER NOT NULL,"
    " beats INTEGER NOT NULL, beat_at INTEGER NOT NULL, since_wall_ms INTEGER NOT NULL,"
    " last_wall_ms INTEGER NOT NULL, priority INTEGER NOT NULL, eligible INTEGER NOT NULL, address TEXT NOT "
    "NULL,"
    " boot_id TEXT NOT NULL, pid INTEGER NOT NULL, pid_ns INTEGER NOT NULL, start_ticks INTEGER NOT NULL,"
    " PRIMARY KEY (group_name, id)) WITHOUT ROWID;" MARKS;

/* Sleeps a little more each time, so that many who wait do not all come back at once. */
static int is_busy(void *user, int tries)
{
    const struct sqlite_store *sqlite = user;
    struct timespec pause = {.tv_nsec = 100 * NS_PER_US + (tries % 5) * 100 * NS_PER_US};

    if (clock_now() >= sqlite->give_up_at)
        return 0;
    (void)nanosleep(&pause, NULL); /* waking early does no harm */
    return 1;
}

/*
 * Whose file it is. An empty one is anybody's. One statement, and so one
 * moment: another process may be creating the tables right now.
 */
static int read_owner(sqlite3 *db, int64_t *ret_application, int64_t *ret_version, int64_t *ret_tables)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db,
                                  "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
                                  " FROM pragma_application_id, pragma_user_version",
                                  -1, &statement, NULL);

    if (code)
        return code;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        *ret_application = sqlite3_column_int64(statement, 0);
        *ret_version = sqlite3_column_int64(statement, 1);
        *ret_tables = sqlite3_column_int64(statement, 2);
    }
    (void)sqlite3_finalize(statement); /* repeats the code of the step */
    return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_CORRUPT : code;
}

static enum gavel_status check_owner(struct sqlite_store *sqlite, bool *ret_is_empty,
                                     struct gavel_error *error)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t tables = 0;
    int code = read_owner(sqlite->db, &application, &version, &tables);

    if (code)
        return sqlite_error(sqlite, code, "opening", error);
    *ret_is_empty = application == 0 && version == 0 && tables == 0;
    if (*ret_is_empty)
        return GAVEL_OK;
    if (application != APPLICATION_ID)
        return error_set(error, GAVEL_ERR_STORE_DAMAGED,
                         "the file %s is a database of another program; name another file for the store",
                         sqlite->shown);
    if (version > SQLITE_SCHEMA_VERSION)
        return error_set(
            error, GAVEL_ERR_STORE_TOO_NEW,
            "the store %s was written by a newer gavel (format %lld, this one knows %d); update this one",
            sqlite->shown, (long long)version, SQLITE_SCHEMA_VERSION);
    if (version < 1)
        return error_set(error, GAVEL_ERR_STORE_DAMAGED, "the store %s has no format number; %s",
                         sqlite->shown, sqlite_next_step(GAVEL_ERR_STORE_DAMAGED, 0));
    return GAVEL_OK;
}

/*
 * All of it as of one moment: without a transaction another process could
 * create the tables between two of the questions, and the answers together
 * would be those of a stranger's file.
 */
static enum gavel_status check_owner_at_once(struct sqlite_store *sqlite, bool *ret_is_empty,
                                             struct gavel_error *error)
{
    enum gavel_status status;
    int code = sqlite3_exec(sqlite->db, "BEGIN", NULL, NULL, NULL);

    if (code)
        return sqlite_error(sqlite, code, "opening", error);
    status = check_owner(sqlite, ret_is_empty, error);
    (void)sqlite3_exec(sqlite->db, "ROLLBACK", NULL, NULL, NULL); /* it has only read */
    return status;
}

/*
 * Switching to WAL needs the file for itself for a moment, and SQLite answers
 * busy without asking the busy handler where two wait for each other.
 */
static bool may_wait(struct sqlite_store *sqlite) { return is_busy(sqlite, 0) != 0; }

/*
 * A file of a gavel before 0.7 gets what tells that it is not one. Its lock is not waited for: the next one
 * does it. In the file itself, not only in its log: that is what it is for.
 */
static void add_marks(struct sqlite_store *sqlite)
{
    gavel_ns give_up_at = sqlite->give_up_at;

    if (sqlite3_exec(sqlite->db, "SELECT count(*) FROM marks", NULL, NULL, NULL) == SQLITE_OK)
        return;
    sqlite->give_up_at = 0; /* has passed */
    if (sqlite3_exec(sqlite->db, "BEGIN IMMEDIATE; " MARKS " COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        (void)sqlite3_wal_checkpoint_v2(sqlite->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    else if (!sqlite3_get_autocommit(sqlite->db))
        (void)sqlite3_exec(sqlite->db, "ROLLBACK", NULL, NULL, NULL); /* it only has to be over */
    sqlite->give_up_at = give_up_at;
}

/* Many processes may do so at once: the first one with the write lock creates the tables, the others see
 * them. */
static enum gavel_status create_schema(struct sqlite_store *sqlite, struct gavel_error *error)
{
    char *numbers;
    bool is_empty = false;
    enum gavel_status status;
    int code = sqlite3_exec(sqlite->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

    if (code)
        return sqlite_error(sqlite, code, "creating the tables of", error);
    status = check_owner(sqlite, &is_empty, error);
    if (status == GAVEL_OK && is_empty) {
        numbers = sqlite3_mprintf("%s PRAGMA application_id = %d; PRAGMA user_version = %d;", schema,
                                  APPLICATION_ID, SQLITE_SCHEMA_VERSION);
        code = numbers ? sqlite3_exec(sqlite->db, numbers, NULL, NULL, NULL) : SQLITE_NOMEM;
        sqlite3_free(numbers);
        if (code)
            status = sqlite_error(sqlite, code, "creating the tables of", error);
    }
    if (status == GAVEL_OK) {
        code = sqlite3_exec(sqlite->db, "COMMIT", NULL, NULL, NULL);
        if (code)
            status = sqlite_error(sqlite, code, "creating the tables of", error);
    }
    if (status != GAVEL_OK)
        (void)sqlite3_exec(sqlite->db, "ROLLBACK", NULL, NULL, NULL); /* the first error is the one to tell */
    return status;
}

static enum gavel_status prepare(struct sqlite_store *sqlite, struct gavel_error *error)
{
#define TEXT(name, text) [SQLITE_STATEMENT_##name] = (text),
    static const char *const texts[] = {SQLITE_STATEMENT_MAP(TEXT)};
#undef TEXT

    for (int i = 0; i < SQLITE_STATEMENT_COUNT; i++) {
        int code = sqlite3_prepare_v3(sqlite->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &sqlite->statements[i], NULL);

        if (code)
            return sqlite_error(sqlite, code, "opening", error);
    }
    return GAVEL_OK;
}

/*
 * The first time that a connection makes its log durable, SQLite also syncs
 * the directory. That belongs here and not into a standby's first claim, which
 * is a fail-over that somebody waits for.
 */
static int sync_log_once(struct sqlite_store *sqlite)
{
    sqlite3_file *log = NULL;
    int code = sqlite3_file_control(sqlite->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);

    if (code || !log || !log->pMethods)
        return code;
    return log->pMethods->xSync(log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
}

/*
 * Fills the log with zeros up to the length that it will have anyway. A claim
 * waits for the disk, and overwriting what is there already is quicker to
 * sync than making the file longer. Under the write lock nobody else writes to
 * the log, and what stands behind its last frame is never read as one. It
 * only saves time, so a failure is undone and forgotten, and the lock is not
 * waited for: a command that only reads must not hang on who writes.
 */
static void fill_log(struct sqlite_store *sqlite)
{
    static const char zeros[64 * 1024];
    sqlite3_file *log = NULL;
    gavel_ns give_up_at = sqlite->give_up_at;
    sqlite3_int64 size = LOG_BYTES;
    sqlite3_int64 at;
    int code;

    if (sqlite3_file_control(sqlite->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) || !log ||
        !log->pMethods || log->pMethods->xFileSize(log, &size) || size >= LOG_BYTES)
        return;
    sqlite->give_up_at = 0; /* has passed */
    code = sqlite3_exec(sqlite->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    sqlite->give_up_at = give_up_at;
    if (code)
        return;
    code = log->pMethods->xFileSize(log, &size); /* it may have grown before we had the lock */
    for (at = size; !code && at < LOG_BYTES; at += (sqlite3_int64)sizeof zeros)
        code = log->pMethods->xWrite(log, zeros, sizeof zeros, at);
    if (code && size < LOG_BYTES)
        (void)log->pMethods->xTruncate(log, size);
    (void)sqlite3_exec(sqlite->db, "ROLLBACK", NULL, NULL, NULL); /* nothing was written to the database */
}

enum gavel_status sqlite_open_database(struct sqlite_store *sqlite, struct gavel_error *error)
{
    bool is_empty = false;
    enum gavel_status status;
    int code = sqlite3_open_v2(
        sqlite->files[SQLITE_FILE_MAIN].path, &sqlite->db,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);

    if (code)
        return sqlite_error(sqlite, code, "opening", error);
    sqlite->give_up_at = clock_now() + OPEN_TIMEOUT;
    (void)sqlite3_busy_handler(sqlite->db, is_busy, sqlite);
    /* SQLite falls back to reading when it may not write, which is of no use here. */
    if (sqlite3_db_readonly(sqlite->db, "main") == 1)
        return error_set(error, GAVEL_ERR_STORE_DENIED, "the store %s is not writable; %s", sqlite->shown,
                         sqlite_next_step(GAVEL_ERR_STORE_DENIED, 0));
    status = sqlite_check_log(sqlite, error);
    if (status == GAVEL_OK)
        status = check_owner_at_once(sqlite, &is_empty, error);
    if (status != GAVEL_OK)
        return status;
    if (is_empty) /* no harm if another was faster: then it has no effect */
        (void)sqlite3_exec(sqlite->db, "PRAGMA page_size = 1024", NULL, NULL, NULL);
    /* The tables before the log, so that no file that belongs to a log is without them. */
    status = is_empty ? create_schema(sqlite, error) : GAVEL_OK;
    if (status != GAVEL_OK)
        return status;
    code = sqlite_use_log(sqlite, may_wait);
    if (code)
        return sqlite_error(sqlite, code, "opening", error);
    add_marks(sqlite);
    code = sqlite3_exec(sqlite->db,
                        "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = " TEXT_OF(LOG_PAGES), NULL,
                        NULL, NULL);
    if (!code) /* the first look into a table makes the log and holds it */
        code = sqlite3_exec(sqlite->db, "SELECT count(*) FROM groups WHERE name = ''", NULL, NULL, NULL);
    if (!code)
        code = sync_log_once(sqlite);
    if (code)
        return sqlite_error(sqlite, code, "opening", error);
    fill_log(sqlite);
    return prepare(sqlite, error);
}
