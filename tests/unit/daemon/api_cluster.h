/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cluster of one without Raft, for tests of the API: forwardings of the node go
 * straight to a real frontend, what it proposes is applied to the node's real table
 * at once, and the answers go back as messages.
 */
#ifndef TESTS_API_CLUSTER_H
#define TESTS_API_CLUSTER_H

#include "core/session/frontend.h"
#include "daemon/node/node.h"
#include "daemon/shared/forwarding.h"

struct api_cluster {
    struct node_shared *node;
    struct frontend frontend;
    uint64_t index;
    struct {
        uint8_t *bytes;
        size_t size;
    } log[64]; /* proposed, and not applied */
    size_t log_count;
    uint64_t numbers;
    struct {
        uint64_t client;
        struct mailbox *reply_to;
        uint64_t tag;
    } askers[256];              /* by tag of the frontend, modulo */
    _Atomic bool holds;         /* stands still: takes nothing, and no time goes by */
    _Atomic bool is_leaderless; /* answers everything with ERR_NO_LEADER */
    _Atomic bool is_poor;       /* has no memory for answers */
    _Atomic int keep_alives;    /* that came */
};

void api_cluster_init(struct api_cluster *cluster, struct node_shared *node);
void api_cluster_done(struct api_cluster *cluster);

/* Answers what has come, and what is due by time. */
void api_cluster_turn(struct api_cluster *cluster);

#endif
