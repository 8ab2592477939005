/* SPDX-License-Identifier: Apache-2.0 */

/* Starting a helper thread so that it does not get in the program's way. */
#ifndef LIB_LOOP_THREAD_H
#define LIB_LOOP_THREAD_H

#include <gavel/status.h>

#include <pthread.h>

/*
 * Starts a thread with all signals blocked, so that the program's handlers
 * run on the program's own threads. The name is at most 15 bytes.
 */
GAVEL_CHECKED enum gavel_status thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *),
                                             void *argument);

#endif
