/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the threads that have clients (clients.h, api.h) send what those ask to
 * the consensus thread, and how the answer comes back: as letters. The
 * consensus thread's courier carries each to whoever leads the quorum.
 *
 * A thread gives each of its clients a number that it never uses again. An
 * answer for a client that is gone meanwhile is dropped by whoever gets it.
 */
#ifndef DAEMON_ERRAND_H
#define DAEMON_ERRAND_H

#include "daemon/mailbox.h"
#include "wire/client.h"

struct errand {
    struct mail_link link; /* first */
    uint64_t client;
    struct mailbox *reply_to;
    Gavel__ClientFrame *frame; /* Request, KeepAlive or Ask; the answer: Reply, Kept or Answer with the tag of
                                  the question. Owned. NULL on the way there: the client is gone */
};

/* Takes the frame, also on failure. NULL: no memory. */
struct errand *errand_new(uint64_t client, struct mailbox *reply_to, Gavel__ClientFrame *frame);
void errand_free(struct errand *errand); /* with its frame; safe on NULL */

#endif
