/* SPDX-License-Identifier: Apache-2.0 */

#include "core/candidate/peers.h"

#include "base/planted.h"

#include <stdlib.h>
#include <string.h>

void peers_done(struct peers *peers)
{
    if (!peers)
        return;
    free(peers->items);
    memset(peers, 0, sizeof *peers);
}

static struct peer *find(const struct peers *peers, const char *id)
{
    for (size_t i = 0; i < peers->count; i++)
        if (strcmp(peers->items[i].id, id) == 0)
            return &peers->items[i];
    return NULL;
}

/* NULL if there is no room and none can be had. */
static struct peer *append(struct peers *peers)
{
    if (peers->count == PEERS_MAX)
        return NULL;
    if (peers->count == peers->capacity) {
        size_t capacity = peers->capacity ? peers->capacity * 2 : 1; /* many are alone */
        struct peer *items = realloc(peers->items, capacity * sizeof *items);

        if (!items)
            return NULL;
        peers->items = items;
        peers->capacity = capacity;
    }
    memset(&peers->items[peers->count], 0, sizeof *peers->items);
    return &peers->items[peers->count++];
}

/* Takes one registration in; true if it changed who is active, or how it ranks. */
static bool take(struct peers *peers, const struct registration *r, gavel_ms timeout_ms, gavel_ns now)
{
    struct peer *peer = find(peers, r->id);
    bool was_active = peer && peer->is_active;
    bool is_changed;

    if (!peer) {
        peer = append(peers);
        if (!peer)
            return false;
        memcpy(peer->id, r->id, sizeof peer->id);
        peer->changed_at = now;
    }
    if (peer->instance != r->instance) /* 0, which nobody has, if it is new */
        peer->joined_at = peer->ready_at = now;
    else if (r->eligible && !peer->is_eligible)
        peer->ready_at = now;
    is_changed =
        peer->instance != r->instance || peer->is_eligible != r->eligible || peer->priority != r->priority;
    if (peer->instance != r->instance || peer->beats != r->beats)
        peer->changed_at = now;
    peer->instance = r->instance;
    peer->beats = r->beats;
    peer->priority = r->priority;
    peer->is_eligible = r->eligible;
    peer->since_wall_ms = r->since_wall_ms;
    peer->last_wall_ms = r->last_wall_ms;
    memcpy(peer->address, r->address, sizeof peer->address);
    peer->is_active =
        r->age_ms >= 0 ? r->age_ms <= timeout_ms : now - peer->changed_at <= ns_from_ms(timeout_ms);
    peer->is_listed = true;
    return is_changed || was_active != peer->is_active;
}

bool peers_update(struct peers *peers, const struct registration *list, size_t count, gavel_ms timeout_ms,
                  gavel_ns now)
{
    bool is_changed = false;
    size_t kept = 0;

    for (size_t i = 0; i < peers->count; i++)
        peers->items[i].is_listed = false;
    for (size_t i = 0; i < count; i++)
        is_changed |= take(peers, &list[i], timeout_ms, now);
    for (size_t i = 0; i < peers->count; i++) {
        if (peers->items[i].is_listed) {
            if (kept != i)
                peers->items[kept] = peers->items[i];
            kept++;
        } else {
            is_changed |= peers->items[i].is_active;
        }
    }
    peers->count = kept;
    return is_changed;
}

size_t peers_active(const struct peers *peers)
{
    size_t active = 0;

    for (size_t i = 0; i < peers->count; i++)
        active += peers->items[i].is_active;
    return active;
}

const struct peer *peers_find(const struct peers *peers, const char *id)
{
    const struct peer *peer = find(peers, id);

    return peer && peer->is_active ? peer : NULL;
}

bool peer_is_better(const struct peer *peer, enum gavel_policy policy, const char *id, int32_t priority)
{
    switch (policy) {
    case GAVEL_POLICY_FIRST:
    case GAVEL_POLICY_BALANCED: /* the store knows who leads how many */
        return false;
    case GAVEL_POLICY_LEXICOGRAPHIC:
        return strcmp(peer->id, id) < 0;
    case GAVEL_POLICY_PRIORITY:
        return peer->priority != priority ? peer->priority > priority : strcmp(peer->id, id) < 0;
    }
    return false;
}

static bool counts(const struct peer *peer, const char *id)
{
    return peer->is_active && peer->is_eligible && strcmp(peer->id, id) != 0;
}

size_t peers_others(const struct peers *peers, const char *id)
{
    size_t others = 0;

    for (size_t i = 0; i < peers->count; i++)
        others += counts(&peers->items[i], id);
    return others;
}

/* Whether the policy, or a wish, puts this peer before who asks. */
static bool precedes(const struct peer *peer, const struct peers_ranking *ranking)
{
    bool may_stand = peer->is_eligible || ranking->observation > 0;

    if (PLANTED(OBSERVER_IGNORED))
        may_stand = peer->is_eligible;
    if (!peer->is_active || !may_stand || strcmp(peer->id, ranking->id) == 0 ||
        strcmp(peer->id, ranking->excluded) == 0)
        return false;
    return strcmp(peer->id, ranking->first_choice) == 0 ||
           peer_is_better(peer, ranking->policy, ranking->id, ranking->priority);
}

size_t peers_rank(const struct peers *peers, const struct peers_ranking *ranking)
{
    /* One that we have not heard of may have joined since the last listing; one that is listed is judged
     * below. */
    size_t rank = ranking->first_choice[0] != '\0' && !find(peers, ranking->first_choice);

    if (strcmp(ranking->first_choice, ranking->id) == 0)
        return 0;
    for (size_t i = 0; i < peers->count; i++)
        rank += precedes(&peers->items[i], ranking);
    return rank;
}

gavel_ns peers_stand_at(const struct peers *peers, const struct peers_ranking *ranking)
{
    gavel_ns at = INT64_MIN;

    for (size_t i = 0; i < peers->count; i++) {
        const struct peer *peer = &peers->items[i];

        if (precedes(peer, ranking))
            at = ns_max(at, peer->is_eligible ? peer->ready_at : peer->joined_at + ranking->observation);
    }
    return at;
}

gavel_ns peers_joined_at(const struct peers *peers, const struct peers_ranking *ranking)
{
    gavel_ns at = INT64_MIN;

    for (size_t i = 0; i < peers->count; i++)
        if (precedes(&peers->items[i], ranking))
            at = ns_max(at, peers->items[i].joined_at);
    return at;
}

const struct peer *peers_better(const struct peers *peers, enum gavel_policy policy, const char *id,
                                int32_t priority, gavel_ns heard_after)
{
    const struct peer *best = NULL;

    for (size_t i = 0; i < peers->count; i++) {
        const struct peer *peer = &peers->items[i];

        if (!counts(peer, id) || !peer_is_better(peer, policy, id, priority))
            continue;
        if (PLANTED(PREEMPT_FIRST_HEARD) && peer->changed_at <= heard_after)
            continue;
        if (!best || peer_is_better(peer, policy, best->id, best->priority))
            best = peer;
    }
    return best && best->changed_at > heard_after ? best : NULL;
}
