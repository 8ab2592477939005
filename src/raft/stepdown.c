/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leaving in order: first the work stops, then the lease is released, then
 * another may have our vote.
 */

#include "raft/internal.h"

/* Everybody learns that the lease is over; the first successor stands at once. */
static void release(struct raft *r)
{
    struct raft_certificate certificate;

    raft_make_release(r, 0, &certificate);
    for (size_t i = 0; i < r->peer_count; i++)
        raft_send(r, RAFT_MSG_CERTIFICATE, r->peers[i].id, RAFT_AFTER_NOTHING)->certificate = certificate;
    r->certificate = certificate; /* so that our own vote requests carry it, should nobody else stand */
}

/* The work has stopped: what it stopped for can be done. */
static void leave(struct raft *r)
{
    enum raft_stop why = r->stop_reason;
    raft_term seen = r->seen_term;

    if (r->transfer.phase != RAFT_TRANSFER_NONE)
        raft_transfer_ends(r, "the leader stepped down");
    release(r);
    raft_become_follower(r, why);
    if (why != RAFT_STOP_TERM || seen <= r->state.term) {
        /* The others first. */
        r->election_at = ns_max(r->election_at, r->now + r->settings.election_max);
        return;
    }
    /*
     * A node has a higher term, and nobody of that term leads: our lease would not have lasted otherwise. We
     * go on from there. Our followers may vote for us whatever they promised, because they promised it to us.
     */
    raft_adopt_term(r, seen);
    (void)raft_stand(r, true); /* refused only if we are no voter, and then nothing is to be done */
}

void raft_step_down(struct raft *r, enum raft_stop why)
{
    ASSERT(r->role == RAFT_LEADER);
    if (r->steps_down)
        return;
    r->steps_down = true;
    if (r->work == RAFT_WORK_RUNNING) {
        raft_stop_work(r, why);
        return;
    }
    r->stop_reason = why;
    if (r->work == RAFT_WORK_NONE)
        leave(r);
}

void raft_work_stopped(struct raft *r)
{
    r->work = RAFT_WORK_NONE;
    if (r->role != RAFT_LEADER)
        return;
    if (r->steps_down)
        leave(r);
    else if (r->transfer.phase != RAFT_TRANSFER_NONE)
        raft_transfer_goes_on(r);
    else
        raft_next_lease_epoch(r); /* the transfer that it stopped for was given up meanwhile */
}
