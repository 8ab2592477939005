/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The candidates of the group as last listed: who is active, and which rank
 * the policy gives us among them.
 */
#ifndef CANDIDATE_PEERS_H
#define CANDIDATE_PEERS_H

#include "base/record.h"

#define PEERS_MAX 1024 /* of a group; more are not ranked and not rung */

struct peer {
    uint64_t instance;
    uint64_t beats;
    gavel_ns changed_at; /* when its beats last grew, on our clock */
    int32_t priority;
    bool is_eligible;
    bool is_active;
    bool is_listed; /* in the newest listing; only during an update */
    int64_t since_wall_ms;
    int64_t last_wall_ms;
    char id[NAME_MAX_BYTES + 1];
    char address[ADDRESS_MAX_BYTES + 1];
};

struct peers {
    struct peer *items;
    size_t count;
    size_t capacity;
};

void peers_done(struct peers *peers);

/*
 * Takes in a listing. A registration is active if the store says it is young
 * enough or, without a clock, if we saw its beats grow within the time-out.
 * True if who is active has changed. Out of memory keeps what fits.
 */
bool peers_update(struct peers *peers, const struct registration *list, size_t count, gavel_ms timeout_ms,
                  gavel_ns now);

size_t peers_active(const struct peers *peers);

/* How many active eligible candidates there are besides the one of that id. */
size_t peers_others(const struct peers *peers, const char *id);

/* An active candidate of that id, or NULL. */
const struct peer *peers_find(const struct peers *peers, const char *id);

/*
 * How many active eligible candidates the policy puts before this one.
 * `first_choice` goes before all others, also one that is not listed yet; `excluded` (the leader that has
 * just gone) does not count. Both may be "".
 */
size_t peers_rank(const struct peers *peers, enum gavel_policy policy, const char *id, int32_t priority,
                  const char *first_choice, const char *excluded);

/*
 * The active eligible candidate that the policy would rather see lead than
 * this one, or NULL. Only those count whose beats were seen to grow after that
 * instant: one that died counts as active for a while.
 */
const struct peer *peers_better(const struct peers *peers, enum gavel_policy policy, const char *id,
                                int32_t priority, gavel_ns heard_after);

#endif
