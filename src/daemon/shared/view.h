/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The state of the consensus thread for the rest of the node: a copy that the
 * consensus thread publishes after each change, and that the API reads without
 * ever making the consensus thread wait.
 *
 * Instants are of CLOCK_BOOTTIME. Readers compare them with the clock when they
 * show them, so that an old copy (the consensus thread was stopped) does not claim
 * a lease that has lapsed.
 */
#ifndef DAEMON_SHARED_VIEW_H
#define DAEMON_SHARED_VIEW_H

#include "core/raft/raft.h"
#include "wire/peer.h"

#include <pthread.h>
#include <sys/types.h>

struct view_member {
    raft_id id;
    char name[PEER_NAME_MAX + 1]; /* the id in hexadecimal if unknown */
    char address[PEER_ADDRESS_MAX + 1];
    char api[PEER_ADDRESS_MAX + 1];
    uint8_t priority;
    bool is_voter;
    bool was_voter; /* leaves with the change under way */
    bool is_witness;
    bool is_refused;    /* its data directory has lost state */
    uint64_t directory; /* that it is bound to; 0 none yet */
    bool is_self;

    /* of others */
    bool is_connected; /* we can send to it, and it to us */
    bool is_breaker_open;
    gavel_ns heard_at;    /* the last frame from it; 0 never */
    raft_index match;     /* what it is known to have; of a leader only */
    gavel_ns round_trip;  /* of rounds, when this node last led; 0 unknown */
    uint64_t incarnation; /* as it last said; 0 unknown */
    char trouble[PEER_TEXT_MAX + 1];
    struct peer_status status; /* as it last said; node 0 if never */
};

/* Upper bounds of the buckets of gavel_election_duration, in milliseconds; one more bucket has the rest. */
#define VIEW_DURATION_BOUNDS                                                                                 \
    {                                                                                                        \
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000                                                 \
    }
#define VIEW_DURATION_BUCKETS 13

struct view_counters {
    uint64_t elections;     /* that ended, as this node saw them: own candidacies and others' wins */
    uint64_t elections_won; /* that ended with a leader */
    uint64_t candidacies;   /* our own */
    uint64_t failovers;     /* changes of the leader without a transfer */
    uint64_t transfers;
    uint64_t transfers_failed;
    uint64_t split_brains;
    uint64_t obituaries;
    uint64_t deaths;          /* operations that this node asked for because a process had died */
    uint64_t client_requests; /* that this node's front end took, while it led */
    uint64_t client_repeated; /* of those, answered from the session's newest outcome */
    uint64_t client_refused;
    uint64_t keep_alives;
    uint64_t sessions_expired;
    uint64_t mandates_lapsed;
    uint64_t frontend_stalls;
    uint64_t forwardings; /* that this node's forwarder took from its clients */
    uint64_t forwardings_again;
    uint64_t forwardings_timed_out;
    uint64_t refused_messages;
    uint64_t dropped_votes;   /* by the rate limit */
    uint64_t late_heartbeats; /* of ours, sent more than half an interval late */
    uint64_t disk_writes;
    uint64_t disk_fulls;
    uint64_t disk_hangs;
    uint64_t duration_buckets[VIEW_DURATION_BUCKETS];
    gavel_ns duration_sum;
};

struct view {
    gavel_ns at; /* when it was made */
    char cluster_name[PEER_NAME_MAX + 1];
    char name[PEER_NAME_MAX + 1];
    uint64_t cluster;
    uint64_t generation;
    raft_id id;
    uint64_t incarnation;
    pid_t pid;
    pid_t guard_pid; /* 0: runs without one */
    int64_t started_wall_ms;
    gavel_ns started_at;

    enum raft_role role;
    raft_term term;
    raft_id vote;
    raft_id leader;    /* 0: none is known */
    gavel_ns heard_at; /* when that leader was heard; on a leader, when a majority last answered */
    bool is_leader;    /* in Raft's sense */
    bool is_claimed;   /* and has a mandate to work … */
    gavel_ns deadline; /* … until then; compare with the clock. NEVER: the only voter */
    uint64_t lease_epoch;
    raft_term claim_term;
    bool is_caretaker;
    raft_index last;
    raft_term last_term; /* of that entry */
    raft_index commit;
    raft_index applied;
    raft_index snapshot;
    uint64_t revision; /* of the table */
    uint64_t digest;   /* of the table at `applied` */
    bool is_handing_over;
    bool is_changing;
    bool is_disk_full;
    bool is_disk_hung;          /* no write has finished for a second */
    gavel_ns write_since;       /* when the oldest unfinished write began; 0 if there is none */
    bool is_commit_hung;        /* of a leader: it has committed nothing for a second */
    gavel_ns uncommitted_since; /* of a leader: since when an entry is uncommitted; 0 if there is none */
    bool is_in_vain; /* it led several times in a row and never had a lease: too far from a majority */
    gavel_ns round_trip_limit; /* a longer round trip allows no lease */
    bool waits_for_operator;   /* no leader, and auto_failover is off */
    bool is_stopping;
    gavel_ns heartbeat; /* settings that readers need */
    gavel_ns election_max;

    struct view_counters counters;
    size_t member_count;
    struct view_member members[RAFT_MEMBERS_MAX];
};

/* Holds the newest copy. */
struct view_box {
    pthread_mutex_t mutex; /* held for a memcpy only, and with priority inheritance */
    struct view view;
};

GAVEL_CHECKED enum gavel_status view_box_init(struct view_box *box);
void view_box_done(struct view_box *box);
void view_publish(struct view_box *box, const struct view *view);
void view_read(struct view_box *box, struct view *ret_view);

/* The leader, without the members: all that `GET /leader` needs. */
struct view_leader {
    raft_id id; /* 0: none */
    raft_term term;
    bool is_self;
    gavel_ns until; /* it counts as the leader before this instant only */
    char name[PEER_NAME_MAX + 1];
    char api[PEER_ADDRESS_MAX + 1];
    char address[PEER_ADDRESS_MAX + 1];
};

/*
 * The leader as this node sees it: itself while its lease holds by the clock, another if it was heard within
 * election_max. Read the clock afterwards and call view_leader_holds(): a process may sleep between any two
 * lines.
 */
void view_leader_read(struct view_box *box, struct view_leader *ret_leader);
static inline bool view_leader_holds(const struct view_leader *leader, gavel_ns now)
{
    return leader->id != 0 && now < leader->until;
}

/* The known API addresses of the members. Returns how many. */
size_t view_apis_read(struct view_box *box, char ret_apis[RAFT_MEMBERS_MAX][PEER_ADDRESS_MAX + 1]);

/* Whether what this node says may be out of date: it leads without a lease, or follows nobody. */
bool view_is_stale(const struct view *view, gavel_ns now);

/* How long the cluster has committed nothing, as we know as leader or as our leader has told us. 0: it
 * commits, or there is nothing to commit. */
gavel_ns view_commits_hang_for(const struct view *view, gavel_ns now);

/* Whether a member answers: ourselves, or heard within ten heartbeats. */
bool view_is_healthy(const struct view *view, const struct view_member *member, gavel_ns now);

/* NULL if it is not among the members. */
const struct view_member *view_find(const struct view *view, raft_id id);

#endif
