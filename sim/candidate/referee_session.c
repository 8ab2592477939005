/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee on stores that grant mandates to sessions: what a candidate may
 * ask for and in which session, what it must do when it is shown another leader,
 * its takeover delay, and how long the group may be without a leader.
 */
#include "sim/candidate/referee.h"

#include "sim/candidate/network.h"
#include "sim/candidate/world.h"

#include <string.h>

void referee_check_patience(struct world *world, const struct grant *granted)
{
    const struct process *process = &world->processes[granted->slot];
    const struct candidate *candidate = &process->candidate;
    bool has_seen = candidate->seen.is_known && candidate->seen.record.epoch >= world->store.record.epoch;

    /* One that does not stand any more has no word in it; what it said before may still be under way. */
    if (!process->is_alive || process->incarnation != granted->incarnation || !has_seen ||
        candidate->is_patient || !candidate->is_standing ||
        strcmp(process->id, world->store.record.holder) == 0)
        return;
    referee_check_early(world, granted);
}

void referee_check_call(struct world *world, const struct process *process,
                        const struct store_request *request)
{
    const struct grant *grant;

    if (!world->profile.has_sessions)
        return;
    if (request->op == STORE_CLAIM || request->op == STORE_RENEW)
        violate(world, INVARIANT_ORDER, "%s sends a %s to a store that grants", process->label,
                store_op_name(request->op));
    if (request->session == 0 && request->op != STORE_READ && request->op != STORE_CANDIDATES &&
        request->op != STORE_HEARTBEAT)
        violate(world, INVARIANT_ORDER, "%s sends a %s without a session", process->label,
                store_op_name(request->op));
    if (request->op != STORE_RELEASE)
        return;
    if (process->candidate.is_stopping && !request->leaves)
        violate(world, INVARIANT_ORDER, "%s stops, but may be granted the mandate again that it releases",
                process->label);
    grant = referee_grant(world, request->record.epoch);
    if (!grant || grant->session != request->session)
        violate(world, INVARIANT_ORDER, "%s releases epoch %llu in session %llu, which was not granted it",
                process->label, (unsigned long long)request->record.epoch,
                (unsigned long long)request->session);
}

void referee_check_session(struct world *world, const struct process *process)
{
    const struct candidate *candidate = &process->candidate;
    const struct grant *grant = referee_grant(world, candidate->epoch);

    if (!world->profile.has_sessions || !grant ||
        (candidate->state != CANDIDATE_PREPARING && candidate->state != CANDIDATE_LEADING))
        return;
    if (grant->session != process->session.number)
        violate(world, INVARIANT_ORDER, "%s is %s with epoch %llu of session %llu, but session %llu is open",
                process->label, candidate_state_name(candidate->state), (unsigned long long)grant->epoch,
                (unsigned long long)grant->session, (unsigned long long)process->session.number);
}

void referee_check_stop(struct world *world, const struct process *process, gavel_ns deadline)
{
    gavel_ns now = clock_local(&process->clock, world->now);
    gavel_ns soonest = ns_min(process->deadline, now + ns_from_ms(process->candidate.settings.stop_grace_ms));

    if (world->profile.has_sessions && deadline < soonest)
        violate(world, INVARIANT_ORDER,
                "%s must stop its work by an instant %.3f s too early, as if it had not been kept open",
                process->label, (double)(soonest - deadline) / (double)NS_PER_S);
}

void referee_check_order(struct world *world, const struct process *process, const struct record *before)
{
    const struct record *seen = &process->candidate.seen.record;

    if (seen->version == before->version && seen->epoch < before->epoch)
        violate(world, INVARIANT_SHOWN,
                "%s takes the vacancy of version %llu for newer than the election with it", process->label,
                (unsigned long long)seen->version);
}

void referee_check_again(struct world *world, const struct process *process, uint64_t epoch)
{
    const struct grant *grant = referee_grant(world, epoch);

    if (world->profile.has_sessions && grant && process->gave_up_at != 0 && grant->at < process->gave_up_at)
        violate(world, INVARIANT_ORDER, "%s works again with epoch %llu, which it had when it gave up",
                process->label, (unsigned long long)epoch);
}

/* A leader that knows of a wish in the record knows when it is over. */
static void check_wish(struct world *world, struct process *process, const struct store_reply *reply)
{
    const struct candidate *candidate = &process->candidate;
    bool is_newest = reply->revision > process->shown_revision;

    if (reply->status != GAVEL_OK || reply->session != process->session.number)
        return;
    if (is_newest)
        process->shown_revision = reply->revision;
    if (is_newest && reply->is_ours && candidate->state == CANDIDATE_LEADING && candidate->is_wish_recorded &&
        candidate->epoch == reply->record.epoch && candidate->wish_epoch == candidate->epoch &&
        reply->record.wish_epoch == 0)
        violate(world, INVARIANT_SHOWN, "%s still means to hand over for a wish that it was shown to be over",
                process->label);
}

void referee_check_shown(struct world *world, struct process *process, const struct message *message,
                         uint64_t was_epoch, uint64_t was_version)
{
    const struct store_reply *reply = &message->reply;

    check_wish(world, process, reply);

    if (was_epoch == 0 || reply->status != GAVEL_OK || message->session != process->session.number ||
        reply->is_ours || !reply->found || reply->record.version <= was_version)
        return;
    if (process->mandate_epoch == was_epoch)
        violate(world, INVARIANT_SHOWN, "%s goes on with epoch %llu although it is shown version %llu of %s",
                process->label, (unsigned long long)was_epoch, (unsigned long long)reply->record.version,
                reply->record.holder);
}

/*
 * How long the quiet phase may go without a leader where a store grants. The
 * session of a dead leader has to expire first. Those that take part have to
 * learn of it, by a push or with the next keep-alive; to wait for their takeover
 * delay and say so; and to learn that they were elected. Or they have to open a
 * session first, and say that they are there.
 */
gavel_ns referee_session_gap(const struct world *world)
{
    const struct gavel_settings *worst = &world->profile.worst;
    gavel_ms keep = worst->heartbeat_ms + worst->heartbeat_jitter_ms + worst->call_timeout_ms;
    gavel_ms gap = 2 * keep + 4 * worst->call_timeout_ms + worst->election_interval_ms +
                   worst->preparation_ms + worst->takeover_delay_ms;
    gavel_ms ttl = worst->lease_ms;
    unsigned survivors = 0;

    for (unsigned i = 0; i < world->profile.candidates; i++)
        survivors += referee_is_survivor(world, &world->processes[i]);
    for (unsigned i = 0; i < world->profile.slots; i++)
        ttl = granting_ttl_ms(world, i) > ttl ? granting_ttl_ms(world, i) : ttl;
    gap += ttl;
    gap += worst->lease_ms * worst->drift_ppm / 1000000;
    if (worst->policy != GAVEL_POLICY_FIRST)
        gap += worst->observation_ms + worst->call_timeout_ms + worst->stagger_ms;
    if (survivors == 0) /* an id is in use until the session of its last bearer has expired */
        gap += worst->start_jitter_max_ms + worst->observation_ms + ttl + worst->heartbeat_ms;
    return ns_stretch(ns_from_ms(gap), worst->drift_ppm) + 20 * NS_PER_MS;
}
