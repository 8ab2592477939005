/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A disk that hangs: no error, no answer. A write that fails is final and reported
 * at once (step.c). One that never returns can only be recognised by time.
 *
 *   leader     hands over, once the others have on disk what ours has not
 *   follower   stays silent: messages that wait for its disk never leave
 *   either     does not stand for election
 *
 * A leader does not need its own disk to commit (commit.c), and its heartbeats
 * do not wait for it. So nothing else would end its leadership, and with one hung
 * disk the cluster would be one fault away from a standstill.
 *
 * The leader stays if no majority of the others is ahead of its own disk: then
 * their disks hang too, or they are too few, and nobody could be elected. As long
 * as the leader has its lease, its work at least goes on.
 */

#include "core/raft/internal.h"

bool raft_disk_hangs(const struct raft *r, gavel_ns now)
{
    return backlog_is_stuck(&r->writes, r->settings.disk_patience, now);
}

bool raft_commit_hangs(const struct raft *r, gavel_ns now)
{
    return r->role == RAFT_LEADER && backlog_is_stuck(&r->uncommitted, r->settings.disk_patience, now);
}

static int64_t matched_by_others(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);

    return peer && id != r->state.id ? (int64_t)peer->match : 0;
}

/* A majority without us has on disk what ours has not. */
static bool is_behind(const struct raft *r)
{
    return raft_config_reached(&r->config, matched_by_others, r) > (int64_t)r->log.durable;
}

void raft_leave_if_hung(struct raft *r)
{
    if (PLANTED(HUNG_LEADS))
        return;
    if (r->role == RAFT_LEADER && !r->steps_down && raft_disk_hangs(r, r->now) && is_behind(r))
        raft_step_down(r, RAFT_STOP_HANGS);
}

gavel_ns raft_hangs_at(const struct raft *r)
{
    gavel_ns at = backlog_stuck_at(&r->writes, r->settings.disk_patience);

    return at > r->now ? at : NEVER; /* it has been looked at; from now on heartbeats are often enough */
}
