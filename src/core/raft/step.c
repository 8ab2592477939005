/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One event in; then whatever it, or time, has made due; then the one write and
 * the messages that wait for it. Start reading here.
 */

#include "core/raft/internal.h"

#include <string.h>

/* Well-formed, and yet nothing that we can follow. Counted and told, never asserted: it came from outside. */
void raft_refuse(struct raft *r, raft_id from, const char *why)
{
    r->refused_messages++;
    raft_tell(r, RAFT_NEWS_MESSAGE_REFUSED, from)->tell.text = why;
}

/*
 * A node that joins knows the cluster, but not how often it was begun anew; whoever leads it tells. Until
 * then it can neither vote nor be counted: it has no members.
 */
static void adopt_generation(struct raft *r, const struct raft_message *m)
{
    if (r->state.generation != 0 || r->config.count > 0 || m->cluster != r->state.cluster ||
        (m->kind != RAFT_MSG_APPEND && m->kind != RAFT_MSG_SNAPSHOT))
        return;
    r->state.generation = m->generation;
    raft_mark_state(r);
}

static enum gavel_status receive(struct raft *r, const struct raft_message *m)
{
    static void (*const handlers[RAFT_MESSAGE_KIND_COUNT])(struct raft *, const struct raft_message *) = {
        [RAFT_MSG_APPEND] = raft_receive_append,
        [RAFT_MSG_APPEND_REPLY] = raft_receive_append_reply,
        [RAFT_MSG_PRE_VOTE] = raft_receive_pre_vote,
        [RAFT_MSG_PRE_VOTE_REPLY] = raft_receive_pre_vote_reply,
        [RAFT_MSG_VOTE] = raft_receive_vote,
        [RAFT_MSG_VOTE_REPLY] = raft_receive_vote_reply,
        [RAFT_MSG_SNAPSHOT] = raft_receive_snapshot,
        [RAFT_MSG_TIMEOUT_NOW] = raft_receive_timeout_now,
        [RAFT_MSG_CERTIFICATE] = raft_receive_certificate,
        [RAFT_MSG_TAKE_OVER] = raft_receive_take_over,
    };
    const char *reason = NULL;

    if (raft_message_check(m, &reason) != GAVEL_OK) {
        raft_refuse(r, 0, reason);
        return GAVEL_ERR_INVALID;
    }
    if (m->to == r->state.id)
        adopt_generation(r, m);
    if (m->to != r->state.id || m->from == r->state.id)
        reason = "it is addressed to another node";
    else if (m->cluster != r->state.cluster || m->generation != r->state.generation)
        reason = "it is of another cluster, or of another generation of ours";
    if (reason) {
        raft_refuse(r, m->from, reason);
        return GAVEL_ERR_INVALID;
    }
    if (!raft_hears(r, m) || !raft_is_term_plausible(r, m))
        return GAVEL_ERR_INVALID;
    handlers[m->kind](r, m);
    return GAVEL_OK;
}

static enum gavel_status persisted(struct raft *r, uint64_t seq)
{
    bool was_writing = raft_is_writing_state(r);

    if (seq > r->seq)
        return GAVEL_ERR_INVALID;
    if (seq > r->durable_seq)
        r->durable_seq = seq;
    ASSERT(r->durable_seq <= r->seq);
    raft_log_persisted(&r->log, seq);
    backlog_end(&r->writes, r->durable_seq, r->now);
    if (was_writing && !raft_is_writing_state(r))
        raft_state_is_durable(r);
    raft_count_votes(r); /* our own is among them now */
    return GAVEL_OK;
}

/* Thesis, section 3.8 asks for stable storage; one that has failed once is none. */
static void disk_failed(struct raft *r)
{
    raft_become_follower(r, RAFT_STOP_DISK);
    r->is_failed = true;
    r->election_at = NEVER;
    r->actions->count = 0; /* nothing is said any more; but the work must still be stopped */
    if (r->work == RAFT_WORK_STOPPING)
        raft_act(r, RAFT_STOP_WORK)->stop.reason = RAFT_STOP_DISK;
    memset(&r->dirty, 0, sizeof r->dirty);
    ASSERT(r->role != RAFT_LEADER);
    ASSERT(r->work != RAFT_WORK_RUNNING);
}

/* A hint that a leader may be dead; only a pre-vote can come of it, and not before the promise ends. */
static void link_lost(struct raft *r, raft_id id)
{
    struct raft_peer *peer = raft_peer_find(r, id);

    if (r->role == RAFT_LEADER && peer) {
        if (peer->progress == RAFT_REPLICATE) {
            peer->progress = RAFT_PROBE;
            peer->next = peer->match + 1;
        }
        peer->is_probing = false;
        peer->inflight_count = 0;
    } else if (r->role == RAFT_FOLLOWER && id == r->leader) {
        gavel_ns at = ns_max(r->now, raft_is_promised(r, r->now) ? r->promise_until : 0);

        r->election_at = ns_min(r->election_at, at + raft_rank(r) * raft_rank_step(r) / 2);
    }
}

static enum gavel_status work_stopped(struct raft *r)
{
    if (r->work != RAFT_WORK_STOPPING)
        return GAVEL_ERR_STATE;
    raft_work_stopped(r);
    return GAVEL_OK;
}

static enum gavel_status step_down(struct raft *r)
{
    if (r->role != RAFT_LEADER)
        return GAVEL_ERR_NO_LEADER;
    raft_step_down(r, RAFT_STOP_COMMAND);
    return GAVEL_OK;
}

static enum gavel_status dispatch(struct raft *r, const struct raft_event *event)
{
    switch (event->kind) {
    case RAFT_TIMER:
        return GAVEL_OK; /* due() does the rest */
    case RAFT_RECEIVE:
        return receive(r, event->message);
    case RAFT_PERSISTED:
        return persisted(r, event->seq);
    case RAFT_DISK_FAILED:
        disk_failed(r);
        return GAVEL_OK;
    case RAFT_WORK_STOPPED:
        return work_stopped(r);
    case RAFT_PROPOSE:
        return raft_propose(r, event->propose.entries, event->propose.count);
    case RAFT_TRANSFER:
        return raft_begin_transfer(r, event->transfer.target, event->transfer.is_forced,
                                   event->transfer.timeout);
    case RAFT_TAKE_OVER:
        return raft_take_over(r);
    case RAFT_CHANGE:
        return raft_change(r, event->change);
    case RAFT_COMPACT:
        return raft_compact(r, event->compact.index, event->compact.blob, event->compact.data,
                            event->compact.size);
    case RAFT_STEP_DOWN:
        return step_down(r);
    case RAFT_CAMPAIGN:
        return raft_stand(r, false);
    case RAFT_LINK_LOST:
        link_lost(r, event->peer);
        return GAVEL_OK;
    case RAFT_DISTRUST:
        return raft_distrust(r, event->peer, RAFT_ROLLED_BACK);
    case RAFT_MET:
        raft_meet(r, event->met);
        return GAVEL_OK;
    }
    return GAVEL_ERR_INVALID;
}

/* A witness that leads does so to bring others level; then one of them shall lead. */
static void take_care(struct raft *r)
{
    if (raft_is_caretaker(r) && r->commit >= r->noop_index && r->transfer.phase == RAFT_TRANSFER_NONE)
        (void)raft_begin_transfer(r, 0, false,
                                  0); /* refused while there is nobody, or during a change; tried again */
}

/* Leadership moves back to a preferred node only by transfer, and only when asked to by the settings. */
static void prefer(struct raft *r)
{
    const struct raft_member *self = raft_config_find(&r->config, r->state.id);
    const struct raft_member *first;
    const struct raft_peer *peer;

    if (!r->settings.prefers_priority || r->work != RAFT_WORK_RUNNING || !self || r->successor_count == 0 ||
        r->now < r->prefers_from)
        return;
    first = raft_config_find(&r->config, r->successors[0]);
    peer = raft_peer_at(r, r->successors[0]);
    if (!first || first->is_witness || first->priority <= self->priority || peer->match < r->commit ||
        !raft_may_succeed(r, peer->id))
        return;
    if (raft_begin_transfer(r, first->id, false, 0) == GAVEL_OK)
        raft_preferred(r, first->id);
}

static void lead_on(struct raft *r)
{
    raft_advance_commit(r);
    raft_note_acked(r);
    raft_leave_if_hung(r);
    raft_transfer_goes_on(r);
    raft_change_goes_on(r);
    raft_bind_directories(r);
    if (r->role == RAFT_LEADER)
        take_care(r);
    if (r->role == RAFT_LEADER && r->now >= r->heartbeat_at) {
        raft_new_round(r);
        raft_send_appends(r, true);
    }
    if (r->role == RAFT_LEADER)
        prefer(r); /* in every step: a round that begins by itself puts the heartbeat off */
    raft_check_lease(r);
    raft_apply_committed(r); /* whoever claims has all that was ever committed, also in its state machine */
    raft_try_claim(r);
}

/*
 * Without automatic fail-over a follower stands only when asked to, by a transfer, TAKE_OVER or CAMPAIGN. The
 * very first election needs nobody, nor does a node that is alone: there is nothing to fail over from.
 */
static bool waits_for_operator(const struct raft *r)
{
    bool has_others = false;

    for (size_t i = 0; i < r->config.count; i++)
        has_others = has_others || (r->config.members[i].id != r->state.id &&
                                    raft_config_votes(&r->config, r->config.members[i].id));
    return !r->settings.auto_failover && r->role == RAFT_FOLLOWER && !r->is_eager &&
           raft_log_last(&r->log) > 0 && has_others;
}

/* The leader is given up all the same, so that everybody can see that somebody has to act. */
static void wait_for_operator(struct raft *r)
{
    r->election_at = NEVER;
    raft_set_leader(r, 0, 0);
}

/* What time, or the event before it, has made due. */
static void due(struct raft *r)
{
    if (r->is_eager && r->now >= r->eager_until)
        r->is_eager = false;
    if (r->role == RAFT_LEADER)
        lead_on(r);
    else if (r->now >= r->election_at && waits_for_operator(r))
        wait_for_operator(r);
    else if (r->now >= r->election_at)
        raft_election_due(r);
    raft_check_leaving(r);
    raft_apply_committed(r);
}

/* What a step may only raise, as it was before it. */
struct marks {
    raft_term term;
    raft_id vote;
    raft_index commit;
    raft_index applied;
};

/* What holds after every step, whatever came in. */
static void check_after(const struct raft *r, const struct marks *before)
{
    ASSERT(r->state.term >= before->term);
    if (r->state.term == before->term && before->vote != 0)
        ASSERT(r->state.vote == before->vote || PLANTED(TWO_VOTES)); /* one vote per term */
    ASSERT(r->commit >= before->commit);
    ASSERT(r->applied >= before->applied);
    ASSERT(r->applied <= r->commit);
    ASSERT(r->commit <= raft_log_last(&r->log));
    ASSERT(r->log.base <= r->applied);
    ASSERT(r->log.durable <= raft_log_last(&r->log));
    ASSERT(r->durable_seq <= r->seq);
    ASSERT(r->state_seq <= r->seq);
    ASSERT(r->snapshot.index == r->log.base);
    ASSERT(r->config_index <= raft_log_last(&r->log));
    ASSERT(r->peer_count <= r->config.count);
    ASSERT(r->seen_term == 0 || r->seen_term > r->state.term);
    if (r->transfer.phase == RAFT_TRANSFER_CATCH_UP || r->transfer.phase == RAFT_TRANSFER_STOPPING)
        ASSERT(r->role == RAFT_LEADER);
    if (r->role == RAFT_PRE_CANDIDATE || r->role == RAFT_CANDIDATE)
        ASSERT(r->leader == 0);
    if (r->work == RAFT_WORK_RUNNING) {
        ASSERT(r->role == RAFT_LEADER);
        ASSERT(r->now < r->lease_until || PLANTED(WINDOWED_CHECK_QUORUM));
    }
    if (r->change != RAFT_CHANGE_NONE)
        ASSERT(r->role == RAFT_LEADER);
    if (r->role == RAFT_LEADER) {
        ASSERT(r->leader == r->state.id);
        ASSERT(r->led_term == r->state.term);
        ASSERT(r->state.vote == r->state.id);
        ASSERT(r->election_at == NEVER);
        ASSERT(r->noop_index <= raft_log_last(&r->log));
        ASSERT(r->lease_epoch > 0);
    }
}

enum gavel_status raft_step(struct raft *r, const struct raft_event *event, struct raft_actions *ret_actions)
{
    const struct marks before = {r->state.term, r->state.vote, r->commit, r->applied};
    enum gavel_status status;

    ASSERT(!r->actions); /* a step is not taken within a step */
    ret_actions->count = 0;
    r->actions = ret_actions;
    r->now = ns_max(r->now, event->now);
    if (r->is_failed) {
        if (event->kind == RAFT_WORK_STOPPED)
            r->work = RAFT_WORK_NONE;
        r->actions = NULL;
        return GAVEL_ERR_STOPPED;
    }
    raft_check_lease(r); /* before anything else: we may have slept */
    status = dispatch(r, event);
    if (!r->is_failed) {
        due(r);
        raft_flush(r);
        check_after(r, &before);
    }
    r->actions = NULL;
    return status;
}

gavel_ns raft_wake_at(const struct raft *r)
{
    gavel_ns at;

    if (r->is_failed)
        return NEVER;
    if (r->role != RAFT_LEADER)
        return r->election_at;
    at = ns_min(r->heartbeat_at, r->work == RAFT_WORK_RUNNING ? r->lease_until : raft_contact_until(r));
    at = ns_min(at, raft_claim_by(r));
    if (r->transfer.phase != RAFT_TRANSFER_NONE && !r->steps_down)
        at = ns_min(at, r->transfer.give_up_at);
    if (r->change == RAFT_CHANGE_LEARN)
        at = ns_min(at, raft_change_give_up_at(r));
    return ns_min(at, raft_hangs_at(r));
}

const char *raft_stop_name(enum raft_stop stop)
{
#define TEXT(name, text) [RAFT_STOP_##name] = (text),
    static const char *const names[] = {RAFT_STOP_MAP(TEXT)};
#undef TEXT
    return (size_t)stop < sizeof names / sizeof *names ? names[stop] : "unknown";
}

const char *raft_news_name(enum raft_news news)
{
#define TEXT(name, text) [RAFT_NEWS_##name] = (text),
    static const char *const names[] = {RAFT_NEWS_MAP(TEXT)};
#undef TEXT
    return (size_t)news < sizeof names / sizeof *names ? names[news] : "unknown";
}
