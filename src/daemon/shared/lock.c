/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/lock.h"

enum gavel_status lock_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    int failure;

    if (pthread_mutexattr_init(&attributes))
        return GAVEL_ERR_NO_MEMORY;
    (void)pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT); /* without it: a little slower */
    failure = pthread_mutex_init(mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    return failure ? GAVEL_ERR_NO_MEMORY : GAVEL_OK;
}
