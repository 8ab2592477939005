/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mutex that the consensus thread may take: whoever holds it inherits the
 * priority of whoever waits, so that a thread which is not running never keeps
 * the consensus thread. Hold it for a few copies, never for a call that waits.
 */
#ifndef DAEMON_SHARED_LOCK_H
#define DAEMON_SHARED_LOCK_H

#include <gavel/status.h>

#include <pthread.h>

GAVEL_CHECKED enum gavel_status lock_init(pthread_mutex_t *mutex);

#endif
