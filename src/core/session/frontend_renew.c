/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was heard of whom, and when: the part of the leader's knowledge that is
 * in no log. Keep-alives, renewals and heartbeats that change nothing end here,
 * so that holding ten thousand mandates costs the log nothing.
 *
 * What was not heard since this node began to lead, or to move again after a
 * stall, counts as heard at that moment, unless it is known of a session when the
 * leader before had heard it (silence.h); so instants that are left over from
 * an earlier time can only be too late to matter, never too early.
 */
#include "core/session/frontend_internal.h"

#include "base/assert.h"
#include "base/planted.h"

#include <string.h>

/* ---- when ---- */

/* When this node applied a revision. Of one that it does not know it counts from when it began to lead. */
static gavel_ns applied_by(const struct frontend *frontend, uint64_t revision)
{
    gavel_ns at = applied_at(&frontend->applied, revision);

    return at != NEVER ? at : frontend->began_at;
}

gavel_ns frontend_heard_at(const struct frontend *frontend, const struct table_session *session)
{
    const struct heard_session *heard = heard_session(&frontend->heard, session);
    gavel_ns at =
        heard && heard->heard_at != 0 ? heard->heard_at : applied_by(frontend, session->create_revision);

    if (PLANTED(SILENCE_FROM_BEFORE))
        return at;
    if (!frontend->marks)
        return ns_max(at, frontend->began_at);
    at = ns_max(at, silence_heard_at(frontend->marks->silence, session->create_revision));
    return ns_max(at, frontend->stalled_at);
}

bool frontend_note_heard(struct frontend *frontend, gavel_ns now, const struct table_session *session,
                         struct heard_session *heard)
{
    struct marks *marks = frontend->marks;
    uint64_t number = 0;

    ASSERT(heard->create_revision == session->create_revision);
    if (marks && marks->is_open && marks->is_making) {
        number = heard->mark == marks_next(marks) ? heard->mark : marks_hear(marks, session->create_revision);
        if (number == 0)
            return false;
    }
    heard->mark = number;
    heard->heard_at = now;
    if (number > frontend->after)
        frontend->after = number;
    return true;
}

gavel_ns frontend_beat_at(const struct frontend *frontend, const struct table_candidate *candidate)
{
    const struct heard_candidate *heard = heard_candidate(&frontend->heard, candidate);
    gavel_ns at =
        heard && heard->beat_at != 0 ? heard->beat_at : applied_by(frontend, candidate->joined_revision);

    return ns_max(at, frontend->began_at);
}

uint64_t frontend_beats(const struct frontend *frontend, const struct table_candidate *candidate)
{
    const struct heard_candidate *heard;
    const struct heard_session *session;

    if (candidate->session) {
        session = heard_session(&frontend->heard, candidate->session);
        return session ? session->keeps : 0;
    }
    heard = heard_candidate(&frontend->heard, candidate);
    return heard ? heard->beats : 0;
}

/* Every node notes when it applies a grant, which is never before the grant. */
gavel_ns frontend_granted_at(const struct frontend *frontend, const struct table_group *group)
{
    return applied_by(frontend, group->epoch);
}

gavel_ns frontend_touched_at(const struct frontend *frontend, const struct table_group *group)
{
    return applied_by(frontend, group->touched_revision);
}

gavel_ns frontend_session_ends_at(const struct frontend *frontend, const struct table_session *session)
{
    gavel_ns ttl = ns_stretch(ns_from_ms(session->ttl_ms), frontend->drift_ppm);

    if (PLANTED(SESSION_WITHOUT_DRIFT))
        ttl = ns_from_ms(session->ttl_ms);
    /* A client that lives asks three times in its time to live: whoever could ask nobody while nobody led has
     * its turn, even if its time is over. */
    return ns_max(frontend_heard_at(frontend, session) + ttl, frontend->began_at + ttl / 3);
}

gavel_ns frontend_lease_ends_at(const struct frontend *frontend, const struct table_group *group)
{
    const struct heard_group *heard = heard_group(&frontend->heard, group);
    /* Of a vacant group it is the time since it became so. */
    gavel_ns at = heard && heard->renewed_at != 0 ? heard->renewed_at : applied_by(frontend, group->version);
    gavel_ns from = ns_max(at, frontend->began_at);

    if (PLANTED(CLAIM_OVER_RENEWAL))
        from = frontend_granted_at(frontend, group);

    return from + ns_stretch(ns_from_ms(group->lease_ms), frontend->drift_ppm);
}

/* ---- renewals and heartbeats ---- */

static bool is_holder(const struct table_group *group, const Gavel__Renew *renew)
{
    return group->is_held && !group->session && group->nonce_high == renew->nonce_high &&
           group->nonce_low == renew->nonce_low && (renew->epoch == 0 || renew->epoch == group->epoch) &&
           strcmp(group->holder, renew->holder) == 0;
}

bool frontend_is_same_process(const struct table_process *process, const Gavel__Process *said)
{
    if (!said || said->pid == 0)
        return process->pid == 0;
    return process->pid == said->pid && process->pid_ns == said->pid_ns &&
           process->start_ticks == said->start_ticks && strcmp(process->boot_id, said->boot_id) == 0;
}

static struct table_candidate *find_registered(const struct frontend *frontend,
                                               const Gavel__Register *registration)
{
    struct table_group *group = table_group_find(frontend->table, registration->group);
    struct table_candidate *candidate = group ? table_candidate_find(group, registration->id) : NULL;

    return candidate && !candidate->session && candidate->instance == registration->instance ? candidate
                                                                                             : NULL;
}

static bool is_known(const struct frontend *frontend, const Gavel__Register *registration)
{
    const struct table_candidate *candidate = find_registered(frontend, registration);
    const struct heard_candidate *heard = candidate ? heard_candidate(&frontend->heard, candidate) : NULL;
    bool is_leaving = heard && heard->beat_at == FRONTEND_LEAVING;

    return candidate && !is_leaving && strcmp(candidate->address, registration->address) == 0 &&
           candidate->priority == registration->priority &&
           candidate->is_eligible == !registration->is_ineligible &&
           frontend_is_same_process(&candidate->process, registration->process);
}

bool frontend_is_volatile(const struct frontend *frontend, const Gavel__Op *op)
{
    if (op->what_case == GAVEL__OP__WHAT_RENEW) {
        const struct table_group *group = table_group_find(frontend->table, op->renew->group);

        return group && is_holder(group, op->renew) && group->lease_ms == op->renew->lease_ms &&
               !frontend_is_closing_group(frontend, group);
    }
    return op->what_case == GAVEL__OP__WHAT_REGISTER_CANDIDATE && is_known(frontend, op->register_candidate);
}

/* False: no memory. */
static bool beat(struct frontend *frontend, const struct table_candidate *candidate,
                 const struct frontend_moment *moment, uint64_t beats)
{
    struct heard_candidate *heard = heard_of_candidate(&frontend->heard, candidate);

    if (!heard)
        return false;
    heard->beat_at = moment->now;
    heard->beats = beats;
    return true;
}

/* Likewise. */
static bool renewed(struct frontend *frontend, const struct table_group *group,
                    const struct frontend_moment *moment)
{
    struct heard_group *heard;

    ASSERT(group->is_held);
    ASSERT(!group->session); /* a lease mandate */
    if (heard_reserve(&frontend->heard, frontend->table) != GAVEL_OK)
        return false;
    heard = heard_of_group(&frontend->heard, group);
    heard->renewed_at = moment->now;
    heard->renewed_wall_ms = moment->wall_ms;
    return true;
}

bool frontend_renew(struct frontend *frontend, const struct frontend_moment *moment, const Gavel__Op *op)
{
    if (op->what_case == GAVEL__OP__WHAT_RENEW)
        return renewed(frontend, table_group_find(frontend->table, op->renew->group), moment);
    return beat(frontend, find_registered(frontend, op->register_candidate), moment,
                op->register_candidate->beats);
}

/*
 * A sign of life on its way through the log counts from now on: otherwise an end could be proposed behind it,
 * and the answer to it would promise what is about to be taken away. Whoever is ended nevertheless, a whole
 * lease later, had his answer too late for any use: he counts from before.
 */
void frontend_hear_coming(struct frontend *frontend, const struct frontend_moment *moment,
                          const Gavel__Op *op)
{
    const struct table_session *session;
    const struct table_group *group;

    if (op->what_case == GAVEL__OP__WHAT_OPEN_SESSION) {
        session = table_session_find(frontend->table, op->open_session->session);
        if (session && !frontend_is_closing_session(frontend, session))
            (void)frontend_note_heard(
                frontend, moment->now, session,
                heard_of_session(&frontend->heard, session)); /* it is not answered yet */
    } else if (op->what_case == GAVEL__OP__WHAT_RENEW) {
        group = table_group_find(frontend->table, op->renew->group);
        if (group && is_holder(group, op->renew))
            (void)renewed(frontend, group, moment); /* it has its place */
    }
}

static bool is_claimed(const struct table_group *group, const Gavel__Claim *claim)
{
    return group->is_held && !group->session && group->nonce_high == claim->nonce_high &&
           group->nonce_low == claim->nonce_low && strcmp(group->holder, claim->holder) == 0;
}

static bool hear_opening(struct frontend *frontend, const struct frontend_moment *moment, uint64_t id)
{
    const struct table_session *session = table_session_find(frontend->table, id);
    bool has_room;

    if (!session || frontend_is_closing_session(frontend, session))
        return true;
    has_room = heard_reserve(&frontend->heard, frontend->table) == GAVEL_OK;
    has_room = has_room && frontend_note_heard(frontend, moment->now, session,
                                               heard_of_session(&frontend->heard, session));
    if (!has_room)
        frontend->after = UINT64_MAX; /* whoever asks must not count on it */
    expiry_session_ends(frontend, frontend_session_ends_at(frontend, session)); /* also without memory */
    return has_room;
}

static bool hear_wish(struct frontend *frontend, const struct frontend_moment *moment,
                      const Gavel__Wish *wish)
{
    const struct table_group *group = table_group_find(frontend->table, wish->group);

    if (!group || !group->is_held || group->epoch != wish->epoch)
        return true;
    if (heard_reserve(&frontend->heard, frontend->table) != GAVEL_OK)
        return false;
    heard_of_group(&frontend->heard, group)->wished_at = moment->now;
    return true;
}

/* Of a repeated request the outcome is told again, but the table may have moved on: each looks at it anew. */
bool frontend_hear(struct frontend *frontend, const struct frontend_moment *moment, const Gavel__Op *op,
                   enum gavel_status status)
{
    const struct table_candidate *candidate;
    const struct table_group *group;

    if (status != GAVEL_OK)
        return true;
    switch (op->what_case) {
    case GAVEL__OP__WHAT_OPEN_SESSION:
        return hear_opening(frontend, moment, op->open_session->session);
    case GAVEL__OP__WHAT_CLOSE_SESSION:
        frontend->counts.expired += op->close_session->ending == GAVEL__ENDING__ENDING_EXPIRED;
        return true;
    case GAVEL__OP__WHAT_CLAIM:
        group = table_group_find(frontend->table, op->claim->group);
        /* other claims were over the mandate before */
        return !group || !is_claimed(group, op->claim) || renewed(frontend, group, moment);
    case GAVEL__OP__WHAT_RENEW:
        group = table_group_find(frontend->table, op->renew->group);
        return !group || !is_holder(group, op->renew) || frontend_is_closing_group(frontend, group) ||
               renewed(frontend, group, moment);
    case GAVEL__OP__WHAT_WISH:
        /* Of one that is over, too: the expiry leaves the leader alone for a while then. */
        return hear_wish(frontend, moment, op->wish);
    case GAVEL__OP__WHAT_LAPSE:
        frontend->counts.lapsed++;
        return true;
    case GAVEL__OP__WHAT_REMOVE_GROUP:
        frontend->counts.removed++;
        frontend->expiry.has_gone = true;
        return true;
    case GAVEL__OP__WHAT_REGISTER_CANDIDATE:
        candidate = find_registered(frontend, op->register_candidate);
        return !candidate || beat(frontend, candidate, moment, op->register_candidate->beats);
    case GAVEL__OP__WHAT_LEAVE:
        heard_leave(&frontend->heard, op->leave->group, op->leave->id, op->leave->instance);
        return true;
    default:
        return true;
    }
}

bool frontend_hear_again(struct frontend *frontend, const struct frontend_moment *moment, const Gavel__Op *op,
                         enum gavel_status status)
{
    const struct table_group *group = table_group_find(frontend->table, table_op_group(op));

    /* A closing, a lapse or a wish happened once; only signs of life are worth hearing twice, and not while
     * somebody claims. */
    if (!frontend_extends(op) || (group && frontend_is_closing_group(frontend, group)))
        return true;
    return frontend_hear(frontend, moment, op, status);
}

bool frontend_extends(const Gavel__Op *op)
{
    switch (op->what_case) {
    case GAVEL__OP__WHAT_OPEN_SESSION:
    case GAVEL__OP__WHAT_CAMPAIGN:
    case GAVEL__OP__WHAT_CLAIM:
    case GAVEL__OP__WHAT_RENEW:
    case GAVEL__OP__WHAT_REGISTER_CANDIDATE:
        return true;
    default:
        return false;
    }
}
