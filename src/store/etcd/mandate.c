/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The mandates in etcd. A job knows the record of its group from before or looks
 * at it, applies the rule, and puts what it makes of it if the key still has the
 * revision that the rule was applied to. If not, the answer has the record of
 * now, and the job begins again with that.
 *
 *     load ──► decide ──► put ──► done
 *                ▲          │ another was faster (or it was ours already: done)
 *                └──────────┤
 *                           │ nobody knows
 *                           └──► read back: ours, or the failure
 */
#include "store/etcd/etcd.h"

#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

#define TXN_PATH "/v3/kv/txn"
#define TRIES_MAX 8                       /* of a put that always comes too late */
#define KNOWN_MAX 16384                   /* groups of which the record is kept in memory */
#define OFFSET_MAX (RULES_NUMBER_MAX / 2) /* beyond it revisions would have no room above */

static bool take_load(struct etcd_job *job);
static bool take_put(struct etcd_job *job);

enum gavel_status etcd_row_read(const struct etcd_kv *kv, struct mandate_row *ret_row,
                                struct nonce *ret_write, uint64_t *ret_offset)
{
    struct row_json_number number = {.revision = kv->revision};

    *ret_row = (struct mandate_row){0};
    *ret_write = (struct nonce){0};
    *ret_offset = 0;
    if (!kv->is_found)
        return GAVEL_OK;
    switch (row_json_read_numbered(kv->value, kv->size, ret_row, ret_write, &number)) {
    case ROW_JSON_TOO_NEW:
        return GAVEL_ERR_STORE_TOO_NEW;
    case ROW_JSON_DAMAGED:
        return GAVEL_ERR_STORE_DAMAGED;
    case ROW_JSON_GOOD:
        break;
    }
    *ret_offset = number.epoch_offset;
    return GAVEL_OK;
}

static void remember(struct etcd_job *job)
{
    struct etcd_store *etcd = job->etcd;
    char key[ETCD_KEY_SIZE];
    struct etcd_known *known;

    if (!job->row.is_found)
        return;
    if (etcd->group_count >= KNOWN_MAX) {
        etcd_known_clear(&etcd->groups);
        etcd->group_count = 0;
    }
    etcd_key(etcd, ETCD_GROUPS, job->request->group, NULL, key);
    etcd->group_count += !etcd_known_find(&etcd->groups, key);
    known = etcd_known_get(&etcd->groups, key);
    if (!known)
        return; /* it is looked at instead */
    free(known->value);
    known->value = job->value; /* the job is over */
    job->value = NULL;
    known->revision = job->revision;
    known->row = job->row;
    known->epoch_offset = job->epoch_offset;
}

/* The reply, and the end of the job. */
static bool answer(struct etcd_job *job, enum gavel_status status, const struct record *wish)
{
    struct mandate_row whole = job->row;

    if (wish) {
        whole.record.wish_epoch = wish->wish_epoch;
        whole.record.wish_force = wish->wish_force;
        name_copy(whole.record.wish_successor, sizeof whole.record.wish_successor, wish->wish_successor);
    }
    rules_reply_untimed(&whole, job->request, status, job->reply);
    job->reply->record.process = process_within_sight(&whole.record.process, &job->etcd->self);
    remember(job);
    if (status == GAVEL_OK && job->request->op != STORE_READ && job->request->op != STORE_ASK)
        etcd_watch_own(job->etcd, job->request->group, &job->row.record);
    return false;
}

static bool refuse(struct etcd_job *job, enum gavel_status status)
{
    const char *group = job->request->group;
    const char *where = job->etcd->where;

    if (status == GAVEL_ERR_STORE_TOO_NEW)
        reply_fail(job->reply, status,
                   "the record of group \"%.60s\" in %s was written by a newer gavel; update this one", group,
                   where);
    else if (status == GAVEL_ERR_STORE_DAMAGED)
        reply_fail(
            job->reply, status,
            "the record of group \"%.60s\" in %s is not valid; who else writes there? Stop all its candidates, then delete or restore the key",
            group, where);
    else if (status == GAVEL_ERR_NO_MEMORY)
        reply_fail(job->reply, status, "out of memory while reading %s", where);
    else
        reply_fail(job->reply, status, "%s does not answer as etcd does; is something else there?", where);
    return false;
}

/* The record and the wish as the answer has them. */
static enum gavel_status read_answer(struct etcd_job *job, struct record *ret_wish,
                                     struct nonce *ret_wish_write)
{
    struct etcd_kv kv;
    enum gavel_status status = etcd_answer_kv(job->call->answer, 0, &kv);

    if (status == GAVEL_OK)
        status = etcd_row_read(&kv, &job->row, &job->row_write, &job->epoch_offset);
    job->revision = kv.revision;
    free(job->value);
    job->value = kv.value;
    if (status != GAVEL_OK)
        return status;
    status = etcd_answer_kv(job->call->answer, 1, &kv);
    etcd_wish_read(&kv, ret_wish, ret_wish_write);
    etcd_kv_done(&kv);
    return status;
}

static bool ask_load(struct etcd_job *job)
{
    char group[ETCD_KEY_SIZE];
    char wish[ETCD_KEY_SIZE];

    etcd_key(job->etcd, ETCD_GROUPS, job->request->group, NULL, group);
    etcd_key(job->etcd, ETCD_WISHES, job->request->group, NULL, wish);
    job->next = take_load;
    etcd_ask(job->call, TXN_PATH, etcd_body_read(group, wish), false);
    return true;
}

/*
 * So that offset + revision exceeds every epoch that the claimant knows. The
 * revision will be higher than the one that is compared with, so the record's
 * own epoch is exceeded already.
 */
static enum gavel_status raise_offset(struct etcd_job *job)
{
    uint64_t lowest = job->revision + 1;
    uint64_t known = job->request->record.epoch;

    if (job->epoch_offset + lowest <= known)
        job->epoch_offset = known + 1 - lowest;
    return job->epoch_offset > OFFSET_MAX ? GAVEL_ERR_STORE_FULL : GAVEL_OK;
}

/* Applies the rule to the row; a store without a clock leaves it to the caller whether a lease is over. */
static enum gavel_status apply(struct etcd_job *job, struct mandate_row *row)
{
    const struct rules_now now = {.now = clock_now(), .wall_ms = clock_wall_ms(), .self = &job->etcd->self};
    struct store_request untimed = *job->request;
    enum gavel_status status;

    untimed.must_be_expired = false;
    status = rules_apply(row, &untimed, &now);
    if (status == GAVEL_OK && job->request->op == STORE_CLAIM)
        status = raise_offset(job);
    return status;
}

/* The text of the row, or of the wish; the row has no wish in it. */
static char *value_of(struct etcd_job *job, struct mandate_row *row)
{
    const struct row_json_number number = {.epoch_offset = job->epoch_offset,
                                           .is_claim = job->request->op == STORE_CLAIM};

    if (job->request->op == STORE_ASK)
        return etcd_wish_write(&row->record, job->write);
    row->record.wish_epoch = 0;
    return row_json_write_numbered(row, job->write, &number);
}

/* The rule is applied to a copy: what came of it is read from the answer. */
static bool ask_put(struct etcd_job *job, struct mandate_row *changed)
{
    char group[ETCD_KEY_SIZE];
    char wish[ETCD_KEY_SIZE];
    struct etcd_put put = {.compared = group, .revision = job->revision, .was = job->value};
    char *value;

    job->write = etcd_new_nonce(job->etcd);
    value = value_of(job, changed);
    etcd_key(job->etcd, ETCD_GROUPS, job->request->group, NULL, group);
    etcd_key(job->etcd, ETCD_WISHES, job->request->group, NULL, wish);
    put.key = job->request->op == STORE_ASK ? wish : group;
    put.value = value;
    job->next = take_put;
    etcd_ask(job->call, TXN_PATH, value ? etcd_body_put(&put, group, wish) : NULL, true);
    free(value);
    return true;
}

static bool decide(struct etcd_job *job, const struct record *wish)
{
    struct mandate_row changed = job->row;
    enum gavel_status status = apply(job, &changed);

    if (status != GAVEL_OK || job->request->op == STORE_READ)
        return answer(job, status, wish);
    if (job->tries++ == TRIES_MAX) {
        reply_fail(job->reply, GAVEL_ERR_STORE_UNAVAILABLE,
                   "group \"%.60s\" in %s changes faster than it can be written; try again later",
                   job->request->group, job->etcd->where);
        return false;
    }
    return ask_put(job, &changed);
}

static bool take_load(struct etcd_job *job)
{
    struct record wish = {0};
    struct nonce wish_write;
    enum gavel_status status;

    if (job->call->status != GAVEL_OK)
        return job->doubt ? etcd_job_fail_doubt(job) : etcd_job_fail(job);
    status = read_answer(job, &wish, &wish_write);
    if (status != GAVEL_OK)
        return refuse(job, status);
    if (!job->doubt)
        return decide(job, &wish);
    if (nonce_equal(job->request->op == STORE_ASK ? wish_write : job->row_write, job->write))
        return answer(job, GAVEL_OK, &wish);
    return etcd_job_fail_doubt(job);
}

static bool take_put(struct etcd_job *job)
{
    struct record wish = {0};
    struct nonce wish_write;
    enum gavel_status status;

    if (job->call->status != GAVEL_OK && job->call->may_be_applied) {
        etcd_job_doubt(job);
        return ask_load(job);
    }
    if (job->call->status != GAVEL_OK)
        return etcd_job_fail(job);
    status = read_answer(job, &wish, &wish_write);
    if (status != GAVEL_OK)
        return refuse(job, status);
    if (etcd_has_put(job->call->answer) || nonce_equal(job->row_write, job->write))
        return answer(job, GAVEL_OK, &wish);
    return decide(job, &wish);
}

/* What is known may be old. If the rule refuses on its account, the record of now is looked at first. */
void etcd_begin_mandate(struct etcd_job *job)
{
    const struct store_request *request = job->request;
    struct mandate_row changed;
    struct etcd_known *known;
    char key[ETCD_KEY_SIZE];

    etcd_key(job->etcd, ETCD_GROUPS, request->group, NULL, key);
    known = etcd_known_find(&job->etcd->groups, key);
    if (known && known->value) {
        job->value = strdup(known->value);
        job->revision = known->revision;
        job->row = known->row;
        job->epoch_offset = known->epoch_offset;
    }
    changed = job->row;
    if (request->op == STORE_READ || request->op == STORE_ASK ||
        (!job->value && request->op != STORE_CLAIM) || apply(job, &changed) != GAVEL_OK) {
        (void)ask_load(job); /* which it always does */
        return;
    }
    job->tries = 1;
    (void)ask_put(job, &changed); /* likewise */
}
