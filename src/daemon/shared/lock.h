/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mutex that the consensus thread may take. Its holder inherits the priority of
 * the thread that waits, so that a holder which is not running cannot block the
 * consensus thread for long. Hold it for a few copies, never during a call that
 * waits.
 */
#ifndef DAEMON_SHARED_LOCK_H
#define DAEMON_SHARED_LOCK_H

#include <gavel/status.h>

#include <pthread.h>

GAVEL_CHECKED enum gavel_status lock_init(pthread_mutex_t *mutex);

#endif
