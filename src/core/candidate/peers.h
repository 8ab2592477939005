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
 * True if the set of active candidates has changed. If out of memory, keeps what fits.
 */
bool peers_update(struct peers *peers, const struct registration *list, size_t count, gavel_ms timeout_ms,
                  gavel_ns now);

size_t peers_active(const struct peers *peers);

/* The number of active eligible candidates besides the one of that id. */
size_t peers_others(const struct peers *peers, const char *id);

/* The active candidate of that id, or NULL. */
const struct peer *peers_find(const struct peers *peers, const char *id);

/* The candidate that asks for its rank, and the rules. */
struct peers_ranking {
    enum gavel_policy policy;
    const char *id;
    int32_t priority;
    const char *first_choice; /* goes before all others, even if it is not listed yet; "" nobody */
    const char *excluded;     /* the leader that has just gone does not count; "" nobody */
    /*
     * An observing candidate is listed as not eligible but will become so. At
     * a cold start it counts, as one that stands once it has observed for this
     * long. 0: only eligible candidates count.
     */
    gavel_ns observation;
};

/* How many active candidates the policy puts before this one. */
size_t peers_rank(const struct peers *peers, const struct peers_ranking *ranking);

/* When the last of those began to stand, or will begin; INT64_MIN if there is none. */
gavel_ns peers_stand_at(const struct peers *peers, const struct peers_ranking *ranking);

/* When the last of those was first listed; INT64_MIN if there is none. */
gavel_ns peers_joined_at(const struct peers *peers, const struct peers_ranking *ranking);

/*
 * The best of all active eligible candidates, if the policy prefers it to this
 * one and its beats were seen to grow after that instant; else NULL. A dead
 * candidate counts as active for a while; the next best is not chosen before it
 * no longer does.
 */
const struct peer *peers_better(const struct peers *peers, enum gavel_policy policy, const char *id,
                                int32_t priority, gavel_ns heard_after);

/* Whether the policy prefers this peer to the candidate of that id and priority. */
bool peer_is_better(const struct peer *peer, enum gavel_policy policy, const char *id, int32_t priority);

#endif
