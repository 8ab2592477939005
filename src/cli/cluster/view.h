/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One picture of a cluster out of what its nodes say. They may disagree, for
 * a moment or for good: whoever holds a lease in the highest generation and
 * term is believed, and after it whoever follows somebody in the highest.
 *
 * The putting together and the judgement are functions of the answers alone;
 * cluster_look() asks.
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
    char name[VIEW_NAME_MAX];       /* "" if it is not known who should be there */
    char address[VIEW_ADDRESS_MAX]; /* of its API, as the cluster knows it; else the one it was asked at */
    char url[CLUSTER_URL_MAX];      /* where it was asked; "" if it was not */
    char kind[16];                  /* voter, witness, learner; "" no member */
    bool has_answered;
    char reason[256]; /* why it has not */

    /* what it says of itself */
    char role[16];
    char leader[VIEW_NAME_MAX]; /* whom it follows; "" nobody */
    uint64_t generation;
    uint64_t term;
    uint64_t lease_epoch;
    uint64_t incarnation;
    uint64_t commit;
    uint64_t applied;
    bool has_log_end;   /* it tells where its log ends … */
    uint64_t last;      /* … the number of its last entry … */
    uint64_t last_term; /* … and the term of that */
    char digest[20];    /* of the table, as of `applied` */
    int64_t lease_ms;   /* what is left; -1 none or not told */
    int64_t pid;
    int64_t guard_pid;
    bool is_leader;
    bool has_lease;
    bool is_stale;
    bool is_disk_full;
    int64_t disk_hangs_ms;  /* for so long its disk has not answered; -1: it does */
    bool commits_hang;      /* nothing is committed, as it knows or was told */
    int64_t uncommitted_ms; /* of a leader: the age of its oldest entry that is not committed; -1 none */
    bool is_too_far;        /* it led again and again, and no majority answered in time for a lease */
    int64_t lease_trip_ms;  /* the longest round trip that a lease bears, by its settings; -1 not told */
    bool waits_for_operator;
    bool is_handing_over;

    /* what the node that is believed says of it */
    bool is_healthy;
    int64_t contact_ms; /* since it was heard of; -1 not known */
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
    bool is_hearsay; /* the leader itself has not said so */
    bool is_changing;
    size_t members;
    size_t healthy; /* members that are up, as far as can be seen */
    size_t node_count;
    struct cluster_node nodes[VIEW_NODES_MAX]; /* in order of name */
    size_t trouble_count;
    struct cluster_trouble troubles[VIEW_TROUBLES_MAX]; /* the worst first */
    struct cluster_call calls[VIEW_NODES_MAX];          /* as they were answered */
    size_t call_count;
    int64_t wall_ms; /* when it was made; certificates are compared with it */
};

/* Whether it is worth showing in green: it answers, follows or leads, and the others hear it. */
bool cluster_node_is_well(const struct cluster_node *node);

/* The state of a node in a word or two: ok, silent, full, disk hangs, stale, cut off. */
const char *cluster_node_health(const struct cluster_node *node);

/* NULL if there is none. */
const struct cluster_node *cluster_view_find(const struct cluster_view *view, const char *name);
const struct cluster_node *cluster_view_leader(const struct cluster_view *view);

/*
 * Puts together view->calls, answers of GET /status, which the view keeps.
 * What is wrong is in troubles, but for split brain that takes a second look.
 */
void cluster_view_make(struct cluster_view *view);
void cluster_view_done(struct cluster_view *view);

/*
 * Two nodes that both have the right to work, or lead in one term. Leases are
 * seen one after the other, so two of them in one look may be a hand-over in
 * between; if both are still the same in a look that began after the first
 * had ended, they overlapped. `before` is NULL in the first look: then only
 * what needs no second one is told. False if there are none.
 */
bool cluster_view_split(const struct cluster_view *view, const struct cluster_view *before,
                        const struct cluster_node **ret_one, const struct cluster_node **ret_other);

/* Whether a second look is needed to tell. */
bool cluster_view_is_suspect(const struct cluster_view *view);

/* Lists of names, with "…" where there is no room for more. */
struct cluster_constraint {
    char hubs[100];    /* who reaches a majority, and cannot be elected */
    char holders[100]; /* who has newer logs than those, and must not vote for them */
};

/*
 * Whether the election is constrained: somebody reaches a majority of the
 * voters, and nobody can be elected all the same, because of the logs. Of use
 * while nobody leads. What is not known counts as possible.
 */
bool cluster_view_constrained(const struct cluster_view *view, struct cluster_constraint *ret_constraint);

/*
 * Whether nobody works because no node reaches a majority within what a lease
 * bears. Writes the round trips that were measured, such as "n1–n2 95 ms, n1–n3
 * 102 ms", and the longest that would do.
 */
bool cluster_view_too_far(const struct cluster_view *view, char *buffer, size_t size, int64_t *ret_limit_ms);

/*
 * Asks the nodes of the client, and then the members that they tell of and
 * that were not asked; again if the answers look like split brain.
 * ERR_STORE_UNAVAILABLE, ERR_DENIED and so on if none answered; *error says of
 * each why. The view is to be given to cluster_view_done() in any case.
 */
GAVEL_CHECKED enum gavel_status cluster_look(struct cluster_client *client, struct cluster_view *view,
                                             struct gavel_error *error);

/*
 * The same, only until somebody says that it has a lease, and the node that is
 * wanted besides ("" none) has answered: a node that hangs then costs nothing.
 * What the view says of the others is not complete.
 */
GAVEL_CHECKED enum gavel_status cluster_find(struct cluster_client *client, const char *wanted,
                                             struct cluster_view *view, struct gavel_error *error);

/* The same with a shorter limit for each node than the client's. */
GAVEL_CHECKED enum gavel_status cluster_find_within(struct cluster_client *client, const char *wanted,
                                                    gavel_ms limit_ms, struct cluster_view *view,
                                                    struct gavel_error *error);

/*
 * Looks until somebody leads, or the time is over. A leader that does not say
 * so itself may be dead, and the others about to notice: they are given
 * notice_ms before they are believed. One that hangs is not waited for in
 * vain: first looks are short (CLUSTER_FIRST_MS), later ones as long as they
 * may be. Status and view are those of the last look.
 */
#define CLUSTER_FIRST_MS 100
GAVEL_CHECKED enum gavel_status cluster_await(struct cluster_client *client, gavel_ns until,
                                              gavel_ms notice_ms, struct cluster_view *view,
                                              struct gavel_error *error);

#endif
