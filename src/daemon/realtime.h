/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who runs first. The consensus thread and the disk thread, for whose commits
 * an election waits, must not wait for the API, nor for other programs; where
 * the system permits it, they are scheduled before all others (SCHED_FIFO),
 * and their memory stays in memory.
 *
 * The guard is only eager (nice -20). Whoever takes a dead process by wait(2)
 * has the kernel throw away its entries of /proc, and that waits for whoever
 * is looking at them (ps, a monitoring agent). Under SCHED_FIFO the onlooker
 * would never get to run on that processor, and everything on it would stand
 * still for up to a second.
 */
#ifndef DAEMON_REALTIME_H
#define DAEMON_REALTIME_H

#include <pthread.h>
#include <stdbool.h>

enum realtime {
    REALTIME_NO,
    REALTIME_EAGER, /* before ordinary ones */
    REALTIME_FIRST, /* before all; must not wait(2), nor look at /proc */
};

/* For the calling thread; threads and processes that it starts do not inherit it. False if not permitted. */
bool realtime_take(enum realtime realtime);

/* Keeps what the process uses in memory, where that cannot make later allocations fail. False if not. */
bool realtime_lock_memory(void);

/* Starts a thread that takes no signals, with a small stack. As pthread_create(). */
int realtime_thread(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *user,
                    enum realtime realtime);

#endif
