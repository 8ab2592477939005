/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who runs first. The consensus and the disk thread must not wait for the
 * API, nor for other programs; where the system permits it they are scheduled
 * before all others (SCHED_FIFO), and their memory stays in memory.
 */
#ifndef DAEMON_REALTIME_H
#define DAEMON_REALTIME_H

#include <pthread.h>
#include <stdbool.h>

enum realtime { REALTIME_NO, REALTIME_FIRST, REALTIME_LAST /* after the others of this process */ };

/* For the calling thread; threads and processes that it starts do not inherit it. False if not permitted. */
bool realtime_take(enum realtime realtime);

/* Keeps what the process uses in memory, where that cannot make later allocations fail. False if not. */
bool realtime_lock_memory(void);

/* Starts a thread that takes no signals, with a small stack. As pthread_create(). */
int realtime_thread(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *user,
                    enum realtime realtime);

#endif
