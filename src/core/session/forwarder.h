/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The forwarder: carries what the clients of this node ask to whoever leads the
 * cluster, and brings the answer back. Pure.
 *
 *     client ──► forwarder_take() ──► deliver(leader, frame) ──► the leader's frontend
 *     client ◄── answer(tag)   ◄── forwarder_reply() ◄──────────────┘
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
#define FORWARDER_AGAIN (500 * NS_PER_MS) /* without any answer; only what may be carried twice */
#define FORWARDER_TIMEOUT (5 * NS_PER_S)  /* if the frame does not say */
#define FORWARDER_TIMEOUT_MAX (60 * NS_PER_S)
#define FORWARDER_KEEP_TIMEOUT (1 * NS_PER_S) /* of keep-alives: clients send new ones anyway */

struct forwarder_hands {
    /* To that node (maybe ourselves), under this number, which forwarder_reply() gets back. `bytes` is the
     * packed frame, without a length before it. False: it cannot be sent now. Must not call back. */
    bool (*deliver)(void *user, uint64_t node, uint64_t number, const Gavel__ClientFrame *frame,
                    const uint8_t *bytes, size_t size);
    /* The answer for whoever gave the forwarding; borrowed for the call. Must not call back, either. */
    void (*answer)(void *user, uint64_t client, uint64_t tag, const Gavel__ClientFrame *frame);
    void *user;
};

struct forwarder_forwarding;
TAILQ_HEAD(forwarder_forwardings, forwarder_forwarding);
RB_HEAD(forwarder_numbers, forwarder_forwarding);

struct forwarder {
    struct forwarder_hands hands;
    uint64_t leader; /* node; 0 unknown */
    uint64_t term;
    uint64_t numbers;
    struct forwarder_forwardings forwardings; /* keep-alives, then the others, the oldest first */
    struct forwarder_numbers by_number;
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

void forwarder_init(struct forwarder *forwarder, const struct forwarder_hands *hands);
void forwarder_done(struct forwarder *forwarder); /* answers nobody; safe on a zeroed struct */

/*
 * A Request, KeepAlive or Ask of a client of this node, copied (packed). `client` comes back with the answer,
 * whose frame has the tag that the question had. Of KeepAlive: each client gets a Kept of its own. What
 * cannot be carried at all is answered from within the call.
 */
void forwarder_take(struct forwarder *forwarder, gavel_ns now, uint64_t client,
                    const Gavel__ClientFrame *frame);

/* That client is gone: its forwardings go on, and their answers are for nobody. */
void forwarder_forget(struct forwarder *forwarder, uint64_t client);

/* An answer from a frontend, for the forwarded request of that number. Late or repeated ones are harmless. */
void forwarder_reply(struct forwarder *forwarder, gavel_ns now, uint64_t number,
                     const Gavel__ClientFrame *frame);

/* Who leads, as far as this node knows; carries everything again if that has changed. */
void forwarder_leader(struct forwarder *forwarder, gavel_ns now, uint64_t leader, uint64_t term);

void forwarder_tick(struct forwarder *forwarder, gavel_ns now);
gavel_ns forwarder_wake_at(const struct forwarder *forwarder);

#endif
