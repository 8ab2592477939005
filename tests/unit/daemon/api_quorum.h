/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A quorum of one without Raft, for tests of the API: errands of the node go
 * straight to a real desk, what it proposes is applied to the node's real table
 * at once, and the answers go back as letters.
 */
#ifndef TESTS_API_QUORUM_H
#define TESTS_API_QUORUM_H

#include "core/session/desk.h"
#include "daemon/node/node.h"
#include "daemon/shared/errand.h"

struct api_quorum {
    struct node_desk *node;
    struct desk desk;
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
    } askers[256];              /* by tag of the desk, modulo */
    _Atomic bool holds;         /* stands still: takes nothing, and no time goes by */
    _Atomic bool is_leaderless; /* answers everything with ERR_NO_LEADER */
    _Atomic bool is_poor;       /* has no memory for answers */
    _Atomic int keep_alives;    /* that came */
};

void api_quorum_init(struct api_quorum *quorum, struct node_desk *node);
void api_quorum_done(struct api_quorum *quorum);

/* Answers what has come, and what is due by time. */
void api_quorum_turn(struct api_quorum *quorum);

#endif
