/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was heard of whom, and when: the part of the leader's knowledge that is
 * in no log. Keep-alives, renewals and heartbeats that change nothing end here,
 * so that holding ten thousand mandates costs the log nothing.
 *
 * What was not heard since this node began to lead, or to move again after a
 * stall, counts as heard at that moment; so instants that are left over from
 * an earlier time can only be too late to matter, never too early.
 *
 * Closing. Once the end of a session is proposed, or a claim over a mandate
 * that has run out, nothing that is heard of it is taken as a sign of life
 * until the outcome is known: an answer now would promise what the log is
 * about to take away. A renewal goes to the log then, behind the claim.
 * Proposals are counted, for there may be several.
 */
#include "core/session/frontend_internal.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>
#include <string.h>

gavel_ns frontend_heard_at(const struct frontend *frontend, const struct table_session *session)
{
    if (PLANTED(SILENCE_FROM_BEFORE) && session->seen.heard_at != 0)
        return session->seen.heard_at;
    return ns_max(session->seen.heard_at, frontend->began_at);
}

gavel_ns frontend_beat_at(const struct frontend *frontend, const struct table_candidate *candidate)
{
    return ns_max(candidate->seen.beat_at, frontend->began_at);
}

/* Every node notes when it applies a grant, which is never before the grant; after a snapshot it is not
 * known. */
gavel_ns frontend_granted_at(const struct frontend *frontend, const struct table_group *group)
{
    return group->seen.granted_at != 0 ? group->seen.granted_at : frontend->began_at;
}

gavel_ns frontend_session_ends_at(const struct frontend *frontend, const struct table_session *session)
{
    gavel_ns ttl = ns_stretch(ns_from_ms(session->ttl_ms), frontend->drift_ppm);

    if (PLANTED(SESSION_WITHOUT_DRIFT))
        ttl = ns_from_ms(session->ttl_ms);
    return frontend_heard_at(frontend, session) + ttl;
}

gavel_ns frontend_lease_ends_at(const struct frontend *frontend, const struct table_group *group)
{
    gavel_ns from = ns_max(ns_max(group->seen.renewed_at, group->seen.granted_at), frontend->began_at);

    if (PLANTED(CLAIM_OVER_RENEWAL))
        from = group->seen.granted_at;

    return from + ns_stretch(ns_from_ms(group->lease_ms), frontend->drift_ppm);
}

/* ---- closing ---- */

bool frontend_is_closing_session(const struct frontend *frontend, const struct table_session *session)
{
    return session->seen.closing_term == frontend->term && session->seen.closing_count > 0;
}

bool frontend_is_closing_group(const struct frontend *frontend, const struct table_group *group)
{
    return group->seen.closing_term == frontend->term && group->seen.closing_count > 0;
}

static void count_up(uint64_t *closing_term, uint32_t *closing_count, uint64_t term)
{
    if (*closing_term != term)
        *closing_count = 0;
    ASSERT(term > 0);
    *closing_term = term;
    (*closing_count)++;
}

static void count_down(uint64_t *closing_term, uint32_t *closing_count, uint64_t term)
{
    if (*closing_term != term || *closing_count == 0)
        return;
    ASSERT(term > 0);
    if (--*closing_count == 0)
        *closing_term = 0;
}

/* The session or the group whose end, or wish, an operation is. A wish ends nothing; it is counted so that
 * the expiry does not propose it twice. Deaths are told again and again until the table knows of them. */
static void find_closing(const struct frontend *frontend, const Gavel__Op *op,
                         struct table_session **ret_session, struct table_group **ret_group)
{
    *ret_session = NULL;
    *ret_group = NULL;
    switch (op->what_case) {
    case GAVEL__OP__WHAT_CLOSE_SESSION:
        *ret_session = table_session_find(frontend->table, op->close_session->session);
        break;
    case GAVEL__OP__WHAT_CLAIM:
        if (op->claim->must_be_expired)
            *ret_group = table_group_find(frontend->table, op->claim->group);
        break;
    case GAVEL__OP__WHAT_LAPSE:
        *ret_group = table_group_find(frontend->table, op->lapse->group);
        break;
    case GAVEL__OP__WHAT_RELEASE:
        if (op->release->is_dead)
            *ret_group = table_group_find(frontend->table, op->release->group);
        break;
    case GAVEL__OP__WHAT_WISH:
        *ret_group = table_group_find(frontend->table, op->wish->group);
        break;
    default:
        break;
    }
}

bool frontend_is_under_way(const struct frontend *frontend, const Gavel__Op *op)
{
    struct table_session *session;
    struct table_group *group;

    find_closing(frontend, op, &session, &group);
    return (session && frontend_is_closing_session(frontend, session)) ||
           (group && frontend_is_closing_group(frontend, group));
}

void frontend_closing_begin(struct frontend *frontend, const Gavel__Op *op)
{
    struct table_session *session;
    struct table_group *group;

    find_closing(frontend, op, &session, &group);
    if (session)
        count_up(&session->seen.closing_term, &session->seen.closing_count, frontend->term);
    if (group)
        count_up(&group->seen.closing_term, &group->seen.closing_count, frontend->term);
}

void frontend_closing_end(struct frontend *frontend, const Gavel__Op *op, uint64_t term)
{
    struct table_session *session;
    struct table_group *group;

    find_closing(frontend, op, &session, &group);
    if (session)
        count_down(&session->seen.closing_term, &session->seen.closing_count, term);
    if (group)
        count_down(&group->seen.closing_term, &group->seen.closing_count, term);
}

/* ---- renewals and heartbeats ---- */

static bool is_holder(const struct table_group *group, const Gavel__Renew *renew)
{
    return group->is_held && !group->session && group->nonce_high == renew->nonce_high &&
           group->nonce_low == renew->nonce_low && (renew->epoch == 0 || renew->epoch == group->epoch) &&
           strcmp(group->holder, renew->holder) == 0;
}

static bool is_same_process(const struct table_process *process, const Gavel__Process *said)
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

    return candidate && candidate->seen.beat_at != FRONTEND_LEAVING &&
           strcmp(candidate->address, registration->address) == 0 &&
           candidate->priority == registration->priority &&
           candidate->is_eligible == !registration->is_ineligible &&
           is_same_process(&candidate->process, registration->process);
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

static void beat(struct table_candidate *candidate, const struct frontend_moment *moment, uint64_t beats)
{
    ASSERT(candidate);
    ASSERT(!candidate->session); /* a session is kept alive as a whole */
    candidate->seen.beat_at = moment->now;
    candidate->seen.beat_wall_ms = moment->wall_ms;
    candidate->seen.beats = beats;
}

static void renewed(struct table_group *group, const struct frontend_moment *moment)
{
    ASSERT(group);
    ASSERT(group->is_held);
    ASSERT(!group->session); /* a lease mandate */
    group->seen.renewed_at = moment->now;
    group->seen.renewed_wall_ms = moment->wall_ms;
}

void frontend_renew(struct frontend *frontend, const struct frontend_moment *moment, const Gavel__Op *op)
{
    if (op->what_case == GAVEL__OP__WHAT_RENEW)
        renewed(table_group_find(frontend->table, op->renew->group), moment);
    else
        beat(find_registered(frontend, op->register_candidate), moment, op->register_candidate->beats);
}

/*
 * A sign of life on its way through the log counts from now on: otherwise an end could be proposed behind it,
 * and the answer to it would promise what is about to be taken away. Whoever is ended nevertheless, a whole
 * lease later, had his answer too late for any use: he counts from before.
 */
void frontend_hear_coming(struct frontend *frontend, const struct frontend_moment *moment,
                          const Gavel__Op *op)
{
    struct table_session *session;
    struct table_group *group;

    if (op->what_case == GAVEL__OP__WHAT_OPEN_SESSION) {
        session = table_session_find(frontend->table, op->open_session->session);
        if (session && !frontend_is_closing_session(frontend, session))
            session->seen.heard_at = moment->now;
    } else if (op->what_case == GAVEL__OP__WHAT_RENEW) {
        group = table_group_find(frontend->table, op->renew->group);
        if (group && is_holder(group, op->renew))
            renewed(group, moment);
    }
}

static bool is_claimed(const struct table_group *group, const Gavel__Claim *claim)
{
    return group->is_held && !group->session && group->nonce_high == claim->nonce_high &&
           group->nonce_low == claim->nonce_low && strcmp(group->holder, claim->holder) == 0;
}

/* Of a repeated request the outcome is told again, but the table may have moved on: each looks at it anew. */
void frontend_hear(struct frontend *frontend, const struct frontend_moment *moment, const Gavel__Op *op,
                   enum gavel_status status)
{
    struct table_session *session;
    struct table_candidate *candidate;
    struct table_group *group;

    if (status != GAVEL_OK)
        return;
    switch (op->what_case) {
    case GAVEL__OP__WHAT_OPEN_SESSION:
        session = table_session_find(frontend->table, op->open_session->session);
        if (!session || frontend_is_closing_session(frontend, session))
            return;
        session->seen.heard_at = moment->now;
        expiry_session_ends(frontend, frontend_session_ends_at(frontend, session));
        return;
    case GAVEL__OP__WHAT_CLOSE_SESSION:
        frontend->counts.expired += op->close_session->ending == GAVEL__ENDING__ENDING_EXPIRED;
        return;
    case GAVEL__OP__WHAT_CLAIM:
        group = table_group_find(frontend->table, op->claim->group);
        if (group && is_claimed(group, op->claim)) /* other claims were over the mandate before */
            renewed(group, moment);
        return;
    case GAVEL__OP__WHAT_RENEW:
        group = table_group_find(frontend->table, op->renew->group);
        if (group && is_holder(group, op->renew) && !frontend_is_closing_group(frontend, group))
            renewed(group, moment);
        return;
    case GAVEL__OP__WHAT_WISH:
        /* Of one that is over, too: the expiry leaves the leader alone for a while then. */
        group = table_group_find(frontend->table, op->wish->group);
        if (group && group->is_held && group->epoch == op->wish->epoch)
            group->seen.wished_at = moment->now;
        return;
    case GAVEL__OP__WHAT_LAPSE:
        frontend->counts.lapsed++;
        return;
    case GAVEL__OP__WHAT_REGISTER_CANDIDATE:
        candidate = find_registered(frontend, op->register_candidate);
        if (candidate)
            beat(candidate, moment, op->register_candidate->beats);
        return;
    default:
        return;
    }
}

void frontend_hear_again(struct frontend *frontend, const struct frontend_moment *moment, const Gavel__Op *op,
                         enum gavel_status status)
{
    const struct table_group *group = table_group_find(frontend->table, table_op_group(op));

    /* A closing, a lapse or a wish happened once; only signs of life are worth hearing twice, and not while
     * somebody claims. */
    if (frontend_extends(op) && !(group && frontend_is_closing_group(frontend, group)))
        frontend_hear(frontend, moment, op, status);
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

/* ---- keep-alives ---- */

static bool may_keep(const Gavel__KeepAlive *keep_alive, size_t which, const struct table_session *session)
{
    return frontend_may_use(session, keep_alive->n_principals == keep_alive->n_sessions,
                            which < keep_alive->n_principals ? keep_alive->principals[which] : 0);
}

/*
 * A node merges the keep-alives of its clients, and reads the answer by session. So what one client asks of
 * another's session must not be answered as the end of it if the other asks in the same frame.
 */
static bool is_kept_by_another(const Gavel__KeepAlive *keep_alive, const struct table_session *session)
{
    if (PLANTED(ENDED_BY_ANOTHER))
        return false;
    for (size_t i = 0; i < keep_alive->n_sessions; i++)
        if (keep_alive->sessions[i] == session->id && may_keep(keep_alive, i, session))
            return true;
    return false;
}

void frontend_keep_alive(struct frontend *frontend, gavel_ns now, struct frontend_ticket ticket,
                         const Gavel__KeepAlive *keep_alive)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Kept kept = GAVEL__KEPT__INIT;
    uint64_t *gone = NULL;

    frontend->counts.keep_alives += keep_alive->n_sessions;
    for (size_t i = 0; i < keep_alive->n_sessions; i++) {
        struct table_session *session = table_session_find(frontend->table, keep_alive->sessions[i]);
        bool is_kept;

        if (session && !may_keep(keep_alive, i, session)) {
            if (is_kept_by_another(keep_alive, session))
                continue;
            session = NULL;
        }
        is_kept = session && !frontend_is_closing_session(frontend, session);
        if (PLANTED(KEPT_WHILE_ENDING))
            is_kept = session;
        if (is_kept) {
            session->seen.heard_at = now;
            continue;
        }
        if (!gone)
            gone = malloc((keep_alive->n_sessions - i) * sizeof *gone);
        if (!gone) {
            kept.status = GAVEL_ERR_NO_MEMORY; /* nothing is known about any of them */
            kept.n_gone = 0;
            break;
        }
        gone[kept.n_gone++] = keep_alive->sessions[i];
    }
    ASSERT(kept.n_gone <= keep_alive->n_sessions);
    kept.tag = keep_alive->tag;
    kept.gone = gone;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
    frame.kept = &kept;
    frontend_reply_frame(frontend, ticket, &frame);
    free(gone);
}
