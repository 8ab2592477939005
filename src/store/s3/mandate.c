/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is decided about mandates: the rules that every store has (rules.h), on
 * a row that is then put back whole. The version is a number in the row; a
 * wish changes the object and its ETag, but not the version. Whether a lease
 * has run out is never asked here: standbys time it themselves.
 */
#include "store/s3/s3.h"

#include "os/clock.h"
#include "store/row_json.h"
#include "store/s3/foreign.h"

#include <string.h>

static enum gavel_status decide(struct s3_edit *edit, char **ret_body)
{
    const struct rules_now now = {.now = clock_now(), .wall_ms = clock_wall_ms(), .self = &edit->s3->self};
    struct store_request request = *edit->request;
    enum gavel_status status;

    request.must_be_expired = false;
    /* What is not gavel's can be taken over, and nothing else. */
    if (edit->entry->is_known && edit->entry->is_foreign && request.op != STORE_CLAIM)
        return request.op == STORE_REOPEN ? GAVEL_ERR_CONFLICT : GAVEL_ERR_NOT_HOLDER;
    edit->row = edit->entry->is_known ? edit->entry->row : (struct mandate_row){0};
    status = rules_apply(&edit->row, &request, &now);
    if (status != GAVEL_OK)
        return status;
    *ret_body = row_json_write(&edit->row, edit->write);
    return *ret_body ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}

/*
 * A release that is there already needs no other. A claim is known by its very write alone: one that was sent
 * earlier with the same nonce, and arrived late, began its lease before this one was sent.
 */
static bool is_ours(const struct s3_edit *edit)
{
    const struct record *there = &edit->entry->row.record;
    const struct record *record = &edit->request->record;

    return edit->request->op == STORE_RELEASE && nonce_equal(there->nonce, record->nonce) &&
           strcmp(there->holder, record->holder) == 0 && !there->held && there->done == record->done;
}

static void conclude(struct s3_edit *edit, enum gavel_status status)
{
    struct store_reply *reply = edit->reply;

    if (status == GAVEL_ERR_NO_MEMORY) {
        reply_fail(reply, status, "out of memory while writing to an object store");
        return;
    }
    rules_reply_untimed(&edit->entry->row, edit->request, status, reply);
    if (edit->entry->is_foreign && status == GAVEL_OK)
        s3_foreign_tell(&edit->entry->row, edit->workers, reply);
    reply->record.process = process_within_sight(&reply->record.process, &edit->s3->self);
}

const struct s3_kind s3_kind_mandate = {.decide = decide, .is_ours = is_ours, .conclude = conclude};
