/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the threads with clients (clients.h, api.h) send client requests to the
 * consensus thread, and get the answers back: as messages. The consensus thread's
 * forwarder carries each request to the leader of the cluster.
 *
 * A thread gives each of its clients a number that it never reuses. It drops an
 * answer for a client that is gone.
 */
#ifndef DAEMON_SHARED_FORWARDING_H
#define DAEMON_SHARED_FORWARDING_H

#include "core/session/forwarder.h"
#include "daemon/shared/mailbox.h"
#include "wire/client.h"

struct forwarding {
    struct mail_link link; /* first */
    uint64_t client;
    struct mailbox *reply_to;
    /* A Request or an Ask on the way there, packed by the thread of the client. bytes NULL: see the frame. */
    struct forwarder_question question;
    /* KeepAlive, or what could not be packed: the forwarder says why. In the answer: Reply, Kept or Answer
     * with the tag of the question. Owned. NULL on the way there, without a question: the client is gone.
     * NULL on the way back: there was no memory for the answer, and the outcome is unknown. */
    Gavel__ClientFrame *frame;
};

/*
 * Received messages, kept for reuse as answers, so that every answer that is owed can be sent even without
 * memory. Those of clients that are gone are left over. They are freed when no answer is owed any more, and
 * beyond FORWARDING_STOCK_MAX.
 */
#define FORWARDING_STOCK_MAX 16384
struct forwarding_stock {
    struct mail_link *first;
    size_t count;
};
void forwarding_stock_keep(struct forwarding_stock *stock,
                           struct forwarding *forwarding); /* takes it, and frees its frame */
void forwarding_stock_clear(struct forwarding_stock *stock);
/* Takes the frame and sends it; NULL: there was no memory for the answer. */
void forwarding_answer(struct forwarding_stock *stock, uint64_t client, struct mailbox *reply_to,
                       Gavel__ClientFrame *frame);

/* Takes ownership of the frame, also on failure. NULL: no memory. */
struct forwarding *forwarding_new(uint64_t client, struct mailbox *reply_to, Gavel__ClientFrame *frame);
/* Packs a Request or an Ask; the frame is freed then. */
void forwarding_pack(struct forwarding *forwarding);
void forwarding_free(struct forwarding *forwarding); /* with its frame; safe on NULL */

#endif
