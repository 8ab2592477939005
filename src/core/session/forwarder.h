/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The forwarder carries what the clients of this node ask to the leader of the
 * cluster, and brings the answer back. Pure: it calls nobody; the caller takes
 * out what is to be delivered and what is answered.
 *
 *     client ──► forwarder_take() ──► forwarder_take_delivery() ──► the leader's frontend
 *     client ◄── forwarder_take_answer() ◄── forwarder_reply() ◄────────┘
 *
 * It keeps each frame until it is answered: if the leader changes, or says that
 * it does not lead (yet), the frame is carried again. That is safe: a request
 * of a session has an id and is applied once, questions and keep-alives change
 * nothing. A write without a session is carried again only after ERR_NOT_LEADER,
 * with which the frontend says that it was not done; if its leader is lost the
 * client is told that the outcome is unknown.
 *
 * Keep-alives of many clients are merged for a moment (FORWARDER_GATHER) and go as one, and before anything
 * else: however much one client asks, the sessions of the others live on.
 *
 * A leader that has just been elected refuses until it is ready, and there may
 * be thousands of forwardings. So after a refusal the forwarder doubts: it tries with
 * a few of the first (FORWARDER_PROBES) every FORWARDER_RETRY, and as soon as one
 * of them is answered everything goes.
 */
#ifndef CORE_SESSION_FORWARDER_H
#define CORE_SESSION_FORWARDER_H

#include "base/time.h"
#include "wire/client.pb-c.h"

#include <bsd/sys/tree.h>
#include <gavel/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define FORWARDER_FORWARDINGS_MAX 8192         /* more are refused at once, ERR_STORE_UNAVAILABLE */
#define FORWARDER_BYTES_MAX ((size_t)64 << 20) /* of all of them, packed; likewise */
#define FORWARDER_KEEP_ALIVES_MAX 128          /* merged ones, however much else waits */
#define FORWARDER_GATHER (20 * NS_PER_MS)
#define FORWARDER_RETRY (5 * NS_PER_MS) /* after ERR_NOT_LEADER, or if it could not be sent */
#define FORWARDER_PROBES 16
#define FORWARDER_PORTION 512 /* carried at once; the rest follows */
#define FORWARDER_MORE (1 * NS_PER_MS)
#define FORWARDER_AGAIN (500 * NS_PER_MS) /* without any answer; only what may be carried twice */
#define FORWARDER_TIMEOUT (5 * NS_PER_S)  /* if the frame does not say */
#define FORWARDER_TIMEOUT_MAX (60 * NS_PER_S)
#define FORWARDER_KEEP_TIMEOUT (1 * NS_PER_S) /* of keep-alives: clients send new ones anyway */

/* A frame on its way to the leader; borrowed until the forwarder is asked for anything else. */
struct forwarder_delivery {
    uint64_t node;        /* to whom; maybe ourselves */
    uint64_t number;      /* comes back with forwarder_reply() or forwarder_unsent() */
    const uint8_t *bytes; /* of the frame, without a length before it */
    size_t size;
};

/* What a client of this node is answered. */
struct forwarder_answer {
    STAILQ_ENTRY(forwarder_answer) next;
    uint64_t client;
    /* With the tag of the question; owned. NULL: there was no memory for it, and what came of the question is
     * not known. */
    Gavel__ClientFrame *frame;
};
STAILQ_HEAD(forwarder_answers, forwarder_answer);

/* A Request or an Ask of a client, packed once, by whoever has it decoded: this is what travels to the
 * leader. */
struct forwarder_question {
    Gavel__ClientFrame__WhatCase what;
    uint64_t tag;
    uint32_t timeout_ms; /* 0: not said */
    bool may_repeat;     /* carrying it twice does no harm */
    bool opens;          /* a session: nobody keeps it alive if the client is gone */
    uint8_t *bytes;      /* of the frame, with the length before it; owned. NULL: there is none */
    size_t size;
};

struct forwarder_forwarding;
TAILQ_HEAD(forwarder_forwardings, forwarder_forwarding);
RB_HEAD(forwarder_numbers, forwarder_forwarding);

struct forwarder {
    uint64_t leader; /* node; 0 unknown */
    uint64_t term;
    uint64_t numbers;
    struct forwarder_forwardings forwardings; /* keep-alives, then the others, the oldest first */
    struct forwarder_numbers by_number;
    struct forwarder_forwardings outgoing; /* of them: to be delivered */
    struct forwarder_answers answers;      /* that nobody has taken yet, the oldest first */
    size_t count;
    size_t keep_alives; /* of them */
    size_t bytes;       /* of all of them, packed */
    gavel_ns wake_at;   /* nothing is due before; may be too early */
    bool is_doubted;    /* the leader has refused, and not answered since */
    gavel_ns probe_at;
    struct forwarder_forwarding *gathering; /* keep-alives; NULL none */
    gavel_ns gather_until;
    struct {
        uint64_t taken;
        uint64_t carried;
        uint64_t again;
        uint64_t timed_out;
    } counts;
};

void forwarder_init(struct forwarder *forwarder);
void forwarder_done(struct forwarder *forwarder); /* answers nobody; safe on a zeroed struct */

/* To whom the next is to be delivered; 0: none is left. */
uint64_t forwarder_delivers_to(const struct forwarder *forwarder);
/* The next that is to be delivered; false: none is left. */
bool forwarder_take_delivery(struct forwarder *forwarder, struct forwarder_delivery *ret_delivery);
/* A delivery could not be sent: it is tried again. */
void forwarder_unsent(struct forwarder *forwarder, gavel_ns now, uint64_t number);

/* The oldest answer, handed over; NULL: none is left. */
struct forwarder_answer *forwarder_take_answer(struct forwarder *forwarder);
void forwarder_answer_free(struct forwarder_answer *answer); /* safe on NULL */

/* Packs a Request or an Ask, on any thread. ERR_NO_MEMORY, ERR_TOO_LARGE, ERR_INVALID, with a sentence
 * (static). */
GAVEL_CHECKED enum gavel_status forwarder_question_pack(const Gavel__ClientFrame *frame,
                                                        struct forwarder_question *ret_question,
                                                        const char **ret_reason);
void forwarder_question_done(struct forwarder_question *question); /* safe on a zeroed struct */

/*
 * A Request, KeepAlive or Ask of a client of this node, copied (packed). `client` comes back with the answer,
 * whose frame has the tag that the question had. Of KeepAlive: each client gets a Kept of its own. What
 * cannot be carried at all is answered. ERR_NO_MEMORY: it was not taken, and there will be no answer.
 */
GAVEL_CHECKED enum gavel_status forwarder_take(struct forwarder *forwarder, gavel_ns now, uint64_t client,
                                               const Gavel__ClientFrame *frame);

/* The same for what is packed already. Takes the bytes, unless ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status forwarder_take_question(struct forwarder *forwarder, gavel_ns now,
                                                        uint64_t client, struct forwarder_question *question);

/* That client is gone: its forwardings go on, and their answers are for nobody. Only a session that it wants
 * to open is not opened, unless the leader has been asked already. */
void forwarder_forget(struct forwarder *forwarder, uint64_t client);

/* An answer from a frontend, for the forwarded request of that number. Late or repeated ones are harmless.
 * May take the frame: sets it to NULL. */
void forwarder_reply(struct forwarder *forwarder, gavel_ns now, uint64_t number, Gavel__ClientFrame **frame);

/* Who leads, as far as this node knows; carries everything again if that has changed. */
void forwarder_leader(struct forwarder *forwarder, gavel_ns now, uint64_t leader, uint64_t term);

void forwarder_tick(struct forwarder *forwarder, gavel_ns now);
gavel_ns forwarder_wake_at(const struct forwarder *forwarder);

#endif
