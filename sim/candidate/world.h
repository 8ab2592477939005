/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The simulated world: real time, a heap of future events, and everything that
 * a run consists of. All randomness comes from a few streams that one seed
 * starts, so that a run can be repeated to the byte.
 *
 * A step of the world takes the earliest event off the heap, sets the time to
 * it and passes it to the part it belongs to. Events at the same instant happen
 * in the order in which they were pushed.
 */
#ifndef SIM_CANDIDATE_WORLD_H
#define SIM_CANDIDATE_WORLD_H

#include "base/prng.h"
#include "core/candidate/candidate.h"
#include "sim/candidate/granting.h"
#include "sim/candidate/process.h"
#include "sim/candidate/profile.h"
#include "sim/candidate/referee.h"
#include "sim/candidate/store.h"
#include "sim/common/clock.h"
#include "sim/common/heap.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

enum event_kind {
    EVENT_START,    /* a process begins */
    EVENT_TICK,     /* of a candidate; number is the generation of the timer */
    EVENT_SEND,     /* a request leaves its process */
    EVENT_APPLY,    /* a request reaches the store */
    EVENT_REPLY,    /* an answer reaches its process */
    EVENT_BELL,     /* a doorbell rings */
    EVENT_RELEASE,  /* the guard of a process that died has ended its work and releases for it */
    EVENT_FENCE,    /* the guard of a frozen process ends its work and closes its session */
    EVENT_DEATH,    /* a process is told that the one it watches is dead */
    EVENT_STOPPED,  /* work has stopped; number is which work */
    EVENT_TOLD,     /* its candidate is told so */
    EVENT_FINISH,   /* work is done for good; number is which work */
    EVENT_WATCHDOG, /* checks whether work runs past its deadline */
    EVENT_ACT,      /* work does something to the resource */
    EVENT_WRITE,    /* which reaches the resource; number is the epoch */
    EVENT_KEEP,     /* a process opens its session or keeps it open */
    EVENT_EXPIRE,   /* the store looks whether a session has expired; number is the session */
    EVENT_RESUME,   /* a frozen process runs again */
    EVENT_FAULT,    /* something goes wrong */
    EVENT_QUIET,    /* from now on nothing does */
    EVENT_PROBE,    /* the referee looks for a leader */
};

/* Independent streams, so that one fault switched off does not shift all the others. */
enum stream {
    STREAM_PROFILE,
    STREAM_NETWORK,
    STREAM_PROCESS,
    STREAM_WORK,
    STREAM_FAULT,
    STREAM_FINISH,
    STREAM_COLD,
    STREAM_GUARD,
    STREAM_SESSION,
    STREAM_CLUSTER,
    STREAM_COUNT
};

enum outage { OUTAGE_NONE, OUTAGE_AWAY, OUTAGE_REFUSES, OUTAGE_MUTE, OUTAGE_SLOW };

struct trace;

struct world {
    gavel_ns now; /* real time; the run begins at 0 */
    struct heap heap;
    struct profile profile;
    struct prng streams[STREAM_COUNT];
    struct process processes[SLOTS_MAX];
    struct sim_store store;
    struct granting granting; /* what it has beside its record, with sessions */
    uint64_t next_session;
    struct message *free_messages;
    struct message *all_messages;
    enum outage outage;
    gavel_ns outage_until;
    /* The process whose next renewal is the last to be answered, and late; NULL: none. */
    struct process *ambushed;
    struct fence resource; /* what the work of leaders writes to */
    struct referee referee;
    bool is_quiet;
    bool is_over;
    uint64_t events;
    uint64_t hash; /* of all events so far: two runs with the same hash were identical */
    struct candidate_actions actions;
    struct trace *trace; /* NULL: no story is wanted */
    jmp_buf escape;      /* where a violation ends the run */
};

/* Empties the world and draws the profile of a seed. Memory of an earlier run is used again. */
void world_begin(struct world *world, uint64_t seed, unsigned candidates, gavel_ns duration,
                 uint64_t without);

/* Frees everything. Safe on a zeroed world. */
void world_done(struct world *world);

/* Adds an event at `at`; the caller fills in what it is about. */
struct event *world_push(struct world *world, gavel_ns at, enum event_kind kind, unsigned slot);

/* The earliest event, taken off the heap; false if there is none. Sets the time. */
bool world_pop(struct world *world, struct event *ret_event);

/* What was put off to `at` for this slot happens now after all. */
void world_hurry(struct world *world, unsigned slot, gavel_ns at);

/* Whether a fault of this kind, with this chance, happens now. Draws in any case. */
bool world_fault(struct world *world, enum stream stream, enum fault fault, unsigned per_mille);

static inline gavel_ns world_between(struct world *world, enum stream stream, gavel_ns low, gavel_ns high)
{
    return prng_between(&world->streams[stream], low, high);
}

static inline bool world_has(const struct world *world, enum fault fault)
{
    return !world->is_quiet && world->profile.faults & FAULT_BIT(fault);
}

#endif
