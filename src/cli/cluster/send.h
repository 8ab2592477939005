/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One question of any kind to a cluster: any node takes it and sees to it that
 * the leader hears of what only the leader may decide. The one that leads is
 * asked first, since it knows most; another one if it cannot be reached.
 */
#ifndef CLI_CLUSTER_SEND_H
#define CLI_CLUSTER_SEND_H

#include "cli/cluster/cluster_cli.h"

struct cluster_ask {
    const char *method; /* NULL: GET */
    const char *path;   /* with its query */
    const void *body;   /* NULL: none; borrowed */
    size_t length;
    const char *type;       /* of the body */
    const char *headers[4]; /* "Epoch: 7", …; the first NULL ends them */
    gavel_ms timeout_ms;    /* 0: the client's */
    bool may_repeat;        /* asked twice it does no harm: a node that has gone silent is not the end */
    bool wants_bytes;       /* the answer is no JSON */
};

struct cluster_reply {
    struct cluster_call call;
    char *bytes; /* of an answer that is no JSON; NULL if it is empty */
    size_t length;
    uint64_t revision; /* what the headers of the answer say; 0 if nothing */
    uint64_t created_revision;
    uint64_t epoch;
};

/*
 * Asks, and waits for the answer. The status is what the node said, or why
 * none did; *error has it in words that name the node. *ret_reply is to be
 * given to cluster_reply_done() in any case.
 */
GAVEL_CHECKED enum gavel_status cluster_send(struct cluster_client *client, const struct cluster_ask *ask,
                                             struct cluster_reply *ret_reply, struct gavel_error *error);
void cluster_reply_done(struct cluster_reply *reply);

/*
 * A path with names in it, each %s percent-encoded: at most three. ERR_INVALID
 * if it becomes too long, which no name of a group does.
 */
GAVEL_CHECKED enum gavel_status cluster_path(char ret_path[static CLUSTER_PATH_MAX], const char *format,
                                             const char *first, const char *second, const char *third);

#endif
