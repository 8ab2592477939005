/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The promise: a follower that accepts an append will not help to elect
 * another for a while. A majority of promises is the leader's lease (lease.c).
 *
 * The content of the promise is durable, not its end, so a heartbeat writes
 * nothing. After a restart it therefore holds for its whole length (raft_init).
 *
 * The gate decides whether a vote, a pre-vote or our own candidacy may pass
 * while a promise is active. Plain Raft has no promise; the closest thing is the
 * minimum election timeout of the thesis, section 4.2.3.
 */

#include "core/raft/internal.h"

#include <string.h>

bool raft_is_promised(const struct raft *r, gavel_ns now)
{
    return r->state.promise.leader != 0 && now < r->promise_until;
}

void raft_promise_clear(struct raft *r)
{
    memset(&r->state.promise, 0, sizeof r->state.promise);
    r->promise_until = 0;
    ASSERT(!raft_is_promised(r, r->now));
}

static bool is_same(const struct raft_promise *a, const struct raft_promise *b)
{
    return a->leader == b->leader && a->incarnation == b->incarnation && a->term == b->term &&
           a->lease_epoch == b->lease_epoch && a->length == b->length;
}

/*
 * Whether it was made. Not to the dead, whose appends may still be under way, and not to a lease that was
 * given up: that would only keep the next leader waiting.
 */
bool raft_promise_make(struct raft *r, raft_id leader, uint64_t incarnation, uint64_t lease_epoch)
{
    struct raft_promise *old = &r->state.promise;
    struct raft_promise promise = {
        .leader = leader,
        .incarnation = incarnation,
        .term = r->state.term,
        .lease_epoch = lease_epoch,
        .length = r->settings.promise,
    };
    gavel_ns until = r->now + promise.length;

    ASSERT(leader != r->state.id);
    ASSERT(r->role != RAFT_LEADER);
    if (raft_is_dead(r, leader, incarnation))
        return false;
    if (r->certificate.kind != RAFT_CERT_OBITUARY && raft_certificate_covers(&r->certificate, &promise))
        return false;
    if (old->leader == leader && old->term == r->state.term && old->lease_epoch > lease_epoch)
        return false; /* overtaken on its way by an append of a later lease epoch */
    /* A restart with other settings must not cut short what was promised before it. */
    if (old->leader == leader && old->term == r->state.term && r->promise_until > until) {
        until = r->promise_until;
        promise.length = ns_max(old->length, promise.length);
    }
    if (old->leader == leader && old->term == r->state.term)
        ASSERT(until >= r->promise_until);
    if (!is_same(old, &promise)) {
        *old = promise;
        raft_mark_state(r);
    }
    r->promise_until = until;
    ASSERT(r->state.promise.leader == leader);
    ASSERT(r->state.promise.term <= r->state.term);
    ASSERT(raft_is_promised(r, r->now));
    return true;
}

/*
 * The gate, open if one of these holds (docs/PROTOCOL.md):
 *  1. no promise is active;
 *  2. a certificate covers it: the promised leader's work has stopped, or it is dead;
 *  3. the candidate's log ends in a later term than the promise is for: somebody was elected after the
 * promised leader, by a majority for which one of these four held, so that leader's lease is over;
 *  4. the candidate is the promised leader itself, in the same incarnation or a later one: it stands only
 * when its own work has stopped. And whoever has work running, or still stopping, helps nobody: its own vote
 * is part of its lease.
 */
bool raft_gate(const struct raft *r, raft_id candidate, uint64_t incarnation, raft_term last_term,
               const struct raft_certificate *certificate, gavel_ns *ret_wait)
{
    const struct raft_promise *promise = &r->state.promise;
    bool is_working = r->work != RAFT_WORK_NONE;

    if (PLANTED(VOTE_WHILE_WORKING) && r->work == RAFT_WORK_STOPPING)
        is_working = false;
    *ret_wait = 0;
    if (is_working) {
        /* Until the lease ends, if nothing renews it; who asks again sooner asks in vain. */
        *ret_wait = r->settings.stop_margin;
        if (r->work == RAFT_WORK_RUNNING)
            *ret_wait += ns_min(ns_max(r->lease_until - r->now, 0), r->settings.promise);
        return false;
    }
    if (!raft_is_promised(r, r->now))
        return true;
    if (certificate && raft_certificate_covers(certificate, promise))
        return true;
    if (last_term > promise->term)
        return true;
    if (candidate == promise->leader && incarnation >= promise->incarnation)
        return true;
    *ret_wait = r->promise_until - r->now;
    ASSERT(*ret_wait > 0);
    return false;
}

bool raft_gate_self(const struct raft *r, gavel_ns *ret_wait)
{
    return raft_gate(r, r->state.id, r->state.incarnation, raft_log_last_term(&r->log), NULL, ret_wait);
}
