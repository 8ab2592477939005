/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The watchdog keeps the promise that a leader's work has stopped by its
 * deadline, even when the loop hangs in a callback or the process was frozen. A
 * thread of its own waits for the earliest deadline of any mandate whose work
 * is not known to have stopped. At that deadline it aborts the process or, if
 * the program has chosen so, reports.
 *
 * Aborting leaves a message and a core dump, but it needs this thread to run.
 * So the kernel is told beforehand to kill the process a little later
 * (killer.h): whatever happens to the thread, the process does not live on.
 *
 * Renewals move deadlines further away all the time. They only write a number.
 * The thread notices when the earlier deadline comes, looks for the new
 * earliest one and goes back to sleep.
 *
 * Mandates of a session end so long before its deadline as their margin says.
 * Its keep-alives move one number for all of them: which comes first follows
 * from the margins alone. Once the work of one is told to stop it is armed
 * with a deadline of its own.
 */
#ifndef LIB_GUARD_WATCHDOG_H
#define LIB_GUARD_WATCHDOG_H

#include "base/time.h"
#include "lib/guard/killer.h"
#include "lib/loop/timers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* One mandate; part of the candidate that holds it. */
struct watchdog_entry {
    struct watchdog_entry *next;
    struct watchdog_entry *previous;
    gavel_ns deadline; /* NEVER: it has none of its own, and is in no list */
    uint64_t epoch;
    const char *group; /* borrowed while it is armed */
    /* Called once, by the watchdog's thread, instead of the abort; NULL: abort. */
    void (*report)(struct watchdog_entry *entry, uint64_t epoch);
    bool is_reported;
    struct timer kill; /* in the killer's list, unless this entry reports */

    /* of a session */
    bool is_bound;
    gavel_ns margin;
    struct timer bound; /* at minus the margin; in a heap of the watchdog, unless it was reported */
    struct watchdog_entry *next_reported;
};

/* Neither armed nor bound. */
#define WATCHDOG_ENTRY_INIT                                                                                  \
    {                                                                                                        \
        .deadline = NEVER, .kill = {.at = NEVER, .index = TIMER_OUT},                                        \
        .bound = {.at = NEVER, .index = TIMER_OUT},                                                          \
    }

struct watchdog {
    pthread_t thread;
    bool has_thread;
    int timer_fd;
    pthread_mutex_t mutex;
    struct watchdog_entry *armed;
    gavel_ns wake_at; /* what the timer is set to; NEVER if it is not */
    bool is_stopping;
    struct killer killer;
    /* The earliest of a session comes first: those that end the process, and those that report. */
    gavel_ns session_deadline;
    struct timers bound_to_abort;
    struct timers bound_to_report;
    struct watchdog_entry *bound_reported; /* was reported; to be bound again should the deadline move */
    struct timer session_kill;
    const struct watchdog_entry *reporting; /* its report() is under way */
    pthread_cond_t reported;                /* it has returned */
};

/* ERR_IO, ERR_NO_MEMORY; then watchdog_stop() is not needed, but harmless. */
GAVEL_CHECKED enum gavel_status watchdog_start(struct watchdog *watchdog);

/* Ends the thread. Safe on a zeroed struct. */
void watchdog_stop(struct watchdog *watchdog);

/* Makes room for `count` entries. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status watchdog_reserve(struct watchdog *watchdog, size_t count);

/*
 * Arms an entry, or moves the deadline of an armed one. The process is killed
 * at `kill_at` at the latest, which is not before the deadline.
 */
void watchdog_arm(struct watchdog *watchdog, struct watchdog_entry *entry, uint64_t epoch, gavel_ns deadline,
                  gavel_ns kill_at);

/*
 * Arms an entry with the deadline of the session less the margin, whatever that
 * becomes, and with `deadline`, which may be NEVER: whichever comes first. The
 * process is killed half a margin later.
 */
void watchdog_bind(struct watchdog *watchdog, struct watchdog_entry *entry, uint64_t epoch, gavel_ns margin,
                   gavel_ns deadline);

/*
 * The deadline of the session, for all that are bound to it. Another session has
 * other mandates: before it is told of, all entries were armed or disarmed.
 */
void watchdog_move_session(struct watchdog *watchdog, gavel_ns deadline);

/*
 * The work has stopped. Still aborts if the deadline has passed: which of two
 * threads wakes first after a freeze must not decide what happens. Waits for a
 * report that is under way.
 */
void watchdog_disarm(struct watchdog *watchdog, struct watchdog_entry *entry);

/* True the first time for an overrun: the caller then reports it, and the watchdog does not. */
bool watchdog_take_report(struct watchdog *watchdog, struct watchdog_entry *entry);

/* Waits until no report of this entry is under way. */
void watchdog_wait_for_report(struct watchdog *watchdog, const struct watchdog_entry *entry);

/* Whether the calling thread is the watchdog's, that is, inside a report. */
bool watchdog_is_reporter(const struct watchdog *watchdog);

#endif
