/* SPDX-License-Identifier: Apache-2.0 */

#include "store/rules.h"

#include "os/process.h"
#include "store/driver.h"

#include <string.h>

/*
 * CLOCK_BOOTTIME starts anew with each boot. An instant further ahead than
 * this was read on an earlier boot; nobody reads the clock of this one so
 * differently.
 */
#define AHEAD_MAX (1 * NS_PER_S)

/*
 * An earlier boot has ended all its leases, because its processes are dead.
 * It shows either by an instant that has not come yet, or by another boot id
 * where both sides see true ones (a container may have one of its own). An
 * earlier boot that shows in neither way costs one lease of waiting, no more:
 * applied_at is then not ahead of now.
 */
static bool is_of_earlier_boot(const struct mandate_row *row, const struct rules_now *now)
{
    if (row->applied_at > now->now + AHEAD_MAX)
        return true;
    return row->boot_id[0] && strcmp(row->boot_id, now->self->boot_id) != 0 &&
           process_has_true_boot_id(now->self) && process_has_true_boot_id(&row->record.process);
}

bool mandate_expired(const struct mandate_row *row, const struct rules_now *now, gavel_ms *ret_remaining)
{
    gavel_ns left = row->applied_at + ns_from_ms(row->record.lease_ms) - now->now;

    *ret_remaining = 0;
    if (!row->is_found || !row->record.held)
        return row->is_found;
    if (left <= 0 || is_of_earlier_boot(row, now))
        return true;
    *ret_remaining = (left + NS_PER_MS - 1) / NS_PER_MS; /* rounded up: never expired too early */
    return false;
}

static bool is_holder(const struct mandate_row *row, const struct record *claimant)
{
    const struct record *record = &row->record;

    return row->is_found && record->held && nonce_equal(record->nonce, claimant->nonce) &&
           (claimant->epoch == 0 || claimant->epoch == record->epoch) &&
           strcmp(record->holder, claimant->holder) == 0;
}

enum gavel_status rules_claim(struct mandate_row *row, const struct store_request *request,
                              const struct rules_now *now)
{
    struct record *record = &row->record;
    gavel_ms remaining;

    if (record->done)
        return GAVEL_ERR_DONE;
    if (request->expected_version != (row->is_found ? record->version : 0))
        return GAVEL_ERR_CONFLICT;
    if (request->must_be_expired && row->is_found && !mandate_expired(row, now, &remaining))
        return GAVEL_ERR_CONFLICT;
    /* One more would be a number that stores cannot keep; whoever reads it would call it damage. */
    if (record->epoch >= RULES_NUMBER_MAX || request->record.epoch >= RULES_NUMBER_MAX ||
        record->version >= RULES_NUMBER_MAX)
        return GAVEL_ERR_STORE_FULL;

    if (record->epoch < request->record.epoch)
        record->epoch = request->record.epoch;
    record->epoch++;
    record->version++;
    record->held = true;
    record->nonce = request->record.nonce;
    record->lease_ms = request->record.lease_ms;
    record->process = request->record.process;
    record->since_wall_ms = now->wall_ms;
    record->renewed_wall_ms = now->wall_ms;
    name_copy(record->holder, sizeof record->holder, request->record.holder);
    name_copy(record->address, sizeof record->address, request->record.address);
    record->successor[0] = '\0';
    record->loss = GAVEL_LOSS_NONE;
    /* A wish was for the mandate before. */
    record->wish_epoch = 0;
    record->wish_force = false;
    record->wish_successor[0] = '\0';
    row->is_found = true;
    row->applied_at = now->now;
    name_copy(row->boot_id, sizeof row->boot_id, now->self->boot_id);
    return GAVEL_OK;
}

enum gavel_status rules_renew(struct mandate_row *row, const struct store_request *request,
                              const struct rules_now *now)
{
    if (!is_holder(row, &request->record))
        return GAVEL_ERR_NOT_HOLDER;
    row->record.version++;
    row->record.lease_ms = request->record.lease_ms;
    row->record.renewed_wall_ms = now->wall_ms;
    row->applied_at = now->now;
    name_copy(row->boot_id, sizeof row->boot_id, now->self->boot_id);
    return GAVEL_OK;
}

enum gavel_status rules_release(struct mandate_row *row, const struct store_request *request)
{
    struct record *record = &row->record;

    if (!is_holder(row, &request->record))
        return GAVEL_ERR_NOT_HOLDER;
    record->version++;
    record->held = false; /* the epoch stays, so that it never restarts */
    record->done = request->record.done;
    record->loss = record->done ? GAVEL_LOSS_NONE : request->record.loss;
    name_copy(record->successor, sizeof record->successor, request->record.successor);
    return GAVEL_OK;
}

enum gavel_status rules_ask(struct mandate_row *row, const struct store_request *request)
{
    struct record *record = &row->record;

    if (!row->is_found || !record->held || record->epoch != request->record.wish_epoch)
        return GAVEL_ERR_NOT_HOLDER;
    record->wish_epoch = request->record.wish_epoch;
    record->wish_force = request->record.wish_force;
    name_copy(record->wish_successor, sizeof record->wish_successor, request->record.wish_successor);
    return GAVEL_OK;
}

/* The version fences it: one that was sent twice must not undo the success that came in between. */
enum gavel_status rules_reopen(struct mandate_row *row, const struct store_request *request)
{
    struct record *record = &row->record;

    if (!row->is_found || !record->done || record->version != request->expected_version)
        return GAVEL_ERR_CONFLICT;
    record->version++;
    record->done = false;
    return GAVEL_OK;
}

enum gavel_status rules_apply(struct mandate_row *row, const struct store_request *request,
                              const struct rules_now *now)
{
    switch (request->op) {
    case STORE_CLAIM:
        return rules_claim(row, request, now);
    case STORE_RENEW:
        return rules_renew(row, request, now);
    case STORE_RELEASE:
        return rules_release(row, request);
    case STORE_ASK:
        return rules_ask(row, request);
    case STORE_REOPEN:
        return rules_reopen(row, request);
    default:
        return GAVEL_OK; /* nothing to decide */
    }
}

/* No `wish_force` of a release that does not know of losses; a loss that is not known here is one all the
 * same. */
#define LOSS_MARK 16

int rules_wish_column(const struct record *record)
{
    if (record->held)
        return record->wish_force;
    return record->loss == GAVEL_LOSS_NONE ? 0 : LOSS_MARK + (int)record->loss;
}

void rules_take_wish_column(struct record *record, int64_t column)
{
    bool is_lost = !record->held && !record->done && column > LOSS_MARK;

    record->wish_force = record->held && column != 0;
    record->loss = is_lost ? rules_loss(column - LOSS_MARK) : GAVEL_LOSS_NONE;
}

enum gavel_loss rules_loss(int64_t number)
{
    return number >= 0 && number < GAVEL_LOSS_COUNT ? (enum gavel_loss)number : GAVEL_LOSS_LAPSED;
}

void rules_explain(const struct store_request *request, enum gavel_status status, struct store_reply *reply)
{
    reply->status = status;
    if (status == GAVEL_ERR_CONFLICT && request->op == STORE_REOPEN)
        reply_fail(reply, status, "group \"%.100s\" is not done, or has changed; read it again",
                   request->group);
    else if (status == GAVEL_ERR_CONFLICT)
        reply_fail(reply, status,
                   "the claim on group \"%.100s\" came too late: its record has changed or its lease runs",
                   request->group);
    else if (status == GAVEL_ERR_STORE_FULL)
        reply_fail(reply, status, "the epochs of group \"%.100s\" are used up; choose another group name",
                   request->group);
    else if (status == GAVEL_ERR_DONE)
        reply_fail(
            reply, status,
            "the work of group \"%.60s\" is done for good, by \"%.60s\" with epoch %llu; choose another name for new work",
            request->group, reply->record.holder, (unsigned long long)reply->record.epoch);
    else if (status == GAVEL_ERR_NOT_HOLDER)
        reply_fail(reply, status,
                   "the mandate of group \"%.100s\" is not held as the call says; read it again",
                   request->group);
}

void rules_reply(const struct mandate_row *row, const struct store_request *request,
                 const struct rules_now *now, enum gavel_status status, struct store_reply *reply)
{
    reply->found = row->is_found;
    reply->record = row->record;
    reply->expired = mandate_expired(row, now, &reply->remaining_ms);
    rules_explain(request, status, reply);
}

void rules_reply_untimed(const struct mandate_row *row, const struct store_request *request,
                         enum gavel_status status, struct store_reply *reply)
{
    bool is_held = row->is_found && row->record.held;

    reply->found = row->is_found;
    reply->record = row->record;
    reply->expired = row->is_found && !is_held;
    reply->remaining_ms = is_held ? -1 : 0;
    rules_explain(request, status, reply);
}

gavel_ms registration_age(const struct registration_row *row, gavel_ns now)
{
    if (row->beat_at > now + AHEAD_MAX)
        return INT64_MAX;
    return ms_from_ns(ns_max(now - row->beat_at, 0));
}

bool rules_heartbeat(const struct registration_row *row, const struct store_request *request, gavel_ns now,
                     bool is_dead, struct store_reply *reply)
{
    const struct registration *other = &row->registration;

    if (other->instance == request->registration.instance || other->instance == request->replaces_instance ||
        is_dead || registration_age(row, now) > request->candidate_timeout_ms)
        return true;
    reply->other_instance = other->instance;
    reply->other_beats = other->beats;
    reply_fail(
        reply, GAVEL_ERR_ID_IN_USE,
        "the id \"%.60s\" is used by another live candidate of group \"%.60s\" (process %d); choose another id or stop that process",
        other->id, request->group, (int)other->process.pid);
    return false;
}
