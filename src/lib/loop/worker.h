/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The worker: a thread that makes the calls to the store, which may block. It
 * takes everything that is queued as one batch, so that a thousand groups
 * that beat at about the same time cost one transaction.
 */
#ifndef LIB_LOOP_WORKER_H
#define LIB_LOOP_WORKER_H

#include "base/request.h"
#include "lib/loop/command.h"

#include <pthread.h>
#include <stdbool.h>

/*
 * One call of one candidate. Ten thousand may wait at a time, so it takes no more
 * memory than its request needs.
 */
struct job {
    struct job *next;
    struct gavel_candidate *candidate; /* NULL: it has left and does not want the answer */
    uint64_t call;
    gavel_ns queued_at;
    gavel_ns give_up_at;
    enum store_op op;
    struct store_reply *reply; /* once finished; owned. NULL: there was no memory for it */
    size_t used;               /* of the request; the rest of it is zeroes */
    char bytes[];              /* that much of it, and the name of the group */
};

struct job_queue {
    struct job *first;
    struct job *last;
};

void job_queue_add(struct job_queue *queue, struct job *job);
void job_queue_move(struct job_queue *from, struct job_queue *to); /* all, behind those that are there */
void job_free(struct job *job);                                    /* with its reply; safe on NULL */

struct batch;

/* Guarded by the handle's mutex. */
struct worker {
    pthread_t thread;
    bool has_thread;
    struct batch *batch; /* used by the thread alone */
    pthread_cond_t wanted;
    struct job_queue queue;
    struct job *running; /* the batch under way */
    bool is_stopping;
    bool has_ended;      /* the thread no longer touches anything */
    bool is_left_behind; /* it hangs in the store, and frees the handle's struct if it comes back */
    pthread_cond_t ended;
};

GAVEL_CHECKED enum gavel_status worker_start(struct gavel *gavel);

/*
 * Ends the thread after the batch under way. Waits for that as long as a
 * working store can take. Safe if it was never started.
 */
void worker_stop(struct gavel *gavel);

/*
 * Frees the struct of a handle with its store, mutex and jobs, after everything
 * else of it. If the thread still hangs in the store, it needs them when it
 * comes back, so it frees them then; if it never comes back, they are leaked.
 */
void worker_free_handle(struct gavel *gavel);

/*
 * Queues a call and copies the request; it goes out with the next flush.
 * Without memory the call is dropped: to the candidate that is a call without
 * an answer, which it must handle anyway.
 */
void worker_submit(struct gavel_candidate *candidate, uint64_t call, const struct store_request *request);

/*
 * For a candidate that has ended, or is gone, when a call of its is answered. Its
 * heartbeat may have gone with a session that it never saw: then it gave the
 * heartbeat up and had nothing to leave, while the store has joined it. So it
 * leaves now. Whoever has joined the group since is another instance.
 */
void worker_leave_for(struct gavel *gavel, const struct job *beat);

/*
 * Gives the thread what is queued: at the end of a pass of the loop, so that
 * one pass makes one batch, and before a callback that may take long.
 */
void worker_flush(struct gavel *gavel);

/* The answers to this candidate's calls are no longer wanted. Loop only. */
void worker_forget(struct gavel_candidate *candidate);

#endif
