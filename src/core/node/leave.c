/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A node that is asked to end hands over first, or, if nobody takes it, steps
 * down and lets the others elect. It also steps down when the work of its claim
 * cannot go on.
 */
#include "core/node/internal.h"

#include "base/planted.h"

static bool leads(const struct node *node) { return node->raft.role == RAFT_LEADER && !node->raft.is_failed; }

void node_stop(struct node *node, const struct node_moment *moment, gavel_ns timeout)
{
    struct node_leaving *leaving = &node->leaving;

    leaving->is_stopping = true;
    leaving->stop_at = moment->now + timeout;
    leaving->is_due = true; /* to step down, if the transfer is refused */
    if (leads(node))
        (void)node_step_raft(
            node, moment,
            &(struct raft_event){.kind = RAFT_TRANSFER, .transfer = {.timeout = ns_max(timeout, 1)}});
}

/* That of an earlier claim says nothing about the present one. */
void node_work_failed(struct node *node, raft_term term, uint64_t lease_epoch)
{
    bool is_present = node->claim.term == term && node->claim.lease_epoch == lease_epoch;

    if (PLANTED(OLD_FAILURE_COUNTS))
        is_present = true;
    node->leaving.must_step_down = node->claim.is_held && is_present;
}

void node_leave_soon(struct node *node) { node->leaving.is_due = node->leaving.is_stopping; }

bool node_must_leave(const struct node *node) { return node->leaving.must_step_down || node->leaving.is_due; }

bool node_leave_next(struct node *node, const struct node_moment *moment)
{
    struct node_leaving *leaving = &node->leaving;
    bool is_asked =
        leaving->must_step_down || (leaving->is_due && node->raft.transfer.phase == RAFT_TRANSFER_NONE);

    if (!node_must_leave(node))
        return false;
    leaving->must_step_down = leaving->is_due = false;
    if (is_asked && leads(node) && !node->raft.steps_down)
        (void)node_step_raft(node, moment, &(struct raft_event){.kind = RAFT_STEP_DOWN}); /* we lead: OK */
    return true;
}

bool node_has_left(const struct node *node, gavel_ns now)
{
    const struct node_leaving *leaving = &node->leaving;
    bool has_stopped = node->raft.work == RAFT_WORK_NONE;

    if (!leaving->is_stopping)
        return false;
    if (PLANTED(LEAVES_WHILE_WORKING))
        return true;
    return now >= leaving->stop_at || (has_stopped && !(leads(node) && node->raft.peer_count > 0));
}
