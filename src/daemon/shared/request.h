/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A request of the API to the consensus thread, and its answer. The request goes to
 * the consensus thread's mailbox and comes back, answered, to `reply_to`; the
 * sender frees it. Each is answered exactly once, in bounded time: at the latest
 * when timeout_ms is over.
 */
#ifndef DAEMON_SHARED_REQUEST_H
#define DAEMON_SHARED_REQUEST_H

#include "core/raft/raft.h"
#include "daemon/shared/mailbox.h"
#include "wire/peer.h"

enum request_kind {
    REQUEST_TRANSFER,       /* to `target` ("" the best); answered when another leads, or it has failed */
    REQUEST_STEP_DOWN,      /* answered when the work has stopped */
    REQUEST_MEMBER_ADD,     /* `target`, address, api, priority, is_witness, is_learner */
    REQUEST_MEMBER_REMOVE,  /* like all MEMBER requests, answered when the new members are committed */
    REQUEST_MEMBER_PROMOTE, /* a learner becomes a voter */
    REQUEST_MEMBER_DEMOTE,  /* a voter becomes a learner */
};

struct request {
    struct mail_link link; /* first */
    enum request_kind kind;
    char target[PEER_NAME_MAX + 1];
    bool is_forced;
    uint32_t timeout_ms; /* 0: the configured one */
    char address[PEER_ADDRESS_MAX + 1];
    char api[PEER_ADDRESS_MAX + 1];
    uint8_t priority;
    bool is_witness;
    bool is_learner; /* ADD: stays a learner; otherwise it becomes a voter when it has caught up */

    struct mailbox *reply_to;
    void *user; /* of the sender */

    /* The answer: OK, ERR_NO_LEADER, ERR_NOT_LEADER (ask `leader`), ERR_LEADER_TRANSFER_FAILED, ERR_STATE,
     * ERR_INVALID, ERR_NOT_FOUND, ERR_TIMEOUT. */
    enum gavel_status status;
    char message[256]; /* one sentence: what happened, why, what to do next */
    char old_leader[PEER_NAME_MAX + 1];
    char new_leader[PEER_NAME_MAX + 1]; /* "" if not known */
    char leader_api[PEER_ADDRESS_MAX + 1];
};

#endif
