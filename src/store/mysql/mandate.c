/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the answers to the statements of script.c mean. The row that was
 * read back tells what stands there now; whether a write was applied tells the
 * count of rows that it has changed, for a row may look the same by an earlier
 * write. Why one was not applied follows from the rules of rules.c.
 */
#include "store/mysql/internal.h"

#include <stdlib.h>
#include <string.h>

/* What the column `held` says. */
enum held { HELD_NOT, HELD_YES, HELD_DONE };

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
    int64_t held = mysql_word_i64(from, MYSQL_COLUMN_HELD);

    *ret_row = (struct row){.kind = ROW_GOOD};
    mysql_word_text(from, MYSQL_COLUMN_KEY, ret_row->key, sizeof ret_row->key);
    ret_row->left_us = mysql_word_i64(from, MYSQL_COLUMN_LEFT_US);
    record->epoch = mysql_word_u64(from, MYSQL_COLUMN_EPOCH);
    record->version = mysql_word_u64(from, MYSQL_COLUMN_VERSION);
    record->nonce = parse_nonce(from[MYSQL_COLUMN_NONCE]);
    record->lease_ms = mysql_word_i64(from, MYSQL_COLUMN_LEASE_MS);
    record->since_wall_ms = mysql_word_i64(from, MYSQL_COLUMN_SINCE);
    record->renewed_wall_ms = mysql_word_i64(from, MYSQL_COLUMN_RENEWED);
    record->held = held == HELD_YES;
    record->done = held == HELD_DONE;
    mysql_word_process(from, MYSQL_COLUMN_PROCESS, self, &record->process);
    mysql_word_text(from, MYSQL_COLUMN_HOLDER, record->holder, sizeof record->holder);
    mysql_word_text(from, MYSQL_COLUMN_ADDRESS, record->address, sizeof record->address);
    mysql_word_text(from, MYSQL_COLUMN_SUCCESSOR, record->successor, sizeof record->successor);
    record->wish_epoch = mysql_word_u64(from, MYSQL_COLUMN_WISH_EPOCH);
    rules_take_wish_column(record, mysql_word_i64(from, MYSQL_COLUMN_WISH_FORCE));
    mysql_word_text(from, MYSQL_COLUMN_WISH_SUCCESSOR, record->wish_successor, sizeof record->wish_successor);

    if (mysql_word_i64(from, MYSQL_COLUMN_FORMAT) > MYSQL_ROW_FORMAT)
        ret_row->kind = ROW_TOO_NEW;
    else if (mysql_word_i64(from, MYSQL_COLUMN_IS_FOREIGN) != 0)
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
 * decides. But a little more may seem to be: a look counts from when its statement began, and may see a
 * renewal that began a moment later.
 */
static bool is_expired(const struct row *row, gavel_ms *ret_left)
{
    const struct record *record = &row->record;

    *ret_left = 0;
    if (!record->held || row->left_us <= 0 || row->left_us > record->lease_ms * 1000 + MYSQL_AHEAD_US)
        return true;
    *ret_left = (row->left_us + 999) / 1000;
    if (*ret_left > record->lease_ms)
        *ret_left = record->lease_ms;
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
            "table %s takes group \"%.40s\" for \"%.40s\" by the collation of its lock_key; run `gavel store "
            "migrate` on this store",
            mysql->target.table, request->group, row->key);
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

static void list_groups(struct mysql_store *mysql, struct store_reply *reply, MYSQL_RES *rows)
{
    MYSQL_ROW from;

    reply->has_more = mysql_num_rows(rows) > STORE_GROUPS_MAX;
    while ((from = mysql_fetch_row(rows))) {
        struct row row;
        struct group_row *slot;

        parse_row(from, &mysql->self, &row);
        if (row.kind == ROW_FOREIGN)
            show_foreign(&row);
        else if (row.kind != ROW_GOOD)
            continue; /* a READ of such a group says why */
        slot = reply_add_group(reply);
        if (!slot)
            break;
        name_copy(slot->group, sizeof slot->group, row.key);
        slot->record = row.record;
        slot->expired = is_expired(&row, &slot->remaining_ms);
    }
    if (reply->group_count > 0)
        qsort(reply->groups, reply->group_count, sizeof *reply->groups, group_order);
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
                   "the answer to the claim on group \"%.80s\" was lost; it is unknown whether it will be "
                   "carried out",
                   call->request->group);
        return;
    }
    rules_explain(call->request, judge(call, &row), reply);
}
