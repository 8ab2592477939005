/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The roles and the edges between them; the diagram is in raft.h, and a
 * test prints this table so that the two cannot drift apart. Roles, terms and
 * the known leader are set here and nowhere else.
 */

#include "core/raft/internal.h"

#include <string.h>

#define BIT(role) (1u << (role))

static const struct {
    const char *name;
    unsigned allowed; /* bit set of next roles */
} roles[RAFT_ROLE_COUNT] = {
    [RAFT_LEARNER] = {"learner", BIT(RAFT_FOLLOWER)},
    [RAFT_FOLLOWER] = {"follower", BIT(RAFT_LEARNER) | BIT(RAFT_PRE_CANDIDATE) | BIT(RAFT_CANDIDATE)},
    [RAFT_PRE_CANDIDATE] = {"pre-candidate", BIT(RAFT_FOLLOWER) | BIT(RAFT_CANDIDATE)},
    [RAFT_CANDIDATE] = {"candidate", BIT(RAFT_FOLLOWER) | BIT(RAFT_LEADER)},
    [RAFT_LEADER] = {"leader", BIT(RAFT_FOLLOWER)},
};

const char *raft_role_name(enum raft_role role)
{
    return (unsigned)role < RAFT_ROLE_COUNT ? roles[role].name : "unknown";
}

bool raft_may_move(enum raft_role from, enum raft_role to) { return (roles[from].allowed & BIT(to)) != 0; }

static void move(struct raft *r, enum raft_role to)
{
    ASSERT((unsigned)to < RAFT_ROLE_COUNT);
    ASSERT(raft_may_move(r->role, to));
    if (to == RAFT_LEADER || r->role == RAFT_LEADER)
        ASSERT(r->work != RAFT_WORK_RUNNING); /* work begins after the role, and ends before it */
    r->role = to;
    raft_tell(r, RAFT_NEWS_ROLE_CHANGED, r->state.id)->tell.text = roles[to].name;
}

void raft_set_leader(struct raft *r, raft_id leader, uint64_t incarnation)
{
    bool is_news = r->leader != leader;

    if (leader == r->state.id)
        ASSERT(r->role == RAFT_LEADER);
    if (leader == 0)
        ASSERT(incarnation == 0);
    r->leader = leader;
    r->leader_incarnation = incarnation;
    if (leader != 0)
        r->awaits_winner = false;
    if (!is_news)
        return;
    raft_tell(r, RAFT_NEWS_LEADER_CHANGED, leader);
    if (leader == 0)
        return;
    raft_forget_rivals(r);
    r->followed_from = r->now;
    raft_record_leader(r, leader);
    r->is_eager = false;
    if (r->certificate.node != leader || r->certificate.term != r->state.term)
        r->certificate.kind = RAFT_CERT_NONE; /* it spoke of a predecessor */
    if (r->transfer.phase == RAFT_TRANSFER_HANDED && leader != r->state.id) {
        r->transfer.phase = RAFT_TRANSFER_NONE;
        if (leader == r->transfer.target)
            raft_tell(r, RAFT_NEWS_TRANSFER_DONE, leader);
        else
            raft_tell(r, RAFT_NEWS_TRANSFER_FAILED, r->transfer.target)->tell.text =
                "another node was elected";
    }
}

void raft_become_learner(struct raft *r)
{
    ASSERT(!raft_may_stand(r));
    move(r, RAFT_LEARNER);
    r->election_at = NEVER;
}

/* A leader loses what only leaders have. Its work, if any, is told to stop; until it has, the gate stays
 * shut. */
static void leave_leadership(struct raft *r, enum raft_stop why)
{
    if (r->work == RAFT_WORK_RUNNING)
        raft_stop_work(r, why);
    if (r->transfer.phase != RAFT_TRANSFER_NONE && r->transfer.phase != RAFT_TRANSFER_HANDED)
        raft_transfer_ends(r, "the leader stepped down");
    if (r->change != RAFT_CHANGE_NONE) {
        r->change = RAFT_CHANGE_NONE;
        raft_tell(r, RAFT_NEWS_CHANGE_FAILED, 0)->tell.text =
            "the leader stepped down; its successor may complete it";
    }
    r->lease_until = 0;
    r->steps_down = false;
    backlog_clear(&r->uncommitted);
    r->heartbeat_at = NEVER;
    r->successor_count = 0; /* our own list has us nowhere */
    ASSERT(r->work != RAFT_WORK_RUNNING);
    ASSERT(r->change == RAFT_CHANGE_NONE);
    ASSERT(r->transfer.phase == RAFT_TRANSFER_NONE || r->transfer.phase == RAFT_TRANSFER_HANDED);
}

void raft_become_follower(struct raft *r, enum raft_stop why)
{
    if (r->role == RAFT_FOLLOWER || r->role == RAFT_LEARNER)
        return;
    if (r->role == RAFT_LEADER)
        leave_leadership(r, why);
    else if (r->has_election)
        raft_record_end(r, RAFT_OVERTAKEN);
    move(r, RAFT_FOLLOWER);
    raft_set_leader(r, 0, 0);
    raft_restart_timer(r);
    raft_settle_role(r);
    ASSERT(r->role == RAFT_FOLLOWER || r->role == RAFT_LEARNER);
    ASSERT(r->leader == 0);
    ASSERT(r->work != RAFT_WORK_RUNNING);
}

void raft_settle_role(struct raft *r)
{
    if (r->role == RAFT_FOLLOWER && !raft_may_stand(r)) {
        raft_become_learner(r);
    } else if (r->role == RAFT_LEARNER && raft_may_stand(r)) {
        move(r, RAFT_FOLLOWER);
        raft_restart_timer(r);
    } else if ((r->role == RAFT_PRE_CANDIDATE || r->role == RAFT_CANDIDATE) && !raft_may_stand(r)) {
        raft_become_follower(r, RAFT_STOP_REMOVED);
    }
}

void raft_adopt_term(struct raft *r, raft_term term)
{
    ASSERT(term > r->state.term);
    r->state.term = term;
    r->state.vote = 0;
    raft_become_follower(r, RAFT_STOP_REPLACED);
    if (r->seen_term <= term)
        r->seen_term = 0;
    raft_set_leader(r, 0, 0);
    raft_mark_state(r);
    ASSERT(r->role != RAFT_LEADER);
    ASSERT(r->work != RAFT_WORK_RUNNING);
    ASSERT(r->state.vote == 0);
    ASSERT(r->leader == 0);
    ASSERT(r->seen_term == 0 || r->seen_term > r->state.term);
}

static void forget_answers(struct raft *r)
{
    for (size_t i = 0; i < r->peer_count; i++) {
        r->peers[i].has_answered = false;
        r->peers[i].is_granted = false;
        r->peers[i].wait_until = NEVER;
    }
}

/* Thesis, section 9.6. Nothing durable changes, and nobody is disturbed by a node that cannot win. */
void raft_become_pre_candidate(struct raft *r)
{
    ASSERT(raft_may_stand(r));
    ASSERT(!raft_is_writing_state(r) || PLANTED(STANDS_WHILE_WRITING));
    if (r->role != RAFT_PRE_CANDIDATE)
        move(r, RAFT_PRE_CANDIDATE);
    raft_set_leader(r, 0, 0);
    forget_answers(r);
    r->round++;
    r->round_at = r->now;
    raft_record_begin(r, r->state.term + 1, r->state.id, true);
    raft_retry_timer(r);
    ASSERT(r->has_election);
    ASSERT(r->leader == 0);
}

/* Thesis, section 3.4: a new term, a vote for ourselves. The promise, which the gate has passed, ends with
 * it. */
void raft_become_candidate(struct raft *r)
{
    ASSERT(r->work == RAFT_WORK_NONE);
    ASSERT(raft_may_stand(r));
    ASSERT(r->state.term + 1 < RAFT_NUMBER_MAX);
    if (r->has_election)
        raft_record_end(r, RAFT_WON); /* of pre-votes */
    r->state.term++;
    r->state.vote = r->state.id;
    move(r, RAFT_CANDIDATE);
    raft_set_leader(r, 0, 0);
    forget_answers(r);
    if (r->seen_term <= r->state.term)
        r->seen_term = 0;
    raft_promise_clear(r);
    raft_mark_state(r);
    r->own_vote_seq = r->seq + 1; /* the write that this step ends with */
    r->asked_again = 0;
    r->is_pre_voted = r->awaits_winner = false;
    raft_record_begin(r, r->state.term, r->state.id, false);
    raft_retry_timer(r);
    ASSERT(r->dirty.has_state);
    ASSERT(r->own_vote_seq > r->durable_seq);
    ASSERT(r->has_election);
    ASSERT(!raft_is_promised(r, r->now));
}

/*
 * Thesis, sections 3.4 and 3.5: probe everybody from the end of the log, say at once who leads, and append an
 * entry of this term, because entries of older terms are committed only along with one.
 */
void raft_become_leader(struct raft *r)
{
    struct raft_entry noop = {.term = r->state.term, .kind = RAFT_ENTRY_NOOP};

    ASSERT(r->role == RAFT_CANDIDATE);
    ASSERT(r->state.vote == r->state.id);
    ASSERT(r->durable_seq >= r->own_vote_seq);
    ASSERT(r->work == RAFT_WORK_NONE);
    raft_record_end(r, RAFT_WON);
    move(r, RAFT_LEADER);
    r->election_at = NEVER;
    r->failures = 0;
    r->led_from = r->now;
    r->led_term = r->state.term;
    r->lease_epoch = 1;
    r->is_lease_given_up = r->is_commit_frozen = r->steps_down = false;
    r->lease_until = r->leased_until = r->hopeful_at = 0;
    r->round_ahead = 0;
    r->transfer.phase = RAFT_TRANSFER_NONE;
    r->change = RAFT_CHANGE_NONE;
    raft_wait_to_prefer(r);
    for (size_t i = 0; i < r->peer_count; i++) {
        struct raft_peer *peer = &r->peers[i];

        peer->progress = RAFT_PROBE;
        peer->next = raft_log_last(&r->log) + 1;
        peer->match = 0;
        peer->inflight_count = 0;
        peer->is_probing = false;
        peer->heard_at = r->now;
        peer->acked_round = 0;
        peer->acked_promise = 0;
        peer->round_trip = 0;
        peer->write_takes = 0;
        peer->writing_at = 0;
    }
    raft_set_leader(r, r->state.id, r->state.incarnation);
    r->uncommitted_bytes = 0;
    for (raft_index i = r->commit + 1; i <= raft_log_last(&r->log); i++)
        r->uncommitted_bytes += raft_log_at(&r->log, i)->size;
    r->noop_index = raft_log_last(&r->log) + 1;
    ASSERT(r->noop_index > r->commit);
    raft_new_round(r);
    if (raft_append_own(r, &noop) != GAVEL_OK) {
        raft_become_follower(r, RAFT_STOP_COMMAND); /* no memory for a single entry: let another lead */
        return;
    }
    raft_send_appends(r, true);
    ASSERT(r->leader == r->state.id);
    ASSERT(raft_log_last(&r->log) == r->noop_index);
    ASSERT(r->work == RAFT_WORK_NONE);
}
