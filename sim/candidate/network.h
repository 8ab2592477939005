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
struct world;

struct message {
    struct message *next_free;
    struct message *next;
    unsigned slot; /* of the sender */
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
