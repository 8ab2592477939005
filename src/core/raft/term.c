/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Seeing a higher term.
 *
 * Plain Raft adopts any higher term at once (thesis, section 3.3). So a node that
 * rejoins with one could depose a leader that all others are content with, and end
 * its lease without its knowledge. Here a node that is bound, by a promise or by
 * its own work, does not adopt a term that it merely heard of. It remembers the
 * term, its append replies carry it to the leader, and the leader steps down in
 * order. Appends and snapshots are different: they prove that a majority has
 * elected a leader, so they are always followed (append.c).
 *
 * A term counts elections. One that is too far ahead for elections to have reached
 * it is a fault or an attack. Adopting it would use up the numbers, and a cluster
 * whose terms have run out can never elect again. Such a message is not followed;
 * losing a message is always safe. The bound is counted from our own term, so that
 * it suits a node that was away: at ten elections a second it is reached after three
 * years. Nor can many messages together do harm in a time that matters: from the
 * bound to the end of the numbers takes 2^32 of them, each with a write to disk. A
 * node that has no members yet knows no term to count from, and accepts any.
 */

#include "core/raft/internal.h"

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

/* The furthest term that following this message could lead to. */
static raft_term furthest_term(const struct raft_message *m)
{
    raft_term term = m->term;

    if ((m->kind == RAFT_MSG_VOTE || m->kind == RAFT_MSG_PRE_VOTE) && m->vote.term > term)
        term = m->vote.term;
    if ((m->kind == RAFT_MSG_VOTE_REPLY || m->kind == RAFT_MSG_PRE_VOTE_REPLY) && m->vote_reply.term > term)
        term = m->vote_reply.term;
    if (m->kind == RAFT_MSG_APPEND_REPLY && m->append_reply.seen_term > term)
        term = m->append_reply.seen_term;
    return term;
}

bool raft_is_term_plausible(struct raft *r, const struct raft_message *m)
{
    raft_term term = furthest_term(m);

    if (r->config.count == 0 || term <= r->state.term || term - r->state.term <= RAFT_TERM_JUMP_MAX)
        return true;
    if (PLANTED(ANY_TERM))
        return true;
    r->refused_messages++;
    raft_tell(r, RAFT_NEWS_TERM_REFUSED, m->from)->tell.term = term;
    return false;
}
