/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A disk that hangs: no error, no answer. A write that fails is final and told
 * at once (step.c); one that never comes back says nothing, so time must tell.
 *
 *   leader     hands over, once the others have on disk what ours has not
 *   follower   goes on being silent: what waits for its disk never leaves
 *   either     does not stand for election
 *
 * A leader does not need its own disk to commit (commit.c), and its heartbeats
 * do not wait for it; so nothing else would end its leading, and a cluster
 * with one hung disk would be one more fault away from standing still.
 *
 * It stays if no majority of the others is further than its own disk: then
 * their disks hang too, or they are too few, and nobody could be elected; as
 * long as the leader has its lease its work at least goes on.
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
