/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The mandates in SQLite: fetch the row of a group, apply the rule, write
 * back what it changed. All within one transaction that already has the write
 * lock, so nobody comes in between.
 */
#include "os/clock.h"
#include "store/driver.h"
#include "store/sqlite/sqlite.h"

#include <string.h>

/* The columns of the statements MANDATE and GROUPS; CLAIM binds them in the same order. */
enum column {
    COLUMN_NAME,
    COLUMN_FORMAT,
    COLUMN_EPOCH,
    COLUMN_VERSION,
    COLUMN_NONCE_HIGH,
    COLUMN_NONCE_LOW,
    COLUMN_LEASE_MS,
    COLUMN_SINCE_WALL_MS,
    COLUMN_RENEWED_WALL_MS,
    COLUMN_HELD,
    COLUMN_PROCESS, /* boot_id, pid, pid_ns, start_ticks */
    COLUMN_HOLDER = COLUMN_PROCESS + 4,
    COLUMN_ADDRESS,
    COLUMN_SUCCESSOR,
    COLUMN_WISH_EPOCH,
    COLUMN_WISH_FORCE,
    COLUMN_WISH_SUCCESSOR,
    COLUMN_APPLIED_AT,
    COLUMN_APPLIED_BOOT_ID,
};

/* What the column `held` says; HELD_DONE stands only in rows of format 2. */
enum held { HELD_NOT, HELD_YES, HELD_DONE };

/* What a row is to us. */
enum row_kind { ROW_GOOD, ROW_NONE, ROW_TOO_NEW, ROW_DAMAGED };

static uint64_t u64(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement,
                                          column); /* SQLite has signed numbers only; the bits are kept */
}

static enum row_kind parse_row(sqlite3_stmt *s, struct mandate_row *ret_row)
{
    struct record *record = &ret_row->record;
    int64_t format = sqlite3_column_int64(s, COLUMN_FORMAT);
    int64_t held = sqlite3_column_int64(s, COLUMN_HELD);

    if (format > SQLITE_ROW_FORMAT_DONE)
        return ROW_TOO_NEW;
    memset(ret_row, 0, sizeof *ret_row);
    ret_row->is_found = true;
    record->epoch = u64(s, COLUMN_EPOCH);
    record->version = u64(s, COLUMN_VERSION);
    record->nonce.high = u64(s, COLUMN_NONCE_HIGH);
    record->nonce.low = u64(s, COLUMN_NONCE_LOW);
    record->lease_ms = sqlite3_column_int64(s, COLUMN_LEASE_MS);
    record->since_wall_ms = sqlite3_column_int64(s, COLUMN_SINCE_WALL_MS);
    record->renewed_wall_ms = sqlite3_column_int64(s, COLUMN_RENEWED_WALL_MS);
    record->held = held == HELD_YES;
    record->done = held == HELD_DONE;
    sqlite_process(s, COLUMN_PROCESS, &record->process);
    sqlite_text(s, COLUMN_HOLDER, record->holder, sizeof record->holder);
    sqlite_text(s, COLUMN_ADDRESS, record->address, sizeof record->address);
    sqlite_text(s, COLUMN_SUCCESSOR, record->successor, sizeof record->successor);
    record->wish_epoch = u64(s, COLUMN_WISH_EPOCH);
    rules_take_wish_column(record, sqlite3_column_int64(s, COLUMN_WISH_FORCE));
    sqlite_text(s, COLUMN_WISH_SUCCESSOR, record->wish_successor, sizeof record->wish_successor);
    ret_row->applied_at = sqlite3_column_int64(s, COLUMN_APPLIED_AT);
    sqlite_text(s, COLUMN_APPLIED_BOOT_ID, ret_row->boot_id, sizeof ret_row->boot_id);

    /* What no gavel writes; taken at its word it could free a group or block it for ever. */
    if (record->epoch == 0 || record->epoch > RULES_NUMBER_MAX || record->version == 0 ||
        record->version > RULES_NUMBER_MAX || record->lease_ms < 1 ||
        record->lease_ms > STORE_DURATION_MAX_MS || held < HELD_NOT || held > HELD_DONE ||
        (held == HELD_DONE) != (format == SQLITE_ROW_FORMAT_DONE) || ret_row->applied_at < 0 ||
        ret_row->applied_at > INT64_MAX / 2)
        return ROW_DAMAGED;
    return ROW_GOOD;
}

static int load(struct sqlite_store *sqlite, const char *group, struct mandate_row *ret_row,
                enum row_kind *ret_kind)
{
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_MANDATE];
    int code;

    *ret_kind = ROW_NONE;
    (void)sqlite3_bind_text(s, 1, group, -1, SQLITE_STATIC); /* can only fail for a wrong index */
    code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *ret_kind = parse_row(s, ret_row);
    else
        memset(ret_row, 0, sizeof *ret_row);
    (void)sqlite3_reset(s); /* repeats the code of the step */
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static int save_claim(struct sqlite_store *sqlite, const char *group, const struct mandate_row *row)
{
    const struct record *record = &row->record;
    const struct {
        enum column column;
        int64_t value;
    } numbers[] = {
        {COLUMN_FORMAT, SQLITE_ROW_FORMAT},
        {COLUMN_EPOCH, (int64_t)record->epoch},
        {COLUMN_VERSION, (int64_t)record->version},
        {COLUMN_NONCE_HIGH, (int64_t)record->nonce.high},
        {COLUMN_NONCE_LOW, (int64_t)record->nonce.low},
        {COLUMN_LEASE_MS, record->lease_ms},
        {COLUMN_SINCE_WALL_MS, record->since_wall_ms},
        {COLUMN_RENEWED_WALL_MS, record->renewed_wall_ms},
        {COLUMN_HELD, HELD_YES},
        {COLUMN_PROCESS + 1, record->process.pid},
        {COLUMN_PROCESS + 2, (int64_t)record->process.pid_ns},
        {COLUMN_PROCESS + 3, (int64_t)record->process.start_ticks},
        {COLUMN_WISH_EPOCH, (int64_t)record->wish_epoch},
        {COLUMN_WISH_FORCE, record->wish_force},
        {COLUMN_APPLIED_AT, row->applied_at},
    };
    const struct {
        enum column column;
        const char *value;
    } texts[] = {
        {COLUMN_NAME, group},
        {COLUMN_PROCESS, record->process.boot_id},
        {COLUMN_HOLDER, record->holder},
        {COLUMN_ADDRESS, record->address},
        {COLUMN_SUCCESSOR, record->successor},
        {COLUMN_WISH_SUCCESSOR, record->wish_successor},
        {COLUMN_APPLIED_BOOT_ID, row->boot_id},
    };
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_CLAIM];

    /* Binding can only fail for a wrong index. */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)sqlite3_bind_int64(s, (int)numbers[i].column + 1, numbers[i].value);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        (void)sqlite3_bind_text(s, (int)texts[i].column + 1, texts[i].value, -1, SQLITE_STATIC);
    return sqlite_finish(s);
}

/* Renewals are most of what is written, so they touch only what they change. */
static int save_renewal(struct sqlite_store *sqlite, const char *group, const struct mandate_row *row)
{
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_RENEW];

    (void)sqlite3_bind_text(s, 1, group, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 2, (int64_t)row->record.version);
    (void)sqlite3_bind_int64(s, 3, row->record.lease_ms);
    (void)sqlite3_bind_int64(s, 4, row->record.renewed_wall_ms);
    (void)sqlite3_bind_int64(s, 5, row->applied_at);
    (void)sqlite3_bind_text(s, 6, row->boot_id, -1, SQLITE_STATIC);
    return sqlite_finish(s);
}

/* Also of a group that is opened again. */
static int save_release(struct sqlite_store *sqlite, const char *group, const struct mandate_row *row)
{
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_RELEASE];

    (void)sqlite3_bind_text(s, 1, group, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 2, (int64_t)row->record.version);
    (void)sqlite3_bind_int64(s, 3, row->record.done ? SQLITE_ROW_FORMAT_DONE : SQLITE_ROW_FORMAT);
    (void)sqlite3_bind_int64(s, 4, row->record.done ? HELD_DONE : HELD_NOT);
    (void)sqlite3_bind_text(s, 5, row->record.successor, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 6, rules_wish_column(&row->record));
    return sqlite_finish(s);
}

static int save_wish(struct sqlite_store *sqlite, const char *group, const struct mandate_row *row)
{
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_ASK];

    (void)sqlite3_bind_text(s, 1, group, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 2, (int64_t)row->record.wish_epoch);
    (void)sqlite3_bind_int64(s, 3, row->record.wish_force);
    (void)sqlite3_bind_text(s, 4, row->record.wish_successor, -1, SQLITE_STATIC);
    return sqlite_finish(s);
}

static int save(struct sqlite_store *sqlite, const struct store_request *request,
                const struct mandate_row *row)
{
    switch (request->op) {
    case STORE_CLAIM:
        return save_claim(sqlite, request->group, row);
    case STORE_RENEW:
        return save_renewal(sqlite, request->group, row);
    case STORE_RELEASE:
    case STORE_REOPEN:
        return save_release(sqlite, request->group, row);
    case STORE_ASK:
        return save_wish(sqlite, request->group, row);
    default:
        return SQLITE_OK; /* nothing was changed */
    }
}

/* The clock is read after the row, so that no row of this boot seems to lie in the future. */
static struct rules_now read_now(const struct sqlite_store *sqlite)
{
    return (struct rules_now){.now = clock_now(), .wall_ms = clock_wall_ms(), .self = &sqlite->self};
}

/*
 * The rows of a newer gavel are left out: what they mean is not known here,
 * and a READ of such a group says so.
 */
static int list_groups(struct sqlite_store *sqlite, const struct store_request *request,
                       struct store_reply *reply)
{
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_GROUPS];
    int code;

    (void)sqlite3_bind_text(s, 1, request->prefix ? request->prefix : "", -1, SQLITE_STATIC);
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        struct mandate_row row;
        struct rules_now now;
        struct group_row *slot;
        char name[NAME_MAX_BYTES + 1];

        sqlite_text(s, COLUMN_NAME, name, sizeof name);
        if (!request_wants_group(request, name))
            break; /* they are in order: none of the rest begins with it */
        if (parse_row(s, &row) != ROW_GOOD)
            continue;
        now = read_now(sqlite);
        slot = reply_add_group(reply);
        if (!slot)
            break;
        memcpy(slot->group, name, sizeof name);
        slot->record = row.record;
        slot->expired = mandate_expired(&row, &now, &slot->remaining_ms);
    }
    (void)sqlite3_reset(s); /* repeats the code of the step */
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

int sqlite_run_mandate(struct sqlite_store *sqlite, const struct store_request *request,
                       struct store_reply *reply)
{
    struct mandate_row row;
    enum row_kind kind;
    struct rules_now now;
    enum gavel_status status;
    int code;

    if (request->op == STORE_GROUPS)
        return list_groups(sqlite, request, reply);
    code = load(sqlite, request->group, &row, &kind);
    if (code)
        return code;
    if (kind == ROW_TOO_NEW) {
        reply_fail(reply, GAVEL_ERR_STORE_TOO_NEW,
                   "the record of group \"%.60s\" in %s was written by a newer gavel; update this one",
                   request->group, sqlite->shown);
        return SQLITE_OK;
    }
    if (kind == ROW_DAMAGED) {
        reply_fail(
            reply, GAVEL_ERR_STORE_DAMAGED,
            "the record of group \"%.60s\" in %s makes no sense; stop all candidates of this store, then restore it from a backup",
            request->group, sqlite->shown);
        return SQLITE_OK;
    }
    if (request->op == STORE_CLAIM && kind == ROW_NONE) {
        code = sqlite_floor(sqlite, &row.record.epoch);
        if (code)
            return code;
        row.record.version = row.record.epoch;
    }
    now = read_now(sqlite);
    status = rules_apply(&row, request, &now);
    if (status == GAVEL_OK) {
        code = save(sqlite, request, &row);
        if (!code && request->op == STORE_RELEASE && request->record.done)
            code = sqlite_forget_outcomes(sqlite, now.now, now.wall_ms);
        if (code)
            return code;
    }
    rules_reply(&row, request, &now, status, reply);
    return SQLITE_OK;
}

int sqlite_read_version(struct sqlite_store *sqlite, const char *group, uint64_t *ret_version)
{
    struct mandate_row row;
    enum row_kind kind;
    int code = load(sqlite, group, &row, &kind);

    if (!code && (kind == ROW_GOOD || kind == ROW_NONE))
        *ret_version = row.record.version; /* zero if it was not found */
    return code;
}
