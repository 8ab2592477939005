/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A struct gavel: one store, one loop, two helper threads and the candidates
 * that share them.
 *
 *   callers ── commands ──► ┌──────┐ ── jobs ────────► ┌────────┐ store_run()
 *   timer, doorbell, pidfd ►│ loop │                   │ worker │ ─────────► store
 *                 ┌───push─►└──────┘ ◄─ finished jobs ─└────────┘              │
 *                 └────────────┼───────────────────────────────────────────────┘
 *                              │  deadlines ┌──────────┐
 *                              └──────────► │ watchdog │ abort()
 *                                           └──────────┘
 *
 * Who may touch what:
 *  - Fields under "loop" belong to the thread that drives the loop: the
 *    library's own, or the caller of gavel_dispatch(). No lock.
 *  - Fields under "mutex" are shared. The mutex is never held during a
 *    callback or a call to the store.
 *  - Each candidate has a lock of its own around its state machine, see
 *    candidate.h. It is taken inside this one, never the other way round.
 */
#ifndef LIB_HANDLE_H
#define LIB_HANDLE_H

#include "base/time.h"
#include "core/candidate/candidate.h"
#include "lib/bell.h"
#include "lib/guard/on_death.h"
#include "lib/guard/own_guard.h"
#include "lib/guard/watchdog.h"
#include "lib/loop/command.h"
#include "lib/loop/timers.h"
#include "lib/loop/worker.h"
#include "lib/publish.h"
#include "lib/session.h"
#include "lib/source.h"
#include "lib/watch.h"
#include "store/store.h"

#include <gavel/gavel.h>

#include <pthread.h>

/* So many that a chain stays short with 100,000 groups; what is not used takes no memory. */
#define MEMBER_BUCKETS 16384

struct gavel {
    /* fixed once opened */
    bool is_threaded;
    bool has_thread;
    pthread_t thread;
    struct store *store; /* NULL for "none:" */
    char store_url[176]; /* for messages: without its options, and cut if it is long */
    struct store_capabilities capabilities;
    struct process_id self;
    struct watchdog watchdog;
    struct on_death *on_death; /* what a guard releases when we have died; NULL without a guard */
    bool is_guarded;           /* the work is done by processes of the guard, and may outlive us */

    /* mutex */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* after every pass of the loop, while a thread waits */
    size_t waiters;
    bool is_driving; /* a thread runs the loop, namely: */
    pthread_t driver;
    bool is_stopping;             /* the loop's thread must end */
    bool is_closing;              /* no candidate may join any longer */
    _Atomic enum gavel_loss loss; /* what mandates are released as when we close; see gavel_note_loss() */
    size_t leavers;               /* threads in gavel_leave(); each frees what it waits for */
    struct command_queue commands;
    struct job_queue finished;
    struct gavel_candidate *first_candidate; /* in the order they joined */
    struct gavel_candidate *last_candidate;
    size_t candidate_count;
    struct gavel_candidate *buckets[MEMBER_BUCKETS]; /* by group name */
    struct publish publish;
    struct worker worker;

    /* loop */
    int epoll_fd;
    struct source timer;  /* timerfd on CLOCK_BOOTTIME */
    struct source wakeup; /* eventfd: commands or finished jobs */
    gavel_ns timer_at;    /* what the timerfd is set to; NEVER if it is not */
    struct timers timers;
    struct handle_session session;
    struct job_queue answers;         /* taken from `finished`, and not fed yet */
    size_t jobs;                      /* whose answers are still to come */
    struct gavel_candidate *to_start; /* from here on some were not started, since there was too much to do */
    /* Mandates that are over and whose work was not told to stop yet: by deadline, those of a session
     * earliest stop first. */
    struct timers lapsed;
    struct bell bell;
    struct source push; /* of the store, if it reports changes; not ours to close */
    struct watches watches;
    struct own_guard own_guard;
    struct gavel_candidate *departed; /* ended and left; buried at the end of the pass */
    struct candidate_actions actions; /* of the step under way */
};

/* Whether the calling thread is in the loop. */
bool handle_is_driver(struct gavel *gavel);

/* Whether it is in a callback: in the loop, or in the report of an overrun. It must not wait for the loop. */
bool handle_is_callback(struct gavel *gavel);

#endif
