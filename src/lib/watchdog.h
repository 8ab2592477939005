/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The watchdog keeps the promise that a leader's work has stopped by its
 * deadline even when the loop hangs in a callback or the process was frozen:
 * a thread of its own waits for the earliest deadline of any mandate whose
 * work is not known to have stopped, and aborts the process there.
 *
 * Renewals move deadlines further away all the time. They only write a
 * number; the thread finds out when the earlier deadline comes, looks for the
 * new earliest one and goes back to sleep.
 */
#ifndef LIB_WATCHDOG_H
#define LIB_WATCHDOG_H

#include "base/time.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* One mandate; part of the candidate that holds it. */
struct watchdog_entry {
    struct watchdog_entry *next;
    struct watchdog_entry *previous;
    gavel_ns deadline; /* NEVER: not armed, and in no list */
    uint64_t epoch;
    const char *group; /* borrowed, as long as it is armed */
};

struct watchdog {
    pthread_t thread;
    bool has_thread;
    int timer_fd;
    pthread_mutex_t mutex;
    struct watchdog_entry *armed;
    gavel_ns wake_at; /* what the timer is set to; NEVER if it is not */
    bool is_stopping;
};

/* ERR_IO, ERR_NO_MEMORY; then watchdog_stop() is not needed, but harmless. */
GAVEL_CHECKED enum gavel_status watchdog_start(struct watchdog *watchdog);

/* Ends the thread. Safe on a zeroed struct. */
void watchdog_stop(struct watchdog *watchdog);

/* Arms an entry, or moves the deadline of an armed one. */
void watchdog_arm(struct watchdog *watchdog, struct watchdog_entry *entry, uint64_t epoch, gavel_ns deadline);

/*
 * The work has stopped. Aborts if the deadline has passed all the same: which
 * of two threads woke first after a freeze must not decide what happens.
 */
void watchdog_disarm(struct watchdog *watchdog, struct watchdog_entry *entry);

#endif
