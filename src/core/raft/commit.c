/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An entry is committed if it is on disk at a majority and of this term, or if it
 * precedes such an entry (thesis, section 3.6.2; figure 8 shows what happens
 * otherwise). We count ourselves only as far as our own disk has got, so that
 * entries may be sent before we have written them (thesis, section 10.2.1).
 */

#include "core/raft/internal.h"

static int64_t matched(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);

    if (PLANTED(COUNTS_OWN_UNSYNCED) && id == r->state.id)
        return (int64_t)raft_log_last(&r->log);
    if (id == r->state.id)
        return (int64_t)r->log.durable;
    return peer ? (int64_t)peer->match : 0;
}

void raft_advance_commit(struct raft *r)
{
    bool is_of_term;
    int64_t reached;

    if (r->role != RAFT_LEADER || r->is_commit_frozen)
        return;
    reached = raft_config_reached(&r->config, matched, r);
    if (reached <= (int64_t)r->commit)
        return;
    is_of_term = raft_log_term(&r->log, (raft_index)reached) == r->state.term;
    if (PLANTED(COMMITS_OLD_TERM))
        is_of_term = true;
    if (!is_of_term)
        return;
    ASSERT((raft_index)reached <= raft_log_last(&r->log));
    ASSERT(!r->is_commit_frozen);
    for (raft_index i = r->commit + 1; i <= (raft_index)reached; i++)
        r->uncommitted_bytes -= raft_log_at(&r->log, i)->size;
    r->commit = (raft_index)reached;
    backlog_end(&r->uncommitted, r->commit, r->now);
    if (r->commit == raft_log_last(&r->log))
        raft_send_commit(r); /* nothing follows that would tell them */
}

void raft_apply_committed(struct raft *r)
{
    struct raft_action *action;

    ASSERT(r->commit <= raft_log_last(&r->log));
    if (r->applied >= r->commit)
        return;
    ASSERT(raft_log_at(&r->log, r->applied + 1)); /* a snapshot never goes beyond what is applied */
    action = raft_act(r, RAFT_APPLY);
    action->apply.first = r->applied + 1;
    action->apply.last = r->commit;
    r->applied = r->commit;
    if (raft_learn_founding(r))
        r->keeps_commit = true; /* a restart must not forget it */
}
