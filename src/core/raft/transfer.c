/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handing over (thesis, section 3.10, with a lease to give up):
 *
 *   CATCH_UP ── caught up ──► STOPPING ── work has stopped ──► HANDED ── another leads ──► done
 *      │ time is up              │                               │ time is up
 *      ▼                         ▼                               ▼
 *   go on as before         next lease epoch                next lease epoch
 *
 * TIMEOUT_NOW carries a release of the lease epoch, which the target shows to its
 * voters. If the transfer fails, that release stays in circulation, so the leader
 * goes on with the next lease epoch and a fresh round of promises.
 *
 * A forced transfer does not wait for uncommitted entries. The leader commits
 * nothing more in this term, whatever happens (vote.c says why that keeps the log
 * safe). If the transfer fails, the term is over for us.
 */

#include "core/raft/internal.h"

#include <stdlib.h>

static bool is_heard(const struct raft *r, const struct raft_peer *peer)
{
    return r->now - peer->heard_at < r->settings.election_min;
}

bool raft_may_succeed(const struct raft *r, raft_id id)
{
    if (PLANTED(FAR_SUCCESSOR))
        return true;
    return raft_makes_lease(r, id);
}

static bool counts_as_near(const struct raft *r, const struct raft_peer *peer)
{
    if (PLANTED(FAR_SUCCESSOR))
        return true;
    return raft_is_near(r, peer);
}

/*
 * Who should lead after us: those that answer before those that do not, witnesses last, those that could hold
 * a lease first (near.c), then priority, then the log. But a witness that no worker answers names the workers
 * first: they may hear it, although it does not hear them. Otherwise two such witnesses name each other.
 */
static int compare_successors(const struct raft *r, const struct raft_peer *a, const struct raft_peer *b)
{
    const struct raft_member *ma = raft_config_find(&r->config, a->id);
    const struct raft_member *mb = raft_config_find(&r->config, b->id);

    ASSERT(ma);
    ASSERT(mb);
    if (ma->is_witness != mb->is_witness && raft_misses_workers(r))
        return ma->is_witness ? 1 : -1;
    if (is_heard(r, a) != is_heard(r, b))
        return is_heard(r, a) ? -1 : 1;
    if (ma->is_witness != mb->is_witness)
        return ma->is_witness ? 1 : -1;
    if (counts_as_near(r, a) != counts_as_near(r, b))
        return counts_as_near(r, a) ? -1 : 1;
    if (ma->priority != mb->priority)
        return ma->priority > mb->priority ? -1 : 1;
    if (a->match != b->match)
        return a->match > b->match ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

/* By insertion: there are at most a handful, and mostly they are in order. */
void raft_order_successors(struct raft *r)
{
    const struct raft_peer *ordered[RAFT_MEMBERS_MAX];
    unsigned count = 0;

    ASSERT(r->role == RAFT_LEADER);
    for (size_t i = 0; i < r->peer_count; i++) {
        unsigned at = count;
        const struct raft_member *member = raft_config_find(&r->config, r->peers[i].id);

        if (!member || !member->is_voter)
            continue; /* also not one that is about to leave */
        for (; at > 0 && compare_successors(r, &r->peers[i], ordered[at - 1]) < 0; at--)
            ordered[at] = ordered[at - 1];
        ordered[at] = &r->peers[i];
        count++;
    }
    r->successor_count = (uint8_t)(count < RAFT_VOTERS_MAX ? count : RAFT_VOTERS_MAX);
    for (unsigned i = 0; i < r->successor_count; i++)
        r->successors[i] = ordered[i]->id;
}

/*
 * The first of the list that may lead for work. Not one that is too far away to hold a lease, unless we
 * cannot work ourselves: then it may be we who are far from everybody.
 */
static raft_id best_target(struct raft *r)
{
    raft_order_successors(r);
    for (unsigned i = 0; i < r->successor_count; i++) {
        const struct raft_peer *peer = raft_peer_at(r, r->successors[i]);

        if (!raft_peer_is_witness(r, peer) && (r->work != RAFT_WORK_RUNNING || raft_may_succeed(r, peer->id)))
            return peer->id;
    }
    return 0;
}

#define PREFERS_BACK_OFF_MAX 6 /* doublings */

/* Each time that a preferred node could not take over, or not work, the next try is twice as far away: every
 * one costs work. */
void raft_wait_to_prefer(struct raft *r)
{
    unsigned times =
        r->preferred_in_vain < PREFERS_BACK_OFF_MAX ? r->preferred_in_vain : PREFERS_BACK_OFF_MAX;

    if (PLANTED(PREFERS_FOR_EVER))
        times = 0;
    r->prefers_from = r->now + r->settings.prefers_after;
    if (times > 0)
        r->prefers_from = r->now + (ns_max(r->settings.prefers_after, r->settings.election_max) << times);
}

/*
 * A transfer to it has begun; in vain until it has led for so long that it must be working
 * (raft_note_followed). That it was elected is not enough: it may need a voter that is too far away for a
 * lease. Remembered over terms: the leader that tries is mostly elected again.
 */
void raft_preferred(struct raft *r, raft_id target)
{
    if (r->preferred != target)
        r->preferred_in_vain = 0;
    r->preferred = target;
    r->preferred_in_vain++;
    raft_wait_to_prefer(r);
}

/* For a transfer that was given up: its lease epoch must end first, or the token of the work that stops is
 * claimed again. */
static bool is_still_stopping(const struct raft *r)
{
    if (PLANTED(TRANSFER_AGAIN))
        return false;
    return r->work == RAFT_WORK_STOPPING;
}

/* Before that we may not know all that our predecessors committed, so a forced transfer could lose it. */
static bool knows_commit(const struct raft *r)
{
    if (PLANTED(FORCE_BEFORE_NOOP))
        return true;
    return r->commit >= r->noop_index;
}

/* What an election costs on slow disks: the candidate's vote, a voter's, and one that was under way. */
static gavel_ns election_writes(const struct raft *r)
{
    if (PLANTED(HANDS_OVER_BY_OWN_DISK))
        return 3 * raft_write_takes(r);
    return 3 * raft_successor_write_takes(r, r->transfer.target);
}

static gavel_ns end_of_transfer(const struct raft *r)
{
    const struct raft_transfer *t = &r->transfer;

    if (t->timeout > 0)
        return t->began_at + t->timeout;
    return t->began_at + r->settings.transfer_timeout + election_writes(r);
}

enum gavel_status raft_begin_transfer(struct raft *r, raft_id target, bool is_forced, gavel_ns timeout)
{
    const struct raft_member *member;

    if (r->role != RAFT_LEADER)
        return GAVEL_ERR_NO_LEADER;
    if (r->transfer.phase != RAFT_TRANSFER_NONE || r->steps_down || r->change != RAFT_CHANGE_NONE ||
        r->config_index > r->commit || r->config.is_joint)
        return GAVEL_ERR_STATE;
    if (is_still_stopping(r) || (is_forced && !knows_commit(r)))
        return GAVEL_ERR_STATE;
    if (target == 0)
        target = best_target(r);
    member = raft_config_find(&r->config, target);
    if (!member || !member->is_voter || member->is_witness || target == r->state.id)
        return GAVEL_ERR_INVALID;
    r->transfer = (struct raft_transfer){
        .phase = RAFT_TRANSFER_CATCH_UP,
        .target = target,
        .is_forced = is_forced,
        .began_at = r->now,
        .timeout = timeout,
    };
    r->transfer.give_up_at = end_of_transfer(r);
    raft_transfer_goes_on(r);
    return GAVEL_OK;
}

void raft_transfer_ends(struct raft *r, const char *why)
{
    ASSERT(r->transfer.phase != RAFT_TRANSFER_NONE);
    r->transfer.phase = RAFT_TRANSFER_NONE;
    raft_tell(r, RAFT_NEWS_TRANSFER_FAILED, r->transfer.target)->tell.text = why;
}

static void hand_over(struct raft *r)
{
    struct raft_certificate certificate;

    ASSERT(r->role == RAFT_LEADER);
    ASSERT(r->transfer.phase == RAFT_TRANSFER_STOPPING);
    ASSERT(r->transfer.target != r->state.id);
    ASSERT(!r->steps_down);
    raft_make_release(r, r->transfer.is_forced ? r->transfer.target : 0, &certificate);
    r->transfer.phase = RAFT_TRANSFER_HANDED;
    /*
     * Nobody works now, so this is no time to be patient: a target that lives stands at once. But it must
     * have the time to write, and only now that it has acknowledged an entry of ours is it known how long
     * that takes. Otherwise a witness would step down before the only node that can work has been elected,
     * the next witness would stand in a new term, and hand over to the same node as briefly, for ever.
     */
    r->transfer.give_up_at =
        ns_min(end_of_transfer(r), r->now + r->settings.election_max + election_writes(r));
    raft_send(r, RAFT_MSG_TIMEOUT_NOW, r->transfer.target, RAFT_AFTER_STATE)->certificate = certificate;
    ASSERT(r->is_lease_given_up);
}

static void give_up(struct raft *r)
{
    bool has_stopped = r->transfer.phase != RAFT_TRANSFER_CATCH_UP;
    bool must_step_down = r->is_commit_frozen;

    if (PLANTED(FORCE_GOES_ON))
        must_step_down = false;
    ASSERT(r->role == RAFT_LEADER);
    ASSERT(r->transfer.phase != RAFT_TRANSFER_NONE);
    if (r->transfer.is_target_dead)
        raft_transfer_ends(r, "the target has died");
    else
        raft_transfer_ends(r, has_stopped ? "the target did not take over in time"
                                          : "the target did not catch up in time");
    if (must_step_down) {
        raft_step_down(r, RAFT_STOP_TRANSFER);
        return;
    }
    r->is_commit_frozen = false;
    if (has_stopped && raft_is_caretaker(r))
        raft_step_down(r, RAFT_STOP_TRANSFER); /* the others find out who of them can */
    else if (has_stopped && r->work == RAFT_WORK_NONE)
        raft_next_lease_epoch(r);
}

/* Called whenever something has changed, and when time is up. */
void raft_transfer_goes_on(struct raft *r)
{
    struct raft_transfer *t = &r->transfer;
    const struct raft_peer *peer = raft_peer_at(r, t->target);

    if (r->role != RAFT_LEADER || t->phase == RAFT_TRANSFER_NONE || r->steps_down)
        return;
    if (r->now >= t->give_up_at || t->is_target_dead || !peer) {
        give_up(r);
        return;
    }
    if (t->phase == RAFT_TRANSFER_CATCH_UP) {
        if (peer->match < (t->is_forced ? r->commit : raft_log_last(&r->log)))
            return;
        ASSERT(peer->match >= r->commit); /* nothing committed can get lost */
        r->is_commit_frozen = t->is_forced;
        t->phase = RAFT_TRANSFER_STOPPING;
        if (r->work == RAFT_WORK_RUNNING)
            raft_stop_work(r, RAFT_STOP_TRANSFER);
        ASSERT(r->work != RAFT_WORK_RUNNING);
        if (PLANTED(RELEASE_EARLY))
            hand_over(r);
    }
    if (t->phase == RAFT_TRANSFER_STOPPING && r->work == RAFT_WORK_NONE)
        hand_over(r);
}

/* The leader has stopped its work and names us: no pre-vote, no waiting. */
void raft_receive_timeout_now(struct raft *r, const struct raft_message *m)
{
    const struct raft_certificate *c = &m->certificate;

    if (m->term != r->state.term || r->leader != m->from || r->role != RAFT_FOLLOWER ||
        raft_is_outdated(r, c))
        return; /* late, or not for us */
    if (c->node != m->from || c->term != m->term || !raft_take_certificate(r, c)) {
        raft_refuse(r, m->from, "a transfer with a release that is not genuine");
        return;
    }
    r->certificate = *c;
    (void)raft_stand(r, true); /* if we may not, the leader resumes in time */
}

/* At a follower: an operator wants us to lead, whatever the leader thinks of it, or if it thinks at all. */
enum gavel_status raft_take_over(struct raft *r)
{
    enum gavel_status status;
    gavel_ns wait;

    if (r->role == RAFT_LEADER || !raft_is_voter(r) || raft_is_witness(r))
        return GAVEL_ERR_STATE;
    if (r->leader != 0)
        raft_send(r, RAFT_MSG_TAKE_OVER, r->leader, RAFT_AFTER_NOTHING);
    r->is_eager = true;
    r->eager_until = r->now + 2 * r->settings.election_max + r->settings.promise;
    if (raft_gate_self(r, &wait)) {
        status = raft_stand(r, true);
        return status == GAVEL_ERR_VOTE_DENIED ? GAVEL_OK
                                               : status; /* put off: it is eager, and stands when it may */
    }
    r->election_at = ns_min(r->election_at, r->now + wait); /* a leader that hangs renews no promise */
    return GAVEL_OK;
}

void raft_receive_take_over(struct raft *r, const struct raft_message *m)
{
    if (r->role != RAFT_LEADER || m->term != r->state.term)
        return;
    if (raft_begin_transfer(r, m->from, true, 0) != GAVEL_OK)
        raft_refuse(r, m->from, "it cannot take over now");
}
