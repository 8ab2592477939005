/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store `sqlite:/path`: one file on one host, shared by many processes.
 *
 * A batch is one transaction: with the write lock from its beginning if it
 * writes, so that what it decides is still true when it commits. The clock is
 * CLOCK_BOOTTIME, which all processes of the machine share.
 *
 * Durability. A claim gives out an epoch, which must never be given out again
 * (S1), so a batch with a claim is on the disk before it is answered
 * (synchronous = FULL). All others are written without waiting for the disk
 * (NORMAL): they survive the death of any process, and a loss of power, which
 * may undo the last of them, also ends every process that could have relied
 * on them. An undone renewal, release or heartbeat is that of a dead process.
 * But work that is done stays done over a loss of power, so a release that
 * says so is on the disk before it is answered, like a claim.
 */
#include "store/sqlite/sqlite.h"

#include "base/error.h"
#include "os/clock.h"
#include "store/driver.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WAIT_EVERY (2 * NS_PER_MS)

void sqlite_text(sqlite3_stmt *statement, int column, char *to, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);

    name_copy(to, size, text ? text : "");
}

void sqlite_process(sqlite3_stmt *statement, int column, struct process_id *ret_process)
{
    sqlite_text(statement, column, ret_process->boot_id, sizeof ret_process->boot_id);
    ret_process->pid = sqlite3_column_int(statement, column + 1);
    ret_process->pid_ns = (uint64_t)sqlite3_column_int64(statement, column + 2);
    ret_process->start_ticks = (uint64_t)sqlite3_column_int64(statement, column + 3);
}

int sqlite_finish(sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);

    (void)sqlite3_reset(statement); /* repeats the code of the step */
    return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

/*
 * Connections that a forked child had to leave as they are. They share the
 * parent's files: closing one could check in the log and delete it under the
 * parent. The list only keeps them in sight of leak checkers.
 */
static _Atomic(struct sqlite_store *) left_behind;

static void sqlite_close(struct store *store)
{
    struct sqlite_store *sqlite = (struct sqlite_store *)store;

    if (sqlite->opened_by != getpid()) {
        sqlite->next_left = atomic_exchange(&left_behind, sqlite);
        return;
    }
    for (int i = 0; i < SQLITE_STATEMENT_COUNT; i++)
        (void)sqlite3_finalize(sqlite->statements[i]); /* repeats an earlier error */
    sqlite->give_up_at = 0;                            /* nobody waits for whoever leaves */
    if (sqlite->files[SQLITE_FILE_SHM].inode && sqlite_check_files(sqlite, NULL) == GAVEL_OK)
        sqlite_leave_whole(sqlite);
    (void)sqlite3_close(sqlite->db); /* nothing is open on it any more; safe on NULL */
    for (int i = 0; i < SQLITE_FILE_COUNT; i++)
        free(sqlite->files[i].path);
    free(sqlite);
}

static enum gavel_status sqlite_open(const char *rest, struct store **ret_store, struct gavel_error *error)
{
    enum gavel_status status;
    struct sqlite_store *sqlite = calloc(1, sizeof *sqlite);

    if (!sqlite)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening a sqlite store");
    sqlite->opened_by = getpid();
    status = sqlite_open_file(sqlite, rest, error);
    if (status != GAVEL_OK) {
        sqlite_close(&sqlite->store);
        return status;
    }
    *ret_store = &sqlite->store;
    return GAVEL_OK;
}

/* What a batch is made of. A request takes part while its reply has no failure of its own. */
struct batch {
    const struct store_request *requests;
    struct store_reply *replies;
    size_t count;
    size_t open; /* requests that still take part */
    bool writes;
    bool is_lasting; /* must outlive a loss of power */
    bool renews;
    gavel_ns give_up_at; /* the earliest of all */
};

/* Refuses what must not be begun, and sums up the rest. */
static void survey(struct batch *batch)
{
    gavel_ns now = clock_now();

    batch->open = 0;
    batch->writes = batch->is_lasting = batch->renews = false;
    batch->give_up_at = NEVER;
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_request *request = &batch->requests[i];

        if (batch->replies[i].status != GAVEL_OK || request_refuse(request, now, &batch->replies[i]))
            continue;
        batch->open++;
        batch->writes |= request_writes(request);
        batch->is_lasting |= request->op == STORE_CLAIM || request->op == STORE_REOPEN ||
                             (request->op == STORE_RELEASE && request->record.done);
        batch->renews |= request->op == STORE_RENEW;
        batch->give_up_at = ns_min(batch->give_up_at, request->give_up_at);
    }
}

/* Whether the reply is a refusal that stands whatever becomes of the transaction. */
static bool was_never_begun(const struct store_reply *reply)
{
    return reply->status == GAVEL_ERR_INVALID || reply->status == GAVEL_ERR_TIMEOUT;
}

static void fail_all(const struct sqlite_store *sqlite, struct batch *batch, int code)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (!was_never_begun(&batch->replies[i]))
            sqlite_reply_fail(sqlite, code, &batch->requests[i], &batch->replies[i]);
    }
}

/*
 * Going on with a deleted file would be two leaders: new processes make a new
 * one, with epochs from 1 again. Opening that new one here would be the same.
 * So nothing is answered any more, the work of a leader stops, and a person
 * decides. A file that is put back is good again. So it is with a file that
 * got a second name, or that can no longer be looked at.
 */
static bool has_files(const struct sqlite_store *sqlite, struct batch *batch)
{
    struct gavel_error error;
    enum gavel_status status = sqlite_check_files(sqlite, &error);

    for (size_t i = 0; status != GAVEL_OK && i < batch->count; i++) {
        if (!was_never_begun(&batch->replies[i]))
            reply_fail(&batch->replies[i], status, "%s", error.message);
    }
    return status == GAVEL_OK;
}

static int set_sync(struct sqlite_store *sqlite, bool fully)
{
    int code;

    if (sqlite->syncs_fully == fully)
        return SQLITE_OK;
    code = sqlite3_exec(sqlite->db, fully ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", NULL,
                        NULL, NULL);
    if (!code)
        sqlite->syncs_fully = fully;
    return code;
}

/* Whose time is over has waited for the lock in vain, and is told who has it. True if there was one. */
static bool refuse_late(const struct sqlite_store *sqlite, struct batch *batch)
{
    gavel_ns now = clock_now();
    char holder[SQLITE_HOLDER_TEXT_MAX] = "";

    for (size_t i = 0; i < batch->count; i++) {
        struct store_reply *reply = &batch->replies[i];

        if (reply->status != GAVEL_OK || now < batch->requests[i].give_up_at)
            continue;
        if (!*holder)
            sqlite_tell_holder(sqlite, holder, sizeof holder);
        reply_fail(reply, GAVEL_ERR_TIMEOUT, "the store %s was not free in time and nothing was begun; %s",
                   sqlite->shown, holder);
    }
    return *holder != '\0';
}

/*
 * Begins the transaction, waiting for the lock up to the earliest deadline;
 * whoever's deadline that was is refused and the rest waits on.
 */
static int begin(struct sqlite_store *sqlite, struct batch *batch)
{
    for (;;) {
        int code;

        survey(batch);
        if (batch->open == 0)
            return SQLITE_OK;
        sqlite->give_up_at = batch->give_up_at;
        code = batch->writes ? set_sync(sqlite, batch->is_lasting) : SQLITE_OK;
        if (!code)
            code = sqlite_finish(sqlite->statements[batch->writes ? SQLITE_STATEMENT_BEGIN_WRITE
                                                                  : SQLITE_STATEMENT_BEGIN_READ]);
        if ((code & 0xff) != SQLITE_BUSY)
            return code;
        if (!refuse_late(sqlite, batch))
            return code; /* nobody's time is over and still it does not let us in */
    }
}

static int apply(struct sqlite_store *sqlite, const struct store_request *request, struct store_reply *reply)
{
    /* The batch may have waited for the lock since it was surveyed. */
    if (clock_now() > request->give_up_at) {
        reply_fail(reply, GAVEL_ERR_TIMEOUT,
                   "the lock of the store %s came too late and nothing was begun; try again", sqlite->shown);
        return SQLITE_OK;
    }
    switch (request->op) {
    case STORE_READ:
    case STORE_CLAIM:
    case STORE_RENEW:
    case STORE_RELEASE:
    case STORE_ASK:
    case STORE_REOPEN:
    case STORE_GROUPS:
        return sqlite_run_mandate(sqlite, request, reply);
    case STORE_HEARTBEAT:
    case STORE_LEAVE:
    case STORE_CANDIDATES:
        return sqlite_run_registry(sqlite, request, reply);
    case STORE_DIED:
        break;
    }
    return SQLITE_MISUSE; /* not reached: the survey refuses other numbers */
}

static void roll_back(struct sqlite_store *sqlite)
{
    if (!sqlite3_get_autocommit(sqlite->db))
        (void)sqlite_finish(
            sqlite->statements[SQLITE_STATEMENT_ROLLBACK]); /* the first error is the one to tell */
}

/*
 * A transaction that could not be rolled back keeps the write lock, and what
 * it has read is old. Nothing is answered out of it: it is rolled back first,
 * and as long as that fails everything does.
 */
static bool is_stuck(struct sqlite_store *sqlite, struct batch *batch)
{
    roll_back(sqlite);
    if (sqlite3_get_autocommit(sqlite->db))
        return false;
    for (size_t i = 0; i < batch->count; i++)
        reply_fail(
            &batch->replies[i], GAVEL_ERR_STORE_UNAVAILABLE,
            "a transaction on the store %s can be neither finished nor undone; check the disk and the kernel's log, and restart this program",
            sqlite->shown);
    return true;
}

static void run_batch(struct sqlite_store *sqlite, struct batch *batch)
{
    int code;

    if (is_stuck(sqlite, batch))
        return;
    code = begin(sqlite, batch);

    if (code || batch->open == 0) {
        if (code)
            fail_all(sqlite, batch, code);
        return;
    }
    if (!has_files(sqlite, batch)) {
        roll_back(sqlite);
        return;
    }
    for (size_t i = 0; i < batch->count && !code; i++) {
        if (batch->replies[i].status == GAVEL_OK)
            code = apply(sqlite, &batch->requests[i], &batch->replies[i]);
    }
    if (!code)
        code = sqlite_finish(sqlite->statements[SQLITE_STATEMENT_COMMIT]);
    if (code) {
        fail_all(sqlite, batch, code);
        roll_back(sqlite);
        return;
    }
    /* A mandate, or its success, counts only if the file was still the one that others see after the
     * write. */
    if ((batch->is_lasting || batch->renews) && !has_files(sqlite, batch))
        return;
    for (size_t i = 0; i < batch->count; i++)
        sqlite_drop_dead(sqlite, &batch->replies[i]);
}

static void sqlite_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
                       size_t count)
{
    struct sqlite_store *sqlite = (struct sqlite_store *)store;
    struct batch batch = {.requests = requests, .replies = replies, .count = count};

    if (getpid() != sqlite->opened_by) {
        for (size_t i = 0; i < count; i++)
            reply_fail(
                &replies[i], GAVEL_ERR_STATE,
                "the store %s was opened before a fork and cannot be used by the child; a child must not use the library, start a new program instead",
                sqlite->shown);
        return;
    }
    run_batch(sqlite, &batch);
}

/* A number that differs after any other connection has committed. */
static int read_data_version(struct sqlite_store *sqlite, int64_t *ret_number)
{
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_DATA_VERSION];
    int code = sqlite3_step(s);

    if (code == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(s, 0);
    (void)sqlite3_reset(s); /* repeats the code of the step */
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

/*
 * Another process's commit cannot wake us, so look every few milliseconds; as
 * long as nobody has committed anything that costs microseconds. While there
 * is an error nothing is known to differ, and whoever retries does so after
 * the wait, not in a tight loop.
 */
static void sqlite_wait(struct store *store, const char *group, uint64_t version, gavel_ns until)
{
    const struct timespec pause = {.tv_nsec = WAIT_EVERY};
    struct sqlite_store *sqlite = (struct sqlite_store *)store;
    int64_t last = -1; /* never a data version */

    if (getpid() != sqlite->opened_by)
        return;
    sqlite->give_up_at = until;
    while (clock_now() < until) {
        int64_t number = last;
        uint64_t seen = version;

        if (sqlite_check_files(sqlite, NULL) == GAVEL_OK && !read_data_version(sqlite, &number) &&
            number != last && !sqlite_read_version(sqlite, group, &seen)) {
            if (seen != version)
                return;
            last = number;
        }
        (void)nanosleep(&pause, NULL); /* waking early does no harm */
    }
}

const struct store_driver store_sqlite = {
    .scheme = "sqlite",
    .summary = "sqlite:PATH          one host, one file; the default",
    .capabilities =
        {
            .name = "sqlite",
            .preset = "local",
            .clock = STORE_CLOCK_STEADY,
            .is_shared = true,
            .sees_processes = true,
        },
    .caution = sqlite_caution,
    .open = sqlite_open,
    .backup = sqlite_backup,
    .remove = sqlite_remove,
    .run = sqlite_run,
    .wait = sqlite_wait,
    .close = sqlite_close,
};
