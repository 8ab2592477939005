/* SPDX-License-Identifier: Apache-2.0 */

/* What referee.c reads and referee_rules.c judges. */
#ifndef CHAOS_REFEREE_STATE_H
#define CHAOS_REFEREE_STATE_H

#include "referee.h"

#define NS_PER_MS INT64_C(1000000)
#define NODES_MAX 32
#define NAME_MAX_BYTES 64
#define NO_CLAIM (-1)
#define REMARKS_MAX 30
#define REMARKS_OF_RULE_MAX 3 /* the rest is counted */
#define EVERYBODY (-1)        /* the node of a deed that was done to the machine */

struct token {
    int64_t term;
    int64_t epoch; /* of the lease */
};

/* Instants are of the node's clock until referee_judge() takes the offsets out; 0: never. */
struct claim {
    int node;
    struct token token;
    int64_t from;
    int64_t until; /* the end of the last lease */
    int64_t stopped;
    int64_t died;
    int64_t denied;    /* the node itself said that it has no lease */
    int64_t alive_at;  /* the last sign of it before any end */
    bool is_seen_only; /* the log was lost with the node, but its status was seen */
    const char *line;  /* borrowed from referee.lines, as all of these */
    const char *lease_line;
    const char *end_line;
};

enum deed_kind {
    DEED_KILLED,
    DEED_STRUCK,
    DEED_DIED /* says its guard */,
    DEED_PAUSED,
    DEED_RESUMED,
    DEED_SLEPT,
    DEED_WAITED
};

struct deed {
    enum deed_kind kind;
    int node;
    int64_t at;
    int64_t until; /* SLEPT, WAITED */
    int64_t wait;  /* WAITED: how much of it, or more if several threads did */
    const char *line;
};

struct status {
    int node;
    int64_t at;
    int64_t heard; /* when the answer came: it was true at some instant in between; `at` if not given */
    struct token token;
    bool has_lease;
    int64_t generation;
    int64_t commit;
    int64_t applied;
    int64_t revision;
    char digest[40];
    const char *line;
};

struct node {
    char name[NAME_MAX_BYTES];
    int64_t offset;
    ptrdiff_t open; /* its claim that has not ended, in order of its log */
};

struct referee {
    int64_t late_ns;
    struct node nodes[NODES_MAX];
    int node_count;
    struct claim *claims;
    size_t claim_count;
    struct deed *deeds;
    size_t deed_count;
    struct status *statuses;
    size_t status_count;
    char **lines;
    size_t line_count;
    uint64_t log_lines;
    uint64_t leases;

    /* the judgement */
    uint64_t terms;
    uint64_t pairs;      /* of claims whose overlap was checked */
    uint64_t equals;     /* pairs of statuses that had to have the same digest */
    uint64_t boasts;     /* statuses with a lease, compared with the claims */
    uint64_t seen_only;  /* claims known only from statuses */
    int64_t late_max_ns; /* how late work stopped that was not paused, without what it waited */
    int64_t gap_min_ns;  /* between the end of a claim and the beginning of another node's next; -1 none */
    uint64_t found[RULE_COUNT];
    struct {
        enum referee_rule rule;
        const char *first;
        const char *second;
    } remarks[REMARKS_MAX];
    size_t remark_count;
};

int referee_node(struct referee *r, const char *name);
void referee_add_claim(struct referee *r, struct claim claim);
void referee_remark(struct referee *r, enum referee_rule rule, const char *first, const char *second);

#endif
