/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request of any kind to a cluster. Any node takes it and forwards what
 * only the leader may decide. The leader is asked first, since it knows most;
 * another node if the leader cannot be reached.
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
    bool may_repeat;        /* harmless if sent twice: if a node falls silent, another is asked */
    bool wants_bytes;       /* the answer is not JSON */
};

struct cluster_reply {
    struct cluster_call call;
    char *bytes; /* of an answer that is not JSON; NULL if it is empty */
    size_t length;
    uint64_t revision; /* from the headers of the answer, as are the next two; 0 if absent */
    uint64_t created_revision;
    uint64_t epoch;
};

/*
 * Asks, and waits for the answer. The status is the node's, or says why none
 * answered; *error names the node. The caller calls cluster_reply_done(), also
 * after a failure.
 */
GAVEL_CHECKED enum gavel_status cluster_send(struct cluster_client *client, const struct cluster_ask *ask,
                                             struct cluster_reply *ret_reply, struct gavel_error *error);
void cluster_reply_done(struct cluster_reply *reply);

/*
 * A path with up to three names in it; each %s is percent-encoded. ERR_INVALID
 * if it becomes too long, which no name of a group causes.
 */
GAVEL_CHECKED enum gavel_status cluster_path(char ret_path[static CLUSTER_PATH_MAX], const char *format,
                                             const char *first, const char *second, const char *third);

#endif
