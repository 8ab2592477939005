/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Between processes and the store: delay, loss, duplicates, and answers that
 * never arrive although the store has committed. The worst is a request that
 * was sent in time and is applied long after its sender gave up.
 */
#ifndef SIM_CANDIDATE_NETWORK_H
#define SIM_CANDIDATE_NETWORK_H

#include "base/request.h"
#include "sim/candidate/profile.h"

struct event;
struct process;
struct standing;
struct world;

enum message_kind {
    MESSAGE_CALL,
    MESSAGE_OPEN, /* a session, and so on: only with sessions */
    MESSAGE_KEEP,
    MESSAGE_PUSH,
};

struct message {
    struct message *next_free;
    struct message *next;
    enum message_kind kind;
    uint64_t session; /* of the store object that sent it, or gets it; 0: none was open */
    unsigned slot;    /* of the sender */
    uint32_t incarnation;
    uint64_t call;
    gavel_ms wall_ms; /* of the sender when it sent */
    gavel_ns sent_at; /* the same, exactly */
    bool is_void;     /* lost on the way */
    struct store_request request;
    struct store_reply reply;
    struct registration listing[SLOTS_MAX]; /* what reply.registrations points to */
};

/* A process makes a call. The request is copied. */
void network_call(struct world *world, struct process *process, uint64_t call,
                  const struct store_request *request);

/* A process opens its session, or keeps it open. */
void network_session(struct world *world, struct process *process, enum message_kind kind, uint64_t number);

/* A heartbeat that was called for without a session goes out; or it never will. */
void network_flush(struct world *world, struct process *process);
void network_forget(struct world *world, struct process *process);

/* push.c: the store shows its record to all sessions that take part. */
void network_push(struct world *world);
void network_push_to(struct world *world, const struct standing *standing);

/* The shortest and the longest way of a message when nothing is wrong: two of them fit well into a call. */
#define NETWORK_FASTEST (50 * NS_PER_US)
gavel_ns network_calm_delay(const struct world *world, unsigned slot);

/* A message that is not used, and whether the store is away. */
struct message *network_message(struct world *world);
bool network_is_away(const struct world *world);

/* SEND and APPLY events; REPLY is the process's, which frees the message afterwards. */
void network_take(struct world *world, const struct event *event);
void network_free(struct world *world, struct message *message);

/* Doorbells to every peer, or to one address. */
void network_ring_all(struct world *world, struct process *process);
void network_ring(struct world *world, struct process *process, const char *address);

/* A write of the work travels to the resource. */
void network_write(struct world *world, struct process *process, uint64_t epoch);

/* From now on nothing comes late: what would still take long is lost. */
void network_settle(struct world *world);

/* Reclaims all messages, for the next run; and frees them. */
void network_recall(struct world *world);
void network_done(struct world *world);

#endif
