/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a store is asked, in the words of the cluster (table.proto,
 * client.proto), and back. What comes from a node is copied within bounds and
 * otherwise believed: it has the table.
 */
#include "store/cluster/cluster.h"

#include "os/clock.h"
#include "os/process.h"
#include "store/rules.h"

#include <stdlib.h>
#include <string.h>

#define GROUPS_PER_PAGE 1000

Gavel__Process *gavel_draft_process(const struct process_id *process, Gavel__Process *ret_process)
{
    if (process->pid == 0)
        return NULL; /* not told */
    gavel__process__init(ret_process);
    ret_process->boot_id = gavel_lend(process->boot_id);
    ret_process->pid = process->pid;
    ret_process->pid_ns = process->pid_ns;
    ret_process->start_ticks = process->start_ticks;
    return ret_process;
}

static void draft_claim(const struct store_request *request, struct gavel_draft *draft)
{
    const struct record *record = &request->record;
    Gavel__Claim *claim = &draft->claim;

    gavel__claim__init(claim);
    claim->group = gavel_lend(request->group);
    claim->expected_version = request->expected_version;
    claim->must_be_expired = request->must_be_expired;
    claim->epoch_at_least = record->epoch;
    claim->holder = gavel_lend(record->holder);
    claim->address = gavel_lend(record->address);
    claim->nonce_high = record->nonce.high;
    claim->nonce_low = record->nonce.low;
    claim->lease_ms = record->lease_ms;
    claim->process = gavel_draft_process(&record->process, &draft->process);
    draft->op.what_case = GAVEL__OP__WHAT_CLAIM;
    draft->op.claim = claim;
}

static void draft_renew(const struct store_request *request, struct gavel_draft *draft)
{
    const struct record *record = &request->record;
    Gavel__Renew *renew = &draft->renew;

    gavel__renew__init(renew);
    renew->group = gavel_lend(request->group);
    renew->holder = gavel_lend(record->holder);
    renew->nonce_high = record->nonce.high;
    renew->nonce_low = record->nonce.low;
    renew->epoch = record->epoch;
    renew->lease_ms = record->lease_ms;
    draft->op.what_case = GAVEL__OP__WHAT_RENEW;
    draft->op.renew = renew;
}

static void draft_release(const struct store_request *request, struct gavel_draft *draft)
{
    const struct record *record = &request->record;
    Gavel__Release *release = &draft->release;

    gavel__release__init(release);
    release->group = gavel_lend(request->group);
    release->holder = gavel_lend(record->holder);
    release->nonce_high = record->nonce.high;
    release->nonce_low = record->nonce.low;
    release->epoch = record->epoch;
    release->successor = gavel_lend(record->successor);
    release->is_done = record->done;
    release->is_killed = !record->done && record->loss == GAVEL_LOSS_KILLED;
    draft->op.what_case = GAVEL__OP__WHAT_RELEASE;
    draft->op.release = release;
}

static void draft_wish(const struct store_request *request, struct gavel_draft *draft)
{
    Gavel__Wish *wish = &draft->wish;

    gavel__wish__init(wish);
    wish->group = gavel_lend(request->group);
    wish->epoch = request->record.wish_epoch;
    wish->successor = gavel_lend(request->record.wish_successor);
    wish->is_forced = request->record.wish_force;
    draft->op.what_case = GAVEL__OP__WHAT_WISH;
    draft->op.wish = wish;
}

static void draft_register(const struct store_request *request, struct gavel_draft *draft)
{
    const struct registration *registration = &request->registration;
    Gavel__Register *message = &draft->registration;

    gavel__register__init(message);
    message->group = gavel_lend(request->group);
    message->id = gavel_lend(registration->id);
    message->instance = registration->instance;
    message->address = gavel_lend(registration->address);
    message->priority = registration->priority;
    message->is_ineligible = !registration->eligible;
    message->process = gavel_draft_process(&registration->process, &draft->process);
    message->replaces_instance = request->replaces_instance;
    message->timeout_ms = request->candidate_timeout_ms;
    message->beats = registration->beats;
    draft->op.what_case = GAVEL__OP__WHAT_REGISTER_CANDIDATE;
    draft->op.register_candidate = message;
}

void gavel_draft_op(const struct store_request *request, struct gavel_draft *ret_draft)
{
    gavel__op__init(&ret_draft->op);
    switch (request->op) {
    case STORE_CLAIM:
        draft_claim(request, ret_draft);
        break;
    case STORE_RENEW:
        draft_renew(request, ret_draft);
        break;
    case STORE_RELEASE:
        draft_release(request, ret_draft);
        break;
    case STORE_ASK:
        draft_wish(request, ret_draft);
        break;
    case STORE_REOPEN:
        gavel__reopen__init(&ret_draft->reopen);
        ret_draft->reopen.group = gavel_lend(request->group);
        ret_draft->reopen.expected_version = request->expected_version;
        ret_draft->op.what_case = GAVEL__OP__WHAT_REOPEN;
        ret_draft->op.reopen = &ret_draft->reopen;
        break;
    case STORE_HEARTBEAT:
        draft_register(request, ret_draft);
        break;
    case STORE_LEAVE:
        gavel__leave__init(&ret_draft->leave);
        ret_draft->leave.group = gavel_lend(request->group);
        ret_draft->leave.id = gavel_lend(request->registration.id);
        ret_draft->leave.instance = request->registration.instance;
        ret_draft->op.what_case = GAVEL__OP__WHAT_LEAVE;
        ret_draft->op.leave = &ret_draft->leave;
        break;
    case STORE_READ:
    case STORE_CANDIDATES:
    case STORE_GROUPS:
        break; /* these are asked, not done */
    case STORE_DIED:
        gavel_draft_died(request, ret_draft);
        break;
    }
}

void gavel_draft_ask(const struct store_request *request, const char *after, Gavel__Ask *ret_ask)
{
    gavel__ask__init(ret_ask);
    if (request->op == STORE_GROUPS) {
        ret_ask->kind = GAVEL__ASK__KIND__GROUPS;
        ret_ask->prefix = gavel_lend(request->prefix ? request->prefix : "");
        ret_ask->after = gavel_lend(after);
        ret_ask->limit = GROUPS_PER_PAGE;
        return;
    }
    ret_ask->kind = request->op == STORE_CANDIDATES ? GAVEL__ASK__KIND__CANDIDATES : GAVEL__ASK__KIND__GROUP;
    ret_ask->group = gavel_lend(request->group);
    ret_ask->timeout_ms = request->candidate_timeout_ms;
    ret_ask->instance = request->registration.instance;
    if (request->op == STORE_READ) {
        ret_ask->nonce_high = request->record.nonce.high;
        ret_ask->nonce_low = request->record.nonce.low;
    }
}

/* Whoever leads on another host is alive until its time is over: of its process nothing is passed on. */
static void take_process(const Gavel__Process *process, const struct process_id *self,
                         struct process_id *ret_process)
{
    struct process_id told = {0};

    if (process) {
        name_copy(told.boot_id, sizeof told.boot_id, process->boot_id);
        told.pid = process->pid;
        told.pid_ns = process->pid_ns;
        told.start_ticks = process->start_ticks;
    }
    *ret_process = process_within_sight(&told, self);
}

enum gavel_loss gavel_loss_of(Gavel__Ending ending)
{
    switch (ending) {
    case GAVEL__ENDING__ENDING_DEAD:
        return GAVEL_LOSS_KILLED;
    case GAVEL__ENDING__ENDING_EXPIRED:
    case GAVEL__ENDING__ENDING_LAPSED:
        return GAVEL_LOSS_LAPSED;
    default:
        return GAVEL_LOSS_NONE;
    }
}

/* How the last mandate was lost, if it was. */
static enum gavel_loss loss_of(const Gavel__Group *group)
{
    return group->is_held || group->is_done ? GAVEL_LOSS_NONE : gavel_loss_of(group->last_ending);
}

/* False if there was never a mandate: only candidates, or notes. */
static bool take_group(const Gavel__Group *group, const struct process_id *self, struct record *ret_record,
                       bool *ret_expired, gavel_ms *ret_remaining)
{
    struct record *record = ret_record;

    *record = (struct record){0};
    *ret_expired = false;
    *ret_remaining = 0;
    if (!group || group->version == 0)
        return false;
    record->epoch = group->epoch;
    record->version = group->version;
    record->nonce = (struct nonce){group->nonce_high, group->nonce_low};
    record->lease_ms = group->lease_ms;
    record->since_wall_ms = group->since_wall_ms;
    record->renewed_wall_ms = group->renewed_wall_ms ? group->renewed_wall_ms : group->since_wall_ms;
    record->held = group->is_held;
    record->done = group->is_done;
    record->loss = loss_of(group);
    take_process(group->process, self, &record->process);
    name_copy(record->holder, sizeof record->holder, group->holder);
    name_copy(record->address, sizeof record->address, group->address);
    name_copy(record->successor, sizeof record->successor, group->successor);
    record->wish_epoch = group->wish_epoch;
    record->wish_force = group->wish_is_forced;
    name_copy(record->wish_successor, sizeof record->wish_successor, group->wish_successor);
    *ret_expired = !group->is_held || group->is_expired;
    if (!*ret_expired)
        *ret_remaining = group->remaining_ms;
    return true;
}

void gavel_take_group(const Gavel__Group *group, const struct process_id *self, struct store_reply *reply)
{
    reply->found = take_group(group, self, &reply->record, &reply->expired, &reply->remaining_ms);
}

void gavel_take_failure(uint32_t status, const char *message, struct store_reply *reply)
{
    enum gavel_status known = (enum gavel_status)status;

    if (status == GAVEL_OK || strcmp(gavel_status_name(known), "ERR_UNKNOWN") == 0) {
        reply_fail(reply, GAVEL_ERR_STORE_UNSUPPORTED,
                   "the cluster answers with a code that this gavel does not know, %u: %.150s; update it",
                   (unsigned)status, message);
        return;
    }
    reply_fail(reply, known, "%s", message[0] ? message : gavel_status_text(known));
}

/* Those that the rules of every store explain in the same words. */
static bool is_refusal(uint32_t status)
{
    return status == GAVEL_ERR_CONFLICT || status == GAVEL_ERR_DONE || status == GAVEL_ERR_NOT_HOLDER;
}

void gavel_take_result(const struct store_request *request, const Gavel__OpResult *result,
                       const struct process_id *self, struct store_reply *reply)
{
    bool is_about_mandate = request->op != STORE_HEARTBEAT && request->op != STORE_LEAVE;

    if (is_about_mandate)
        gavel_take_group(result->group, self, reply);
    if (result->status == GAVEL_OK)
        reply->status = GAVEL_OK;
    else if (is_about_mandate && is_refusal(result->status))
        rules_explain(request, (enum gavel_status)result->status, reply);
    else
        gavel_take_failure(result->status, result->message, reply);
    if (request->op == STORE_HEARTBEAT && result->status == GAVEL_ERR_ID_IN_USE) {
        reply->other_instance = result->other_instance;
        reply->other_beats = result->other_beats;
    }
}

static void take_candidate(const Gavel__Candidate *candidate, const struct process_id *self,
                           struct registration *ret_registration)
{
    struct registration *registration = ret_registration;

    /* A candidate with a session does not beat; it is there as long as it is listed. */
    registration->instance = candidate->session ? candidate->joined_revision : candidate->instance;
    registration->beats = candidate->beats;
    registration->age_ms = candidate->age_ms;
    registration->since_wall_ms = candidate->since_wall_ms;
    registration->last_wall_ms = clock_wall_ms() - (candidate->age_ms > 0 ? candidate->age_ms : 0);
    registration->priority = candidate->priority;
    registration->eligible = !candidate->is_ineligible;
    take_process(candidate->process, self, &registration->process);
    name_copy(registration->id, sizeof registration->id, candidate->id);
    name_copy(registration->address, sizeof registration->address, candidate->address);
}

static void take_candidates(const struct store_request *request, const Gavel__Answer *answer,
                            const struct process_id *self, bool lists_dead, struct store_reply *reply)
{
    const Gavel__Group *group = answer->n_groups > 0 ? answer->groups[0] : NULL;

    for (size_t i = 0; i < answer->n_silent && reply->silent_count < STORE_SILENT_MAX; i++)
        reply->silent[reply->silent_count++] = answer->silent[i];
    for (size_t i = 0; group && i < group->n_candidates; i++) {
        const Gavel__Candidate *candidate = group->candidates[i];
        struct registration registration = {0};
        struct registration *slot;

        take_candidate(candidate, self, &registration);
        if (!candidate->session && registration.age_ms > request->candidate_timeout_ms)
            continue;
        if (!lists_dead && process_is_known_dead(&registration.process, self)) {
            reply_add_silent(reply, &registration, 0, 0);
            continue;
        }
        if (reply->registration_count >= STORE_CANDIDATES_MAX)
            break;
        slot = reply_add_registration(reply);
        if (!slot)
            return;
        *slot = registration;
    }
    if (reply->registration_count > 0)
        qsort(reply->registrations, reply->registration_count, sizeof *reply->registrations,
              registration_order);
}

static void take_groups(const Gavel__Answer *answer, const struct process_id *self, struct store_reply *reply)
{
    for (size_t i = 0; i < answer->n_groups; i++) {
        const Gavel__Group *group = answer->groups[i];
        struct group_row *row;

        if (group->version == 0)
            continue; /* there was never a mandate */
        row = reply_add_group(reply);
        if (!row)
            return;
        name_copy(row->group, sizeof row->group, group->name);
        (void)take_group(group, self, &row->record, &row->expired, &row->remaining_ms); /* there is one */
    }
}

void gavel_take_answer(const struct store_request *request, const Gavel__Answer *answer,
                       const struct process_id *self, bool lists_dead, struct store_reply *reply)
{
    if (request->op == STORE_CANDIDATES)
        take_candidates(request, answer, self, lists_dead, reply);
    else if (request->op == STORE_GROUPS)
        take_groups(answer, self, reply);
    else
        gavel_take_group(answer->n_groups > 0 ? answer->groups[0] : NULL, self, reply);
}
