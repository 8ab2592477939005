/* SPDX-License-Identifier: Apache-2.0 */

/* Helper threads that stay out of the program's way, and waiting for other threads with a limit. */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include "base/time.h"

#include <pthread.h>
#include <stdbool.h>

/*
 * Starts a thread with all signals blocked, so that the program's handlers run
 * on the program's own threads. The attributes may be NULL; the name has at
 * most 15 bytes. Returns 0 or an errno value.
 */
int thread_start(pthread_t *ret_thread, const pthread_attr_t *attributes, const char *name,
                 void *(*run)(void *), void *argument);

/* Initialises a condition for condition_wait(). */
void condition_init(pthread_cond_t *condition);

/*
 * Waits for a signal, at most until that instant of clock_now(); false if the
 * instant has come. It may return early, so the caller checks its condition again.
 */
bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, gavel_ns until);

#endif
