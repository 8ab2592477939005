/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The mandates in MySQL: the statements that decide, and what their answers
 * mean. Each decision is one conditional statement; the row is then read back,
 * in the same round trip, and the answer tells what stands there.
 *
 * Time is the server's. NOW(6) is the instant at which a statement began, even
 * if it then had to wait for a lock; that is the safe side of both: a renewal
 * counts from before it was applied (and the holder counts from before it was
 * sent), and a take-over finds a lease expired rather too late than too early.
 * The session is in UTC, where no hour comes twice.
 *
 * Programs that know three columns write owner_id and expires_at and nothing
 * else. Beside these stand copies of what gavel wrote last; where they differ,
 * such a program has been there. All statements compare them, so that no write
 * of gavel goes over one that it has not seen; and whoever reads such a row
 * first makes a record of it (ABSORB): a version of its own, and an epoch if the
 * owner is another. From then on it is a record like any other.
 *
 * A claim takes the row of the epochs first and that of the mandate second,
 * always in this order, so that two cannot wait for each other.
 */
#include "os/process.h"
#include "store/mysql_driver.h"

#include <stdlib.h>
#include <string.h>

/* Two names that the collation of an older table makes one are two groups all the same. */
#define KEY_IS "lock_key = {group} AND CAST(CONVERT(lock_key USING utf8mb4) AS BINARY) = {group_bytes}"
#define OWNER "CAST(CONVERT(owner_id USING utf8mb4) AS BINARY)"
#define IS_OURS OWNER " <=> CAST(gavel_owner AS BINARY) AND expires_at <=> gavel_expires_at"
#define IS_KNOWN "format <= {format}"
#define IS_HOLDER                                                                                            \
    KEY_IS " AND " IS_KNOWN " AND held = 1 AND nonce = {nonce} AND {if_epoch} AND " OWNER                    \
           " = {holder_bytes} AND " IS_OURS
#define LEASE_END "NOW(6) + INTERVAL {lease_us} MICROSECOND"
/* To a program of three columns a released row has expired, whatever the server's clock does. */
#define LONG_PAST "FROM_UNIXTIME(86400)"
/* A row that comes after a deleted one must not repeat its versions. */
#define FIRST_VERSION "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)"

#define LEFT_US "TIMESTAMPDIFF(MICROSECOND, NOW(6), expires_at)"
#define NO_NONCE "x'00000000000000000000000000000000'" /* whose mandate is not gavel's */
#define IS_PROLONGED "nonce = " NO_NONCE " AND held = 1 AND " OWNER " <=> CAST(gavel_owner AS BINARY)"

#define COLUMNS                                                                                              \
    "lock_key, format, IF(held = 2, gavel_owner, owner_id), " LEFT_US ", held <> 2 AND NOT (" IS_OURS "),"   \
    " epoch, version, HEX(nonce), lease_ms, held,"                                                           \
    " CAST(UNIX_TIMESTAMP(since) * 1000 AS SIGNED), CAST(UNIX_TIMESTAMP(renewed) * 1000 AS SIGNED),"         \
    " address, process, successor, wish_epoch, wish_force, wish_successor"

enum column {
    COLUMN_KEY,
    COLUMN_FORMAT,
    COLUMN_HOLDER,
    COLUMN_LEFT_US,
    COLUMN_IS_FOREIGN,
    COLUMN_EPOCH,
    COLUMN_VERSION,
    COLUMN_NONCE,
    COLUMN_LEASE_MS,
    COLUMN_HELD,
    COLUMN_SINCE,
    COLUMN_RENEWED,
    COLUMN_ADDRESS,
    COLUMN_PROCESS,
    COLUMN_SUCCESSOR,
    COLUMN_WISH_EPOCH,
    COLUMN_WISH_FORCE,
    COLUMN_WISH_SUCCESSOR,
    COLUMN_COUNT,
};

/* What the column `held` says. */
enum held { HELD_NOT, HELD_YES, HELD_DONE };

#define READ_BACK "SELECT " COLUMNS " FROM {locks} WHERE lock_key = {group}"
#define LOCK_EPOCH                                                                                           \
    "INSERT INTO {epochs} (lock_key, epoch) VALUES ({group}, 0) ON DUPLICATE KEY UPDATE epoch = epoch"
#define KNOWN_EPOCH "COALESCE((SELECT e.epoch FROM {epochs} e WHERE e.lock_key = {group}), 0)"
#define KEEP_EPOCH                                                                                           \
    "UPDATE {epochs} SET epoch = GREATEST(epoch, COALESCE((SELECT l.epoch FROM {locks} l"                    \
    " WHERE l.lock_key = {group}), 0)) WHERE lock_key = {group}"

static const struct mysql_script script_read = {{READ_BACK}, -1};

/* That it changes nothing if there is a row shows by the count of changed rows. */
static const struct mysql_script script_acquire = {
    {
        "START TRANSACTION",
        LOCK_EPOCH,
        "INSERT INTO {locks} (lock_key, owner_id, expires_at, gavel_owner, gavel_expires_at, format, epoch,"
        " version, nonce, lease_ms, held, since, renewed, address, process)"
        " SELECT {group}, {holder}, " LEASE_END ", {holder}, " LEASE_END
        ", {format}, 1 + GREATEST(e.epoch, {epoch}), " FIRST_VERSION
        ", {nonce}, {lease_ms}, 1, NOW(6), NOW(6), {address}, {process} FROM {epochs} e"
        " WHERE e.lock_key = {group} AND e.epoch < {max}"
        " ON DUPLICATE KEY UPDATE expires_at = {locks}.expires_at",
        KEEP_EPOCH,
        "COMMIT",
        READ_BACK,
    },
    2,
};

static const struct mysql_script script_take_over = {
    {
        "START TRANSACTION",
        LOCK_EPOCH,
        "UPDATE {locks} SET epoch = 1 + GREATEST(epoch, {epoch}, " KNOWN_EPOCH "), version = version + 1,"
        " nonce = {nonce}, lease_ms = {lease_ms}, held = 1, since = NOW(6), renewed = NOW(6),"
        " address = {address}, process = {process}, successor = '', wish_epoch = 0, wish_force = 0,"
        " wish_successor = '', owner_id = {holder}, gavel_owner = {holder}, expires_at = " LEASE_END
        ", gavel_expires_at = " LEASE_END " WHERE " KEY_IS " AND " IS_KNOWN
        " AND version = {version} AND held <> 2 AND " IS_OURS " AND {if_expired} AND epoch < {max}"
        " AND version < {max} AND " KNOWN_EPOCH " < {max}",
        KEEP_EPOCH,
        "COMMIT",
        READ_BACK,
    },
    2,
};

static const struct mysql_script script_renew = {
    {
        "UPDATE {locks} SET version = version + 1, lease_ms = {lease_ms}, renewed = NOW(6),"
        " expires_at = " LEASE_END ", gavel_expires_at = " LEASE_END " WHERE " IS_HOLDER,
        READ_BACK,
    },
    0,
};

static const struct mysql_script script_release = {
    {
        "UPDATE {locks} SET version = version + 1, held = {held_after}, successor = {successor},"
        " expires_at = " LONG_PAST ", gavel_expires_at = " LONG_PAST " WHERE " IS_HOLDER,
        READ_BACK,
    },
    0,
};

/* Here and below the expiry is given its own value, so that a column that changes by itself does not. */
static const struct mysql_script script_ask = {
    {
        "UPDATE {locks} SET wish_epoch = {wish_epoch}, wish_force = {wish_force},"
        " wish_successor = {wish_successor}, expires_at = expires_at WHERE " KEY_IS " AND " IS_KNOWN
        " AND held = 1 AND epoch = {wish_epoch} AND " IS_OURS,
        READ_BACK,
    },
    0,
};

static const struct mysql_script script_reopen = {
    {
        "UPDATE {locks} SET version = version + 1, held = 0, expires_at = expires_at WHERE " KEY_IS
        " AND " IS_KNOWN " AND held = 2 AND version = {version}",
        READ_BACK,
    },
    0,
};

/*
 * The assignments are carried out from left to right: what a later one reads
 * is still as it was. The same program that prolongs its lease keeps its epoch.
 */
static const struct mysql_script script_absorb = {
    {
        "START TRANSACTION",
        LOCK_EPOCH,
        "UPDATE {locks} SET epoch = IF(" IS_PROLONGED ", epoch, 1 + GREATEST(epoch, " KNOWN_EPOCH ")),"
        " since = IF(" IS_PROLONGED ", since, NOW(6)), version = IF(version = 0, " FIRST_VERSION
        ", version + 1),"
        " lease_ms = LEAST(GREATEST(CEIL(" LEFT_US " / 1000), 1), {lease_max}), renewed = NOW(6),"
        " nonce = " NO_NONCE ", held = 1, address = '', process = '', successor = '', wish_epoch = 0,"
        " wish_force = 0, wish_successor = '', gavel_owner = owner_id, gavel_expires_at = expires_at,"
        " expires_at = expires_at WHERE " KEY_IS " AND " IS_KNOWN " AND held <> 2 AND NOT (" IS_OURS ")"
        " AND epoch < {max} AND version < {max} AND " KNOWN_EPOCH " < {max}",
        KEEP_EPOCH,
        "COMMIT",
        READ_BACK,
    },
    2,
};

static const struct mysql_script script_groups = {
    {"SELECT " COLUMNS " FROM {locks} ORDER BY lock_key LIMIT {groups_max}"}, -1};

const struct mysql_script *mysql_mandate_script(const struct mysql_call *call)
{
    if (call->stage == MYSQL_STAGE_ABSORB)
        return &script_absorb;
    if (call->stage == MYSQL_STAGE_READ)
        return &script_read;
    switch (call->request->op) {
    case STORE_CLAIM:
        if (call->request->record.epoch >= RULES_NUMBER_MAX)
            return &script_read; /* there is no higher one */
        return call->request->expected_version == 0 ? &script_acquire : &script_take_over;
    case STORE_RENEW:
        return &script_renew;
    case STORE_RELEASE:
        return &script_release;
    case STORE_ASK:
        return &script_ask;
    case STORE_REOPEN:
        return &script_reopen;
    case STORE_GROUPS:
        return &script_groups;
    default:
        return &script_read;
    }
}

/* What a row is to us. */
enum row_kind { ROW_GOOD, ROW_NONE, ROW_FOREIGN, ROW_TOO_NEW, ROW_DAMAGED };

struct row {
    enum row_kind kind;
    char key[NAME_MAX_BYTES + 1];
    struct record record;
    int64_t left_us; /* of the lease */
};

static struct nonce parse_nonce(const char *text)
{
    char high[17] = "";

    if (!text || strlen(text) != 32)
        return (struct nonce){0};
    memcpy(high, text, 16);
    return (struct nonce){strtoull(high, NULL, 16), strtoull(text + 16, NULL, 16)};
}

static void parse_row(MYSQL_ROW from, const struct process_id *self, struct row *ret_row)
{
    struct record *record = &ret_row->record;
    int64_t held = mysql_word_i64(from, COLUMN_HELD);

    *ret_row = (struct row){.kind = ROW_GOOD};
    mysql_word_text(from, COLUMN_KEY, ret_row->key, sizeof ret_row->key);
    ret_row->left_us = mysql_word_i64(from, COLUMN_LEFT_US);
    record->epoch = mysql_word_u64(from, COLUMN_EPOCH);
    record->version = mysql_word_u64(from, COLUMN_VERSION);
    record->nonce = parse_nonce(from[COLUMN_NONCE]);
    record->lease_ms = mysql_word_i64(from, COLUMN_LEASE_MS);
    record->since_wall_ms = mysql_word_i64(from, COLUMN_SINCE);
    record->renewed_wall_ms = mysql_word_i64(from, COLUMN_RENEWED);
    record->held = held == HELD_YES;
    record->done = held == HELD_DONE;
    mysql_word_process(from, COLUMN_PROCESS, self, &record->process);
    mysql_word_text(from, COLUMN_HOLDER, record->holder, sizeof record->holder);
    mysql_word_text(from, COLUMN_ADDRESS, record->address, sizeof record->address);
    mysql_word_text(from, COLUMN_SUCCESSOR, record->successor, sizeof record->successor);
    record->wish_epoch = mysql_word_u64(from, COLUMN_WISH_EPOCH);
    record->wish_force = mysql_word_u64(from, COLUMN_WISH_FORCE) != 0;
    mysql_word_text(from, COLUMN_WISH_SUCCESSOR, record->wish_successor, sizeof record->wish_successor);

    if (mysql_word_i64(from, COLUMN_FORMAT) > MYSQL_ROW_FORMAT)
        ret_row->kind = ROW_TOO_NEW;
    else if (mysql_word_i64(from, COLUMN_IS_FOREIGN) != 0)
        ret_row->kind = ROW_FOREIGN;
    /* What no gavel writes; taken at its word it could free a group or block it for ever. */
    else if (record->epoch == 0 || record->epoch > RULES_NUMBER_MAX || record->version == 0 ||
             record->version > RULES_NUMBER_MAX || record->lease_ms < 1 ||
             record->lease_ms > STORE_DURATION_MAX_MS || held < HELD_NOT || held > HELD_DONE)
        ret_row->kind = ROW_DAMAGED;
}

/*
 * Whether the lease has run out on the server's clock, and what is left of it, rounded up. More than all of
 * it cannot be left: then the clock was set back since, and can tell nothing; what standbys have seen
 * decides.
 */
static bool is_expired(const struct row *row, gavel_ms *ret_left)
{
    *ret_left = 0;
    if (!row->record.held)
        return true;
    if (row->left_us <= 0 || row->left_us > row->record.lease_ms * 1000)
        return true;
    *ret_left = (row->left_us + 999) / 1000;
    return false;
}

/* As it would be if we had made a record of it; for those who may only look, and for listings. */
static void show_foreign(struct row *row)
{
    struct record *record = &row->record;
    struct record shown = {.epoch = record->epoch, .version = record->version, .held = true};

    shown.lease_ms = row->left_us > 1000 ? (row->left_us + 999) / 1000 : 1;
    if (shown.lease_ms > STORE_DURATION_MAX_MS)
        shown.lease_ms = STORE_DURATION_MAX_MS;
    name_copy(shown.holder, sizeof shown.holder, record->holder);
    *record = shown;
}

static bool is_mine(const struct record *record, const struct record *mine)
{
    return nonce_equal(record->nonce, mine->nonce) && strcmp(record->holder, mine->holder) == 0 &&
           (mine->epoch == 0 || mine->epoch == record->epoch);
}

/*
 * The rules of rules_claim(), to say why the statement has changed nothing. That the row has our nonce is no
 * answer: a claim that was sent earlier with the same one, and arrived late, began its lease before this one
 * was sent.
 */
static enum gavel_status judge_claim(const struct mysql_call *call, const struct row *row)
{
    const struct store_request *request = call->request;
    const struct record *record = &row->record;
    bool is_won = row->kind == ROW_GOOD && record->held &&
                  nonce_equal(record->nonce, request->record.nonce) &&
                  strcmp(record->holder, request->record.holder) == 0;
    gavel_ms left;

    if (is_won && call->is_applied)
        return GAVEL_OK;
    if (record->done)
        return GAVEL_ERR_DONE;
    if (request->expected_version != record->version)
        return GAVEL_ERR_CONFLICT;
    if (request->must_be_expired && row->kind == ROW_GOOD && !is_expired(row, &left))
        return GAVEL_ERR_CONFLICT;
    if (record->epoch >= RULES_NUMBER_MAX || request->record.epoch >= RULES_NUMBER_MAX ||
        record->version >= RULES_NUMBER_MAX)
        return GAVEL_ERR_STORE_FULL;
    return GAVEL_ERR_CONFLICT; /* it was otherwise when the statement looked */
}

/*
 * The statement may still be on its way, or wait for a lock: as long as the version is the same, it can win.
 * And if our nonce is there, it may have won. The candidate reads that, and claims anew.
 */
static bool is_in_doubt(const struct mysql_call *call, const struct row *row)
{
    const struct store_request *request = call->request;

    return request->op == STORE_CLAIM && call->is_lost && !row->record.done &&
           (request->expected_version == row->record.version ||
            nonce_equal(row->record.nonce, request->record.nonce));
}

static enum gavel_status judge_release(const struct mysql_call *call, const struct record *record)
{
    const struct record *mine = &call->request->record;

    if (call->is_applied)
        return GAVEL_OK;
    /* Sent a second time because no answer came: what it wanted may be there already. */
    if (call->is_lost && is_mine(record, mine) && !record->held && record->done == mine->done)
        return GAVEL_OK;
    return GAVEL_ERR_NOT_HOLDER;
}

static enum gavel_status judge_wish(const struct mysql_call *call, const struct record *record)
{
    const struct record *wish = &call->request->record;
    bool stands = record->held && record->epoch == wish->wish_epoch &&
                  record->wish_epoch == wish->wish_epoch && record->wish_force == wish->wish_force &&
                  strcmp(record->wish_successor, wish->wish_successor) == 0;

    return call->is_applied || stands ? GAVEL_OK : GAVEL_ERR_NOT_HOLDER;
}

static enum gavel_status judge(const struct mysql_call *call, const struct row *row)
{
    const struct record *record = &row->record;

    switch (call->request->op) {
    case STORE_CLAIM:
        return judge_claim(call, row);
    case STORE_RENEW: /* renewed and lost since then is lost */
        return call->is_applied && record->held && is_mine(record, &call->request->record)
                   ? GAVEL_OK
                   : GAVEL_ERR_NOT_HOLDER;
    case STORE_RELEASE:
        return judge_release(call, record);
    case STORE_ASK:
        return judge_wish(call, record);
    case STORE_REOPEN: /* whoever opened this very version, it is open */
        return call->is_applied || (call->is_lost && row->kind == ROW_GOOD && !record->done &&
                                    record->version == call->request->expected_version + 1)
                   ? GAVEL_OK
                   : GAVEL_ERR_CONFLICT;
    default:
        return GAVEL_OK;
    }
}

/* True if nothing else can be said of the row. */
static bool refuse_row(const struct mysql_store *mysql, const struct store_request *request,
                       const struct row *row, struct store_reply *reply)
{
    if (row->kind != ROW_NONE && strcmp(row->key, request->group) != 0)
        reply_fail(
            reply, GAVEL_ERR_STORE_UNSUPPORTED,
            "table %s takes group \"%.40s\" for \"%.40s\"; give its lock_key a binary collation without "
            "padding, as `gavel store sql mysql` prints",
            mysql->place.table, request->group, row->key);
    else if (row->kind == ROW_TOO_NEW)
        reply_fail(reply, GAVEL_ERR_STORE_TOO_NEW,
                   "the record of group \"%.60s\" in %s was written by a newer gavel; update this one",
                   request->group, mysql->shown);
    else if (row->kind == ROW_DAMAGED)
        reply_fail(
            reply, GAVEL_ERR_STORE_DAMAGED,
            "the record of group \"%.60s\" in %s makes no sense; stop all candidates of this store, then "
            "restore it from a backup",
            request->group, mysql->shown);
    else
        return false;
    return true;
}

static int compare_groups(const void *a, const void *b)
{
    const struct group_row *one = a;
    const struct group_row *other = b;

    return strcmp(one->group, other->group);
}

static void list_groups(struct mysql_store *mysql, struct store_reply *reply, MYSQL_RES *rows)
{
    MYSQL_ROW from;

    while ((from = mysql_fetch_row(rows))) {
        struct row row;
        struct group_row *place;

        parse_row(from, &mysql->self, &row);
        if (row.kind == ROW_FOREIGN)
            show_foreign(&row);
        else if (row.kind != ROW_GOOD)
            continue; /* a READ of such a group says why */
        place = reply_add_group(reply);
        if (!place)
            return;
        name_copy(place->group, sizeof place->group, row.key);
        place->record = row.record;
        place->expired = is_expired(&row, &place->remaining_ms);
    }
    if (reply->group_count > 0)
        qsort(reply->groups, reply->group_count, sizeof *reply->groups, compare_groups);
}

void mysql_mandate_conclude(struct mysql_store *mysql, struct mysql_call *call,
                            const struct mysql_answer *answer)
{
    struct store_reply *reply = call->reply;
    struct row row = {.kind = ROW_NONE};
    MYSQL_ROW from;

    if (call->request->op == STORE_GROUPS) {
        call->is_answered = true;
        if (answer->rows)
            list_groups(mysql, reply, answer->rows);
        return;
    }
    if (call->stage == MYSQL_STAGE_FIRST && answer->changed > 0)
        call->is_applied = true;
    from = answer->rows ? mysql_fetch_row(answer->rows) : NULL;
    if (from)
        parse_row(from, &mysql->self, &row);
    if (row.kind == ROW_FOREIGN && strcmp(row.key, call->request->group) == 0 && call->absorbs < 3) {
        call->stage = MYSQL_STAGE_ABSORB;
        call->absorbs++;
        return;
    }
    call->is_answered = true;
    if (refuse_row(mysql, call->request, &row, reply))
        return;
    if (row.kind == ROW_FOREIGN)
        show_foreign(&row);
    reply->found = row.kind != ROW_NONE;
    reply->record = row.record;
    reply->expired = reply->found && is_expired(&row, &reply->remaining_ms);
    if (is_in_doubt(call, &row)) {
        reply_fail(reply, GAVEL_ERR_STORE_UNAVAILABLE,
                   "the answer to the claim on group \"%.80s\" was lost; whether it will be carried out is "
                   "not known",
                   call->request->group);
        return;
    }
    rules_explain(call->request, judge(call, &row), reply);
}
