/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The candidates of the group as last listed: who is active, and which rank
 * the policy gives us among them.
 */
#ifndef CORE_CANDIDATE_PEERS_H
#define CORE_CANDIDATE_PEERS_H

#include "base/record.h"

#define PEERS_MAX 1024 /* of a group; more are not ranked and not rung */

struct peer {
    uint64_t instance;
    uint64_t beats;
    gavel_ns changed_at; /* when its beats last grew, on our clock */
    gavel_ns joined_at;  /* when this instance was first listed */
    gavel_ns ready_at;   /* since when it is listed as eligible */
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

/* Who asks for its rank among the others, and by which rules. */
struct peers_ranking {
    enum gavel_policy policy;
    const char *id;
    int32_t priority;
    const char *first_choice; /* goes before all others, also if it is not listed yet; "" nobody */
    const char *excluded;     /* the leader that has just gone does not count; "" nobody */
    /*
     * Whoever observes is listed as not eligible, and will be: at a cold
     * start such a candidate counts, as one that stands when it has observed
     * for this long. 0: only who is eligible counts.
     */
    gavel_ns observation;
};

/* How many active candidates the policy puts before this one. */
size_t peers_rank(const struct peers *peers, const struct peers_ranking *ranking);

/* When the last of those has begun to stand, or will have; INT64_MIN if there is none. */
gavel_ns peers_stand_at(const struct peers *peers, const struct peers_ranking *ranking);

/* When the last of those was first listed; INT64_MIN if there is none. */
gavel_ns peers_joined_at(const struct peers *peers, const struct peers_ranking *ranking);

/*
 * The best of all active eligible candidates, if the policy would rather see
 * it lead than this one and its beats were seen to grow after that instant,
 * else NULL. One that has died counts as active for a while; the next best is
 * not taken before it no longer does.
 */
const struct peer *peers_better(const struct peers *peers, enum gavel_policy policy, const char *id,
                                int32_t priority, gavel_ns heard_after);

/* Whether the policy would rather see this peer lead than the candidate of that id and priority. */
bool peer_is_better(const struct peer *peer, enum gavel_policy policy, const char *id, int32_t priority);

#endif
