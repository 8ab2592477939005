/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leaving in order: first the work stops, then the lease is released, then
 * another may get our vote.
 */

#include "core/raft/internal.h"

/*
 * A node has a higher term, and nobody leads in that term: our lease would not have lasted otherwise. We go
 * on from there. Our followers may vote for us whatever they promised, because they promised it to us; and
 * the request carries the release of our old lease, should they prefer another.
 */
static void go_on_in_term(struct raft *r, raft_term term)
{
    ASSERT(r->work == RAFT_WORK_NONE);
    ASSERT(term > r->state.term);
    raft_become_follower(r, RAFT_STOP_TERM);
    raft_adopt_term(r, term);
    (void)raft_stand(r, true); /* refused only if we are no voter, and then nothing is to be done */
}

/* Everybody learns that the lease is over, and the first successor stands at once. We come last. */
static void let_others(struct raft *r)
{
    ASSERT(r->work == RAFT_WORK_NONE);
    ASSERT(r->certificate.kind == RAFT_CERT_RELEASE);
    ASSERT(r->certificate.node == r->state.id);
    for (size_t i = 0; i < r->peer_count; i++)
        raft_send(r, RAFT_MSG_CERTIFICATE, r->peers[i].id, RAFT_AFTER_NOTHING)->certificate = r->certificate;
    raft_become_follower(r, r->stop_reason);
    ASSERT(r->role != RAFT_LEADER);
    if (r->role == RAFT_FOLLOWER)
        r->election_at = ns_max(r->election_at, r->now + r->settings.election_max);
}

/* The work has stopped: what it stopped for can be done. */
static void leave(struct raft *r)
{
    ASSERT(r->role == RAFT_LEADER);
    ASSERT(r->work == RAFT_WORK_NONE);
    if (r->transfer.phase != RAFT_TRANSFER_NONE)
        raft_transfer_ends(r, "the leader stepped down");
    raft_make_release(r, 0, &r->certificate);
    if (r->stop_reason == RAFT_STOP_TERM && r->seen_term > r->state.term)
        go_on_in_term(r, r->seen_term);
    else
        let_others(r);
    ASSERT(r->role != RAFT_LEADER);
}

void raft_step_down(struct raft *r, enum raft_stop why)
{
    ASSERT(r->role == RAFT_LEADER);
    if (r->steps_down)
        return;
    r->steps_down = true;
    if (r->work == RAFT_WORK_RUNNING) {
        raft_stop_work(r, why);
        ASSERT(r->work == RAFT_WORK_STOPPING);
        return;
    }
    r->stop_reason = why;
    if (r->work == RAFT_WORK_NONE)
        leave(r);
}

void raft_work_stopped(struct raft *r)
{
    ASSERT(r->work == RAFT_WORK_STOPPING);
    r->work = RAFT_WORK_NONE;
    if (r->role != RAFT_LEADER) {
        /* The lease lapsed. Whoever still hears us, though we did not hear it, need not wait for its
         * promise. */
        if (r->stop_reason == RAFT_STOP_LAPSED && r->state.term == r->led_term && r->leader == 0) {
            raft_make_release(r, 0, &r->certificate);
            let_others(r);
        }
        return;
    }
    if (r->steps_down)
        leave(r);
    else if (r->transfer.phase != RAFT_TRANSFER_NONE)
        raft_transfer_goes_on(r);
    else
        raft_next_lease_epoch(r);      /* the transfer that it stopped for was given up meanwhile */
    ASSERT(r->work == RAFT_WORK_NONE); /* what begins again begins by a claim */
}
