/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Meeting a higher term.
 *
 * Plain Raft adopts any higher term at once (thesis, section 3.3). A node that
 * rejoins with one could so depose a leader that everybody else is happy with,
 * and end its lease behind its back. Here a node that is bound, by a promise or
 * by its own work, does not adopt a term that it merely heard of: it remembers
 * it, the append replies carry it to the leader, and the leader steps down in
 * order. Appends and snapshots are different: they prove that a majority has
 * elected somebody, so they are always followed (append.c).
 */

#include "raft/internal.h"

static bool is_bound(const struct raft *r)
{
    if (r->work != RAFT_WORK_NONE)
        return true;
    if (PLANTED(TERM_WHILE_PROMISED))
        return false;
    return raft_is_promised(r, r->now);
}

void raft_meet_term(struct raft *r, raft_term term)
{
    if (term <= r->state.term)
        return;
    if (!is_bound(r)) {
        raft_adopt_term(r, term);
        return;
    }
    if (term > r->seen_term) {
        r->seen_term = term;
        raft_tell(r, RAFT_NEWS_HIGHER_TERM_SEEN, 0)->tell.term = term;
    }
    if (r->role == RAFT_LEADER)
        raft_step_down(r, RAFT_STOP_TERM);
}
