/* SPDX-License-Identifier: Apache-2.0 */

/* What the two files of the forwarder share: a forwarded request, and how it is answered. */
#ifndef CORE_SESSION_FORWARDER_INTERNAL_H
#define CORE_SESSION_FORWARDER_INTERNAL_H

#include "core/session/forwarder.h"

#include <gavel/status.h>

/* One client's share in a keep-alive that was merged. */
struct forwarder_part {
    uint64_t client;
    uint64_t tag;
    size_t first; /* of the forwarded request's sessions */
    size_t count;
    bool is_gone;                    /* the client */
    struct forwarder_answer *answer; /* to be; made beforehand, so that an answer is never wanting */
};

struct forwarder_forwarding {
    TAILQ_ENTRY(forwarder_forwarding) in_order;
    TAILQ_ENTRY(forwarder_forwarding) in_outgoing;
    RB_ENTRY(forwarder_forwarding) by_number;
    uint64_t number;
    uint64_t client;
    uint64_t tag;
    bool is_gone;                    /* the client; of a keep-alive see the parts */
    struct forwarder_answer *answer; /* as of the parts of a keep-alive */
    bool is_out;                     /* delivered, or to be, and not refused */
    bool is_outgoing;                /* to be */
    bool had_been_out;               /* before that */
    bool has_been_out;               /* delivered once: it may have been carried out */
    bool may_repeat;                 /* carrying it twice does no harm */
    bool opens;                      /* a session: nobody keeps it alive if the client is gone */
    uint64_t node;                   /* to whom, and in which term */
    uint64_t term;
    gavel_ns again_at; /* if it is out: carried again then; NEVER */
    gavel_ns give_up_at;
    Gavel__ClientFrame__WhatCase what; /* of a keep-alive that still gathers not set */
    uint8_t *bytes;                    /* of the frame, with the length before it */
    size_t size;
    struct forwarder_part *parts; /* of a keep-alive */
    size_t part_count;
    size_t part_capacity;
    uint64_t *sessions;
    uint64_t *principals; /* side by side with them */
    size_t principal_capacity;
    bool tells_no_principals; /* of one of them it is not known: only in tests and simulations */
    size_t session_count;
    size_t session_capacity;
};

/* Says to one client that nothing comes of what it asked. `question` tells what kind of answer it awaits;
 * *answer is used up. */
void forwarder_fail(struct forwarder *forwarder, struct forwarder_answer **answer, uint64_t client,
                    uint64_t tag, Gavel__ClientFrame__WhatCase question, enum gavel_status status,
                    const char *message);

/* The same for everybody who waits for this forwarding. */
void forwarder_fail_forwarding(struct forwarder *forwarder, struct forwarder_forwarding *forwarding,
                               enum gavel_status status, const char *message);

/* Hands the answer to everybody who waits for this forwarding; it is one of the right kind. May take the
 * frame: sets it to NULL. */
void forwarder_answer_forwarding(struct forwarder *forwarder, struct forwarder_forwarding *forwarding,
                                 Gavel__ClientFrame **answer);

/* The status that an answer to this forwarded request carries. False if it is no answer to it at all. */
bool forwarder_status_of(const struct forwarder_forwarding *forwarding, const Gavel__ClientFrame *answer,
                         enum gavel_status *ret_status);

/* Adds a client's keep-alive, and takes its answer. ERR_NO_MEMORY: nothing was added or taken. */
GAVEL_CHECKED enum gavel_status forwarder_merge(struct forwarder_forwarding *forwarding, uint64_t client,
                                                const Gavel__KeepAlive *keep_alive,
                                                struct forwarder_answer **answer);

#endif
