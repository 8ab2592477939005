/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What callers can ask of a candidate without waiting: the lock-free answers
 * from the published words, the others from the machine under its lock.
 */
#include "lib/view.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

bool gavel_is_leader(const struct gavel_candidate *candidate)
{
    return published_holds(candidate->published);
}

uint64_t gavel_epoch(const struct gavel_candidate *candidate)
{
    return published_holds(candidate->published) ? atomic_load(&candidate->published->epoch) : 0;
}

/* Reading changes nothing of a candidate but its lock. */
static struct gavel_candidate *lock(const struct gavel_candidate *candidate)
{
    struct gavel_candidate *locked = (struct gavel_candidate *)(uintptr_t)candidate;

    precedence_lock(&locked->lock);
    return locked;
}

static void unlock(struct gavel_candidate *locked) { precedence_unlock(&locked->lock); }

/* That of the handle, which the loop writes without a lock; zeroes in a store without sessions. */
static struct store_session session_of(const struct gavel_candidate *candidate)
{
    const struct published_session *published = candidate->gavel->session.published;

    return published ? published_session(published) : (struct store_session){0};
}

enum gavel_answer gavel_answer(const struct gavel_candidate *candidate, int64_t *ret_until_ns)
{
    struct gavel_candidate *locked;
    struct store_session session;
    enum candidate_answer answer;
    gavel_ns until = NEVER;

    /* The published words decide: this must never say yes where gavel_is_leader() says no. */
    if (!published_holds(candidate->published))
        return GAVEL_NOT_LEADER;
    locked = lock(candidate);
    session = session_of(locked);
    answer = locked->is_single ? CANDIDATE_LEADER
                               : candidate_answer_in(&locked->machine, &session, clock_now(), &until);
    unlock(locked);
    if (answer == CANDIDATE_NOT_LEADER)
        return GAVEL_NOT_LEADER;
    if (ret_until_ns)
        *ret_until_ns = until;
    return answer == CANDIDATE_LEADER ? GAVEL_LEADER : GAVEL_UNKNOWN_UNTIL;
}

bool gavel_epoch_valid(struct gavel_candidate *candidate, uint64_t epoch, int64_t created_at_ns)
{
    struct gavel_candidate *locked = lock(candidate);
    gavel_ns now = clock_now();
    bool is_valid = fence_allows(&locked->machine.fence, epoch, created_at_ns != 0 ? created_at_ns : now, now,
                                 locked->machine.settings.epoch_grace_ms);

    unlock(locked);
    return is_valid;
}

static void fill_self(const struct gavel_candidate *locked, gavel_ns now,
                      struct gavel_leader_info *ret_leader)
{
    *ret_leader = (struct gavel_leader_info){.is_self = true};
    (void)snprintf(ret_leader->id, sizeof ret_leader->id, "%s", locked->id);
    (void)snprintf(ret_leader->address, sizeof ret_leader->address, "%s", locked->machine.address);
    ret_leader->epoch = locked->is_single ? 0 : locked->machine.epoch;
    ret_leader->since_wall_ms = locked->is_single
                                    ? locked->metrics.totals.start_wall_ms
                                    : clock_wall_ms() - ms_from_ns(now - locked->machine.mandate_at);
}

/* Whether the holder that was seen last still leads, as far as is known. */
static bool is_led(const struct candidate *machine, const struct store_session *session, gavel_ns now)
{
    gavel_ns at;

    if (!machine->has_sessions)
        return observation_vacancy(&machine->seen, &machine->settings, machine->clock, machine->id,
                                   machine->nonce, now, &at) == VACANCY_NONE;
    /* What is ours and does not make us lead is given up. */
    return machine->seen.record.held && !machine->seen.is_holder_dead && !machine->is_ours &&
           machine->seen_session == session->number && now < session->deadline;
}

bool view_leader_locked(const struct gavel_candidate *locked, struct gavel_leader_info *ret_leader)
{
    const struct candidate *machine = &locked->machine;
    const struct record *record = &machine->seen.record;
    struct store_session session = session_of(locked);
    gavel_ns now = clock_now();

    if (locked->has_ended)
        return false;
    if (locked->is_single || candidate_is_leader_in(machine, &session, now)) {
        fill_self(locked, now, ret_leader);
        return true;
    }
    if (machine->state != CANDIDATE_OBSERVING && machine->state != CANDIDATE_STANDBY)
        return false;
    /* After a mandate of our own, what we saw before it is history. */
    if (!machine->seen.is_known || !machine->seen.is_found || record->epoch < machine->fence.newest)
        return false;
    if (!is_led(machine, &session, now))
        return false;
    *ret_leader = (struct gavel_leader_info){.epoch = record->epoch, .since_wall_ms = record->since_wall_ms};
    (void)snprintf(ret_leader->id, sizeof ret_leader->id, "%s", record->holder);
    (void)snprintf(ret_leader->address, sizeof ret_leader->address, "%s", record->address);
    return true;
}

enum gavel_status gavel_leader(struct gavel_candidate *candidate, struct gavel_leader_info *ret_leader)
{
    struct gavel_candidate *locked = lock(candidate);
    bool has_leader = view_leader_locked(locked, ret_leader);

    unlock(locked);
    return has_leader ? GAVEL_OK : GAVEL_ERR_NO_LEADER;
}

static void fill_info(const struct gavel_candidate *locked, const struct peer *peer, const char *leader,
                      struct gavel_candidate_info *ret_info)
{
    *ret_info = (struct gavel_candidate_info){
        .since_wall_ms = peer->since_wall_ms,
        .last_heartbeat_wall_ms = peer->last_wall_ms,
        .priority = peer->priority,
        .eligible = peer->is_eligible,
        .is_leader = strcmp(peer->id, leader) == 0,
        .is_self = peer->instance == locked->machine.instance,
    };
    (void)snprintf(ret_info->id, sizeof ret_info->id, "%s", peer->id);
    (void)snprintf(ret_info->address, sizeof ret_info->address, "%s", peer->address);
}

/* Puts one more in its place among those that are there, sorted by id, and drops the last if it does not
 * fit. */
static void insert(struct gavel_candidate_info *infos, size_t capacity, size_t count,
                   const struct gavel_candidate_info *info)
{
    size_t filled = count < capacity ? count : capacity;
    size_t at = filled;

    while (at > 0 && strcmp(infos[at - 1].id, info->id) > 0)
        at--;
    if (at >= capacity)
        return;
    if (filled == capacity)
        filled--;
    memmove(&infos[at + 1], &infos[at], (filled - at) * sizeof *infos);
    infos[at] = *info;
}

static void fill_single(const struct gavel_candidate *locked, struct gavel_candidate_info *ret_info)
{
    *ret_info = (struct gavel_candidate_info){
        .since_wall_ms = locked->metrics.totals.start_wall_ms,
        .last_heartbeat_wall_ms = clock_wall_ms(),
        .priority = locked->machine.priority,
        .eligible = locked->machine.is_eligible,
        .is_leader = !locked->has_ended,
        .is_self = true,
    };
    (void)snprintf(ret_info->id, sizeof ret_info->id, "%s", locked->id);
}

enum gavel_status gavel_candidates(struct gavel_candidate *candidate, struct gavel_candidate_info *infos,
                                   size_t capacity, size_t *ret_count)
{
    struct gavel_candidate *locked = lock(candidate);
    const struct peers *peers = &locked->machine.peers;
    struct gavel_leader_info leader = {0};
    struct gavel_candidate_info info;
    size_t count = 0;

    (void)view_leader_locked(locked, &leader); /* without one, nobody's id is "" */
    for (size_t i = 0; i < peers->count; i++) {
        if (!peers->items[i].is_active)
            continue;
        fill_info(locked, &peers->items[i], leader.id, &info);
        insert(infos, capacity, count++, &info);
    }
    if (locked->is_single) {
        fill_single(locked, &info);
        insert(infos, capacity, count++, &info);
    }
    unlock(locked);
    *ret_count = count;
    return GAVEL_OK;
}

void gavel_metrics(struct gavel_candidate *candidate, struct gavel_metrics *ret_metrics)
{
    struct gavel_candidate *locked = lock(candidate);
    struct metrics_copy copy;

    metrics_copy(&locked->metrics, &copy);
    unlock(locked);
    metrics_fill(&copy, ret_metrics);
}

void gavel_breaker(struct gavel_candidate *candidate, struct gavel_breaker *ret_breaker)
{
    static const enum gavel_breaker_state states[] = {
        [BREAKER_CLOSED] = GAVEL_BREAKER_CLOSED,
        [BREAKER_OPEN] = GAVEL_BREAKER_OPEN,
        [BREAKER_HALF_OPEN] = GAVEL_BREAKER_HALF_OPEN,
    };
    struct gavel_candidate *locked = lock(candidate);

    ret_breaker->state = states[locked->machine.breaker.state];
    ret_breaker->failures = locked->machine.breaker.failures;
    ret_breaker->retry_at_ns = locked->machine.breaker.retry_at;
    unlock(locked);
}
