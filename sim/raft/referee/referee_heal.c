/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Liveness: calm runs, in which nobody may ever be replaced, and the end of
 * all others, in which a majority has healed.
 *
 * When must somebody work again? Let D be the longest delay of a message, W
 * that of a write, and T = 2 D + W what asking and being answered takes.
 *
 *   start      all healed nodes run
 *   + promise  every promise, also one that a restart holds again, has run out (stretched by the drift), and
 * with it every lease that could still hold somebody back
 *   + stop     the work of such a leader has stopped
 *   + tries    some node stands within an election timeout, at most election_min + 4 * (election_max -
 * election_min) by the back-off. Two may stand within the same T and split the votes, or one whose log is
 * behind may come first; the next try is drawn anew. TRIES of them in a row is beyond what chance allows in a
 *              soak of millions of runs.
 *   + hand     a witness, or a leader that removes itself, hands over: a transfer, once more if it fails; one
 * that is under way at the start waits for three writes as long as they took before
 *   + claim    a pre-vote, a vote, the no-op on disk at a majority, a round: 4 T; entries and a snapshot that
 * the others lack: 4 T more
 *   + far      each node that is too far away to hold a lease may be elected first: the time after which it
 * gives up, and an election
 *
 * In a partial partition the same is asked, unless the election is constrained: see referee_reach.c.
 */

#include "sim/raft/referee/referee_shadow.h"

#define TRIES 4

/* How long after the instant by which somebody must lead the run goes on to see that it stays so. */
#define PEACE NS_PER_S
/* Long enough to see that a leader does not hand over to the same node in vain again and again. */
#define PEACE_OF_PREFERENCE (8 * NS_PER_S)
#define HAND_OVERS_MAX 4

/* A cold start may elect two in a row before the first of them is known everywhere. */
static gavel_ns settling_time(const struct raft_settings *settings)
{
    return settings->election_min + 4 * (settings->election_max - settings->election_min);
}

void referee_calm_claimed(struct raft_referee *referee, const struct shadow *shadow)
{
    if (!referee->options.is_calm)
        return;
    if (referee->is_claimed && referee->now >= referee->calm_from)
        raft_referee_violate(
            referee, RAFT_INVARIANT_CALM,
            "node %llu claims in term %llu after another in term %llu, and nothing went wrong",
            (ull)shadow->id, (ull)shadow->claim.term, (ull)referee->calm_term);
    referee->is_claimed = true;
    referee->calm_from = referee->now + settling_time(&shadow->raft->settings);
    referee->calm_term = shadow->claim.term;
}

void referee_check_calm(struct raft_referee *referee, const struct shadow *shadow)
{
    if (!referee->options.is_calm || !referee->is_claimed || referee->now < referee->calm_from)
        return;
    if (shadow->raft->state.term > referee->calm_term)
        raft_referee_violate(referee, RAFT_INVARIANT_CALM,
                             "node %llu goes to term %llu from %llu, and nothing went wrong", (ull)shadow->id,
                             (ull)shadow->raft->state.term, (ull)referee->calm_term);
}

/* A turn without work has ended. After several in a row it was not as short as the first ones. */
void referee_check_idle(struct raft_referee *referee, struct shadow *shadow)
{
    const struct raft *raft = shadow->raft;
    gavel_ns led = raft->now - raft->led_from;

    if (raft->idle_turns > shadow->idle_turns && raft->idle_turns > RAFT_IDLE_TURNS + 1 &&
        led < 2 * RAFT_CLAIM_PATIENCE(&raft->settings))
        raft_referee_violate(referee, RAFT_INVARIANT_BACK_OFF,
                             "node %llu could not work in %u turns in a row, and gave up after %lld ms again",
                             (ull)shadow->id, raft->idle_turns, (long long)ms_from_ns(led));
    shadow->idle_turns = raft->idle_turns;
}

/*
 * No settings make a cluster live on any network: a lease must last from one round to the answers of the next
 * with room to spare, and timeouts must spread wider than it takes to ask (Raft paper, section 5.6: broadcast
 * time << election timeout). Where that is not so, nothing is asked of the liveness phase.
 */
static bool is_viable(const struct raft_referee_healed *healed)
{
    const struct raft_settings *s = healed->settings;
    /* slow disks need not fit into a timeout */
    gavel_ns turn = 2 * healed->delay + ns_min(healed->write, 4 * NS_PER_MS);

    return healed->room >= 2 * turn && s->election_max - s->election_min >= 2 * turn;
}

/* On its own disk, and, if it leads, on those of the others. */
static gavel_ns usual_write(const struct raft *raft)
{
    gavel_ns usual = raft ? raft->writes.usual : 0;

    for (size_t i = 0; raft && raft->role == RAFT_LEADER && i < raft->peer_count; i++)
        usual = ns_max(usual, raft->peers[i].write_takes);
    return usual;
}

void raft_referee_healed(struct raft_referee *referee, gavel_ns at, const struct raft_referee_healed *healed)
{
    const struct raft_settings *settings = healed->settings;
    gavel_ns turn = 2 * healed->delay + healed->write;
    gavel_ns timeout = settings->election_min + 4 * (settings->election_max - settings->election_min);
    gavel_ns bound = healed->start_within;
    gavel_ns far_turn = 2 * healed->far_delay + healed->write;
    gavel_ns usual = 0; /* what a write took before: hand-overs under way are as patient as that */

    for (size_t i = 0; i < healed->count; i++)
        usual = ns_max(usual, usual_write(shadow_of(referee, healed->ids[i])->raft));
    bound += ns_stretch(settings->promise, settings->drift_ppm) + settings->stop_margin;
    bound += TRIES * (timeout + 2 * turn);
    bound += 2 * (settings->transfer_timeout + turn) + 3 * usual;
    bound += 8 * turn;
    for (uint64_t far = healed->far; far != 0; far &= far - 1)
        bound += RAFT_CLAIM_PATIENCE(settings) + timeout + 6 * far_turn;
    bound = ns_stretch(bound, settings->drift_ppm);
    referee->now = at;
    referee->is_healed = is_viable(healed);
    referee->settings = *settings;
    referee->has_shape = healed->heard != NULL;
    referee->prefers_in_vain =
        settings->prefers_priority && (healed->heard || healed->write > 20 * NS_PER_MS || healed->far != 0);
    referee->idle_from = NEVER;
    referee->hand_over =
        ns_stretch(settings->transfer_timeout + settings->election_max + 6 * turn + settings->stop_margin,
                   settings->drift_ppm);
    for (size_t i = 0; i < healed->count; i++) {
        raft_id id = shadow_of(referee, healed->ids[i])->id;

        referee->is_in_healed[id] = true;
        referee->is_far[id] = healed->far >> id & 1;
        referee->heard[id] = healed->heard ? healed->heard[i] : 0;
    }
    referee->bound = bound;
    referee->leader_by = at + bound;
    referee->peace_by =
        referee->leader_by + (settings->prefers_priority && healed->heard ? PEACE_OF_PREFERENCE : PEACE);
    referee->commit_at_heal = referee->commit;
}

/* A change of members that was asked for before may remove the leader when it is done, however late that
 * is. */
void referee_work_stops(struct raft_referee *referee, const struct shadow *shadow, enum raft_stop reason)
{
    if (referee->is_healed && reason == RAFT_STOP_TRANSFER && referee->now >= referee->leader_by &&
        ++referee->hand_overs[shadow->id] > HAND_OVERS_MAX)
        raft_referee_violate(referee, RAFT_INVARIANT_PEACE, "node %llu hands over again and again, in vain",
                             (ull)shadow->id);
    if (reason == RAFT_STOP_TRANSFER)
        referee->handed_over_at = referee->now;
    if (!referee->is_healed || reason != RAFT_STOP_REMOVED || !referee->is_in_healed[shadow->id])
        return;
    referee->leader_by = ns_max(referee->leader_by, referee->now + referee->bound);
    referee->peace_by = referee->leader_by + PEACE;
    referee->peace_leader = 0;
}

gavel_ns raft_referee_leader_by(const struct raft_referee *referee) { return referee->leader_by; }
gavel_ns raft_referee_peace_by(const struct raft_referee *referee) { return referee->peace_by; }

/* The healed node that works; NULL if none does. */
static const struct shadow *worker(const struct raft_referee *referee)
{
    for (raft_id id = 1; id < RAFT_REFEREE_IDS; id++)
        if (referee->is_in_healed[id] && referee->shadows[id].is_working)
            return &referee->shadows[id];
    return NULL;
}

static raft_term highest_term(const struct raft_referee *referee)
{
    raft_term highest = 0;

    for (raft_id id = 1; id < RAFT_REFEREE_IDS; id++) {
        const struct raft *raft = referee->shadows[id].raft;

        if (referee->is_in_healed[id] && raft && raft->state.term > highest)
            highest = raft->state.term;
    }
    return highest;
}

/* A leader may hand over to one of higher priority, if the settings want that. */
static bool is_preferred(const struct raft_referee *referee, const struct shadow *shadow)
{
    const struct raft_config *config = &shadow->raft->config;
    const struct raft_member *old = raft_config_find(config, referee->peace_leader);
    const struct raft_member *new = raft_config_find(config, shadow->id);

    return referee->settings.prefers_priority && new && (!old || new->priority > old->priority);
}

static bool is_handing_over(const struct raft_referee *referee)
{
    const struct raft *raft = referee->shadows[referee->peace_leader].raft;

    return referee->settings.prefers_priority && raft &&
           (raft->role != RAFT_LEADER || raft->transfer.phase != RAFT_TRANSFER_NONE);
}

/* A hand-over for priority to one that cannot take over costs terms, and maybe the leader its place; nothing
 * else excuses that. */
static bool is_in_vain(const struct raft_referee *referee, gavel_ns at)
{
    return referee->prefers_in_vain && referee->handed_over_at > 0 &&
           at < referee->handed_over_at + referee->bound;
}

/*
 * For how long nobody may work when a leader has handed over for priority. One that succeeds, or that the
 * leader takes back, is done within hand_over. After one in vain there is an election on top: the target had
 * the vote of the former leader, but no majority, and so the leader cannot go on.
 *
 *   hand-over  the work stops, and the target stands
 *   election   the timer of whoever voted for the target runs out, within election_max; it waits one
 *              heartbeat for the answers of all voters (decision 0035); votes and the no-op: 5 T
 *
 * The two overlap, so that twice hand_over has room for a witness that is elected first and hands over to the
 * same node in vain. Once hand_over is too little even without one: with a transfer_timeout that is shorter
 * than a heartbeat the election alone takes longer (seed 2009763). What is promised is L1, with its bound
 * counted from the hand-over. This is stricter.
 */
static gavel_ns idle_allowed(const struct raft_referee *referee, gavel_ns at)
{
    gavel_ns allowed = is_in_vain(referee, at) ? 2 * referee->hand_over : referee->hand_over;

    ASSERT(allowed < referee->bound);
    return allowed;
}

void raft_referee_probe(struct raft_referee *referee, gavel_ns at)
{
    const struct shadow *shadow;

    referee->now = at;
    if (!referee->is_healed)
        return;
    shadow = worker(referee);
    if (shadow)
        referee->idle_from = NEVER;
    else if (referee->idle_from == NEVER)
        referee->idle_from = at;
    if (referee_is_constrained(referee)) {
        referee->constrained_at = at;
        referee->peace_leader = 0;
    }
    if (at < referee->leader_by ||
        (referee->constrained_at > 0 && at < referee->constrained_at + referee->bound))
        return;
    if (!shadow) {
        if (referee->settings.prefers_priority && at - referee->idle_from <= idle_allowed(referee, at))
            return;
        raft_referee_violate(
            referee, RAFT_INVARIANT_LEADER,
            "of the healed majority nobody works %lld ms after the bound, by which somebody must",
            (long long)ms_from_ns(at - referee->leader_by));
        return;
    }
    if (referee->peace_leader == 0 || is_preferred(referee, shadow) || is_in_vain(referee, at)) {
        referee->peace_leader = shadow->id;
        referee->peace_term = highest_term(referee);
    }
    if (shadow->id != referee->peace_leader)
        raft_referee_violate(referee, RAFT_INVARIANT_PEACE,
                             "node %llu works instead of node %llu, although all is healed", (ull)shadow->id,
                             (ull)referee->peace_leader);
    if (highest_term(referee) > referee->peace_term && !is_handing_over(referee) && !is_in_vain(referee, at))
        raft_referee_violate(referee, RAFT_INVARIANT_PEACE,
                             "terms go on growing although all is healed: %llu after %llu",
                             (ull)highest_term(referee), (ull)referee->peace_term);
}

/* Members must have all that the leader has, and know that it is committed. */
static void check_converged(struct raft_referee *referee, const struct raft *leader, const struct raft *raft)
{
    if (!raft_config_find(&leader->config, raft->state.id) || referee->is_far[raft->state.id] ||
        !referee_are_linked(referee, leader->state.id, raft->state.id))
        return;
    if (raft_log_last(&raft->log) != raft_log_last(&leader->log) ||
        raft_log_last_term(&raft->log) != raft_log_last_term(&leader->log) ||
        raft->commit != leader->commit || raft->applied != leader->applied)
        raft_referee_violate(
            referee, RAFT_INVARIANT_CONVERGE,
            "node %llu ends with log %llu, commit %llu, applied %llu; its leader %llu with %llu, %llu, %llu",
            (ull)raft->state.id, (ull)raft_log_last(&raft->log), (ull)raft->commit, (ull)raft->applied,
            (ull)leader->state.id, (ull)raft_log_last(&leader->log), (ull)leader->commit,
            (ull)leader->applied);
}

void raft_referee_over(struct raft_referee *referee, gavel_ns at)
{
    const struct shadow *shadow;
    const struct raft *leader;

    referee->now = at;
    if (!referee->is_healed || at < referee->peace_by ||
        (referee->constrained_at > 0 && at < referee->constrained_at + referee->bound))
        return;
    shadow = worker(referee);
    leader = shadow ? shadow->raft : NULL;
    if (!leader) /* between two, by preference */
        return;
    /* Likewise soon after: the new leader has committed its no-op, and not all others have heard of it. */
    if (referee->settings.prefers_priority && referee->handed_over_at > 0 &&
        at - referee->handed_over_at <= referee->hand_over)
        return;
    if (referee->commit <= referee->commit_at_heal || raft_log_last(&leader->log) != referee->commit)
        raft_referee_violate(
            referee, RAFT_INVARIANT_CONVERGE,
            "proposals do not commit: the log of node %llu ends at %llu, %llu is committed, %llu was when all healed",
            (ull)leader->state.id, (ull)raft_log_last(&leader->log), (ull)referee->commit,
            (ull)referee->commit_at_heal);
    for (raft_id id = 1; id < RAFT_REFEREE_IDS; id++)
        if (referee->is_in_healed[id] && referee->shadows[id].raft)
            check_converged(referee, leader, referee->shadows[id].raft);
}
