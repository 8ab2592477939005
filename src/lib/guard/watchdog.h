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
    gavel_ns deadline; /* NEVER: not armed, and in no list */
    uint64_t epoch;
    const char *group; /* borrowed while it is armed */
    /* Called once, by the watchdog's thread, instead of the abort; NULL: abort. */
    void (*report)(struct watchdog_entry *entry, uint64_t epoch);
    bool is_reported;
    struct timer kill; /* in the killer's list, unless this entry reports */
};

struct watchdog {
    pthread_t thread;
    bool has_thread;
    int timer_fd;
    pthread_mutex_t mutex;
    struct watchdog_entry *armed;
    gavel_ns wake_at; /* what the timer is set to; NEVER if it is not */
    bool is_stopping;
    struct killer killer;
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
