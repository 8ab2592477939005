/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One picture of a cluster, made from what its nodes say. They may disagree,
 * for a moment or for good. The node that holds a lease in the highest
 * generation and term is believed; without one, a node that follows a leader in
 * the highest.
 *
 * Combining and judging use the answers alone; only cluster_look() and the
 * functions below it ask nodes.
 */
#ifndef CLI_CLUSTER_VIEW_H
#define CLI_CLUSTER_VIEW_H

#include "cli/cluster/client.h"

#include <stdint.h>

#define VIEW_NAME_MAX 64
#define VIEW_ADDRESS_MAX 256
#define VIEW_NODES_MAX CLUSTER_URLS_MAX
#define VIEW_TROUBLES_MAX 64

struct cluster_node {
    char name[VIEW_NAME_MAX];       /* "" if it is unknown which node should be there */
    char address[VIEW_ADDRESS_MAX]; /* of its API, as the cluster knows it; else where it was asked */
    char url[CLUSTER_URL_MAX];      /* where it was asked; "" if it was not */
    char kind[16];                  /* voter, witness, learner; "": not a member */
    bool has_answered;
    char reason[256]; /* why it has not */

    /* what it says about itself */
    char role[16];
    char leader[VIEW_NAME_MAX]; /* the one it follows; "": none */
    uint64_t generation;
    uint64_t term;
    uint64_t lease_epoch;
    uint64_t incarnation;
    uint64_t commit;
    uint64_t applied;
    bool has_log_end;   /* it reports the end of its log … */
    uint64_t last;      /* … the number of its last entry … */
    uint64_t last_term; /* … and the term of that entry */
    char digest[20];    /* of the table, as of `applied` */
    int64_t lease_ms;   /* what is left; -1: none, or not reported */
    int64_t pid;
    int64_t guard_pid;
    bool is_leader;
    bool has_lease;
    bool is_stale;
    bool is_disk_full;
    int64_t disk_hangs_ms;  /* how long its disk has not answered; -1: it answers */
    bool commits_hang;      /* nothing is committed, as it sees or was told */
    int64_t uncommitted_ms; /* of a leader: the age of its oldest entry that is not committed; -1 none */
    bool is_too_far;        /* it led repeatedly, but no majority answered in time for a lease */
    int64_t lease_trip_ms;  /* the longest round trip that its lease settings allow; -1: not reported */
    bool waits_for_operator;
    bool is_handing_over;

    /* what the believed node says about it */
    bool is_healthy;
    int64_t contact_ms; /* since it was last heard from; -1: unknown */
    char trouble[256];
    int64_t certificate_ends_s; /* of its API; 0: it has none */
    json_t *status;             /* the answer; borrowed from the call */
};

enum trouble_kind { TROUBLE_SPLIT_BRAIN, TROUBLE_NO_LEADER, TROUBLE_ALERT, TROUBLE_NOTE };

struct cluster_trouble {
    enum trouble_kind kind;
    char text[400];
};

struct cluster_view {
    char cluster[VIEW_NAME_MAX]; /* "" if nobody answered */
    uint64_t generation;
    uint64_t term;
    int believed;    /* position of the node that is believed; -1: nobody answered */
    int leader;      /* position of the leader; -1: none */
    bool is_hearsay; /* the leader itself has not confirmed it */
    bool is_changing;
    size_t members;
    size_t healthy; /* members that are up, as far as can be seen */
    size_t node_count;
    struct cluster_node nodes[VIEW_NODES_MAX]; /* sorted by name */
    size_t trouble_count;
    struct cluster_trouble troubles[VIEW_TROUBLES_MAX]; /* worst first */
    struct cluster_call calls[VIEW_NODES_MAX];          /* with their answers */
    size_t call_count;
    int64_t wall_ms; /* when it was made; certificates are compared with it */
};

/* Whether to show it in green: it answers, follows or leads, and the others hear it. */
bool cluster_node_is_well(const struct cluster_node *node);

/* The state of a node in a word or two: ok, silent, full, disk hangs, stale, cut off. */
const char *cluster_node_health(const struct cluster_node *node);

/* NULL if there is none. */
const struct cluster_node *cluster_view_find(const struct cluster_view *view, const char *name);
const struct cluster_node *cluster_view_leader(const struct cluster_view *view);

/*
 * Makes the view from view->calls, the answers to GET /status, which the view
 * keeps. Lists what is wrong in troubles, except for split brain that takes a
 * second look.
 */
void cluster_view_make(struct cluster_view *view);
void cluster_view_done(struct cluster_view *view);

/*
 * Finds two nodes that both have the right to work, or that lead in the same
 * term. One look sees leases one after the other, so two of them may be a
 * hand-over in between. If both are unchanged in a look that began after the
 * first had ended, they overlapped. `before` is NULL in the first look: then
 * only what needs no second look is reported. False if there are none.
 */
bool cluster_view_split(const struct cluster_view *view, const struct cluster_view *before,
                        const struct cluster_node **ret_one, const struct cluster_node **ret_other);

/* Whether a second look is needed to tell. */
bool cluster_view_is_suspect(const struct cluster_view *view);

/* Lists of names, with "…" where there is no room for more. */
struct cluster_constraint {
    char hubs[100];    /* nodes that reach a majority but cannot be elected */
    char holders[100]; /* nodes with newer logs, which must not vote for those */
};

/*
 * Whether the election is constrained: some node reaches a majority of the
 * voters, but because of the logs none can be elected. Useful while there is no
 * leader. What is unknown counts as possible.
 */
bool cluster_view_constrained(const struct cluster_view *view, struct cluster_constraint *ret_constraint);

/*
 * Whether no node works because none reaches a majority within the round trip
 * that a lease allows. Writes the measured round trips, such as "n1–n2 95 ms,
 * n1–n3 102 ms", and the longest that would do.
 */
bool cluster_view_too_far(const struct cluster_view *view, char *buffer, size_t size, int64_t *ret_limit_ms);

/*
 * Asks the nodes of the client, then the members that they name and that were
 * not asked; asks again if the answers look like split brain.
 * ERR_STORE_UNAVAILABLE, ERR_DENIED and so on if none answered; *error says why
 * for each. The caller calls cluster_view_done(), also after a failure.
 */
GAVEL_CHECKED enum gavel_status cluster_look(struct cluster_client *client, struct cluster_view *view,
                                             struct gavel_error *error);

/*
 * The same, but only until some node says that it has a lease and the wanted
 * node ("": none) has answered, so that a node that hangs costs nothing. What
 * the view says about the others is incomplete.
 */
GAVEL_CHECKED enum gavel_status cluster_find(struct cluster_client *client, const char *wanted,
                                             struct cluster_view *view, struct gavel_error *error);

/* The same with a limit per node that is shorter than the client's. */
GAVEL_CHECKED enum gavel_status cluster_find_within(struct cluster_client *client, const char *wanted,
                                                    gavel_ms limit_ms, struct cluster_view *view,
                                                    struct gavel_error *error);

/*
 * Looks until there is a leader, or the time is over. A leader that does not
 * confirm it itself may be dead, and the others about to notice: they are
 * believed only after notice_ms. First looks are short (CLUSTER_FIRST_MS), so
 * that a node that hangs costs little; later ones use the whole limit. Status
 * and view are those of the last look.
 */
#define CLUSTER_FIRST_MS 100
GAVEL_CHECKED enum gavel_status cluster_await(struct cluster_client *client, gavel_ns until,
                                              gavel_ms notice_ms, struct cluster_view *view,
                                              struct gavel_error *error);

#endif
