/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Scheduling. The consensus thread and the disk thread, for whose commits an
 * election waits, must not wait for the API or for other programs. Where the
 * system permits it, they are scheduled before all others (SCHED_FIFO), and the
 * memory of the process is locked.
 *
 * The guard only runs at nice -20. When a dead process is reaped by wait(2), the
 * kernel drops its entries in /proc, and that waits for any process that reads
 * them (ps, a monitoring agent). Under SCHED_FIFO that reader would never get to
 * run on that processor, and everything on it would stall for up to a second.
 */
#ifndef DAEMON_REALTIME_H
#define DAEMON_REALTIME_H

#include <pthread.h>
#include <stdbool.h>

enum realtime {
    REALTIME_NO,
    REALTIME_EAGER, /* nice -20: before ordinary threads */
    REALTIME_FIRST, /* before all; must not call wait(2) or look at /proc */
};

/* For the calling thread; threads and processes that it starts do not inherit it. False if not permitted. */
bool realtime_take(enum realtime realtime);

/* Locks the memory of the process, unless that could make later allocations fail. False if not locked. */
bool realtime_lock_memory(void);

/* Starts a thread that takes no signals, with a small stack. Returns as pthread_create() does. */
int realtime_thread(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *user,
                    enum realtime realtime);

#endif
