/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parts of the sqlite driver:
 *
 *   sqlite.c         batches, transactions, waiting
 *   database_file.c  the file: its directory, its file system, whether it is still there
 *   open.c           the database: whether it is ours, its tables
 *   whole.c          whether the file is complete; the last one to close merges the log
 *   backup.c         a copy of it
 *   mandate.c        READ, CLAIM, RENEW, RELEASE, ASK, REOPEN, GROUPS
 *   registry.c       HEARTBEAT, LEAVE, CANDIDATES
 *   forget.c         deletes old records of `gavel once`, and keeps their highest epoch
 *   lock.c           which process holds the lock that others wait for
 *   error.c          what SQLite's errors mean to gavel
 *   filesystem.c     file systems that the file must not be on
 */
#ifndef STORE_SQLITE_SQLITE_H
#define STORE_SQLITE_SQLITE_H

#include "store/rules.h"
#include "store/store.h"

#include <sqlite3.h>
#include <sys/types.h>

#define SQLITE_SCHEMA_VERSION 1 /* of the tables; PRAGMA user_version */
/*
 * The format of a row. Gavel leaves rows of unknown formats alone, group by
 * group, and works with all others of the file. A group that is done has a row
 * of format 2, so that an older gavel, which does not know this state, refuses
 * it (ERR_STORE_TOO_NEW) instead of claiming it. All other rows are unchanged,
 * and both versions can share the file.
 */
#define SQLITE_ROW_FORMAT 1
#define SQLITE_ROW_FORMAT_DONE 2

/* clang-format off */
#define SQLITE_STATEMENT_MAP(X)                                                                               \
    X(BEGIN_READ,   "BEGIN")                                                                                  \
    X(BEGIN_WRITE,  "BEGIN IMMEDIATE")                                                                        \
    X(COMMIT,       "COMMIT")                                                                                 \
    X(ROLLBACK,     "ROLLBACK")                                                                               \
    X(DATA_VERSION, "PRAGMA data_version")                                                                    \
    X(MANDATE,                                                                                                \
      "SELECT name, format, epoch, version, nonce_high, nonce_low, lease_ms, since_wall_ms, renewed_wall_ms," \
      " held, boot_id, pid, pid_ns, start_ticks, holder, address, successor, wish_epoch, wish_force,"         \
      " wish_successor, applied_at, applied_boot_id FROM groups WHERE name = ?1")                             \
    X(GROUPS,                                                                                                 \
      "SELECT name, format, epoch, version, nonce_high, nonce_low, lease_ms, since_wall_ms, renewed_wall_ms," \
      " held, boot_id, pid, pid_ns, start_ticks, holder, address, successor, wish_epoch, wish_force,"         \
      " wish_successor, applied_at, applied_boot_id FROM groups WHERE name >= ?1 ORDER BY name")              \
    X(CLAIM,                                                                                                  \
      "INSERT OR REPLACE INTO groups (name, format, epoch, version, nonce_high, nonce_low, lease_ms,"         \
      " since_wall_ms, renewed_wall_ms, held, boot_id, pid, pid_ns, start_ticks, holder, address, successor," \
      " wish_epoch, wish_force, wish_successor, applied_at, applied_boot_id)"                                 \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,"   \
      " ?21, ?22)")                                                                                           \
    X(RENEW,                                                                                                  \
      "UPDATE groups SET version = ?2, lease_ms = ?3, renewed_wall_ms = ?4, applied_at = ?5,"                 \
      " applied_boot_id = ?6 WHERE name = ?1")                                                                \
    X(RELEASE,                                                                                                \
      "UPDATE groups SET version = ?2, format = ?3, held = ?4, successor = ?5, wish_force = ?6"               \
      " WHERE name = ?1")                                                                                     \
    X(ASK,                                                                                                    \
      "UPDATE groups SET wish_epoch = ?2, wish_force = ?3, wish_successor = ?4 WHERE name = ?1")              \
    X(BEAT,                                                                                                   \
      "UPDATE candidates SET beats = ?4, beat_at = ?5, last_wall_ms = ?6, priority = ?7, eligible = ?8,"      \
      " address = ?9 WHERE group_name = ?1 AND id = ?2 AND instance = ?3 AND format = ?10")                   \
    X(REGISTRATION,                                                                                           \
      "SELECT id, format, instance, beats, beat_at, since_wall_ms, last_wall_ms, priority, eligible, address,"\
      " boot_id, pid, pid_ns, start_ticks FROM candidates WHERE group_name = ?1 AND id = ?2")                 \
    X(CANDIDATES,                                                                                             \
      "SELECT id, format, instance, beats, beat_at, since_wall_ms, last_wall_ms, priority, eligible, address,"\
      " boot_id, pid, pid_ns, start_ticks FROM candidates WHERE group_name = ?1 ORDER BY id")                 \
    X(REGISTER,                                                                                               \
      "INSERT OR REPLACE INTO candidates (group_name, id, format, instance, beats, beat_at, since_wall_ms,"   \
      " last_wall_ms, priority, eligible, address, boot_id, pid, pid_ns, start_ticks)"                        \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)")                           \
    X(LEAVE,        "DELETE FROM candidates WHERE group_name = ?1 AND id = ?2 AND instance = ?3")             \
    X(PRUNE,        "DELETE FROM candidates WHERE group_name = ?1 AND (beat_at < ?2 OR beat_at > ?3)")
/* clang-format on */

#define SQLITE_STATEMENT_ENUM(name, text) SQLITE_STATEMENT_##name,
enum sqlite_statement { SQLITE_STATEMENT_MAP(SQLITE_STATEMENT_ENUM) SQLITE_STATEMENT_COUNT };
#undef SQLITE_STATEMENT_ENUM

/* The files of a database, and which ones they were when it was opened. */
enum sqlite_file { SQLITE_FILE_MAIN, SQLITE_FILE_WAL, SQLITE_FILE_SHM, SQLITE_FILE_COUNT };

struct sqlite_file_identity {
    char *path;
    dev_t device;
    ino_t inode;
};

struct sqlite_store {
    struct store store;
    sqlite3 *db;
    sqlite3_stmt *statements[SQLITE_STATEMENT_COUNT];
    struct process_id self;
    pid_t opened_by;     /* a connection must not be used after a fork */
    gavel_ns give_up_at; /* of the busy handler */
    bool syncs_fully;    /* what PRAGMA synchronous is set to */
    struct sqlite_file_identity files[SQLITE_FILE_COUNT];
    struct sqlite_store *next_left; /* see sqlite_close() */
    char shown[112];                /* the path for messages, its end if it is long */
};

/* database_file.c: fills in a zeroed store up to and including its statements; on failure the caller closes
 * it.
 */
GAVEL_CHECKED enum gavel_status sqlite_open_file(struct sqlite_store *sqlite, const char *path,
                                                 struct gavel_error *error);

/* open.c: opens the main file, which exists. */
GAVEL_CHECKED enum gavel_status sqlite_open_database(struct sqlite_store *sqlite, struct gavel_error *error);

/*
 * whole.c. Before anything is read: ERR_STORE_DAMAGED if the log that belongs
 * to the file is missing. Then the switch to WAL, which may have to be retried;
 * returns a code of SQLite. At the end, with no statement open: closes the
 * database, and leaves a complete file if no other process has it open.
 */
GAVEL_CHECKED enum gavel_status sqlite_check_log(const struct sqlite_store *sqlite,
                                                 struct gavel_error *error);
GAVEL_CHECKED int sqlite_use_log(struct sqlite_store *sqlite, bool (*may_wait)(struct sqlite_store *sqlite));
void sqlite_leave_whole(struct sqlite_store *sqlite);

/* remove.c: see store_remove(). */
GAVEL_CHECKED enum gavel_status sqlite_remove(struct store *store, const char *group, uint64_t version,
                                              gavel_ns until, struct gavel_error *error);

/* caution.c: see store_caution(). */
void sqlite_caution(const char *path, char *ret_text, size_t size);

/* backup.c: see store_backup(). */
GAVEL_CHECKED enum gavel_status sqlite_backup(struct store *store, const char *path,
                                              struct gavel_error *error);

/*
 * Whether the files at the path are still the ones that are open, under a
 * single name. If not, new processes use other files than we do, and what we
 * read and write means nothing to them. ERR_STORE_DAMAGED if the files are
 * different or gone, ERR_STORE_UNSUPPORTED if there is a second name;
 * ERR_STORE_DENIED or ERR_STORE_UNAVAILABLE if that cannot be determined.
 */
GAVEL_CHECKED enum gavel_status sqlite_check_files(const struct sqlite_store *sqlite,
                                                   struct gavel_error *error);

/*
 * forget.c, within a transaction. Deletes records of `gavel once` whose time is over; a code of SQLite only
 * if the transaction is gone. And the highest epoch and version of all that were deleted: rows that are new
 * begin above; 0 if there were none. If it cannot be read the transaction must be rolled back.
 */
GAVEL_CHECKED int sqlite_forget_outcomes(struct sqlite_store *sqlite, gavel_ns now, int64_t wall_ms);
GAVEL_CHECKED int sqlite_floor(struct sqlite_store *sqlite, uint64_t *ret_floor);

/*
 * mandate.c and registry.c: one request inside a transaction. Return SQLITE_OK
 * when the reply is filled in, even with a refusal; any other code means that
 * the transaction must be rolled back.
 */
GAVEL_CHECKED int sqlite_run_mandate(struct sqlite_store *sqlite, const struct store_request *request,
                                     struct store_reply *reply);
GAVEL_CHECKED int sqlite_run_registry(struct sqlite_store *sqlite, const struct store_request *request,
                                      struct store_reply *reply);

/* The version of a group's record, 0 if there is none; untouched if it cannot be read. */
GAVEL_CHECKED int sqlite_read_version(struct sqlite_store *sqlite, const char *group, uint64_t *ret_version);

/*
 * Drops candidates that are proven dead from a listing. Looks at /proc, so it
 * is done after the transaction.
 */
void sqlite_drop_dead(struct sqlite_store *sqlite, struct store_reply *reply);

/* lock.c: part of a message: which process holds the write lock and what to do about it. */
#define SQLITE_HOLDER_TEXT_MAX 128
void sqlite_tell_holder(const struct sqlite_store *sqlite, char *text, size_t size);

/* error.c; `doing` stands before "the store …" in the message. */
enum gavel_status sqlite_status(int code, int system_errno);
const char *sqlite_next_step(enum gavel_status status, int system_errno);
GAVEL_CHECKED enum gavel_status sqlite_error(const struct sqlite_store *sqlite, int code, const char *doing,
                                             struct gavel_error *error);
void sqlite_reply_fail(const struct sqlite_store *sqlite, int code, const struct store_request *request,
                       struct store_reply *reply);

/* A text column; "" for NULL; truncated if it does not fit. */
void sqlite_text(sqlite3_stmt *statement, int column, char *to, size_t size);

/* The four columns of a process identity that start at `column`. */
void sqlite_process(sqlite3_stmt *statement, int column, struct process_id *ret_process);

/* Runs a statement that returns no rows and resets it. */
int sqlite_finish(sqlite3_stmt *statement);

#endif
