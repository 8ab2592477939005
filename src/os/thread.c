/* SPDX-License-Identifier: Apache-2.0 */

#include "os/thread.h"

#include "os/clock.h"

#include <signal.h>
#include <time.h>

int thread_start(pthread_t *ret_thread, const pthread_attr_t *attributes, const char *name,
                 void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    int failure;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* valid arguments cannot fail */
    failure = pthread_create(ret_thread, attributes, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failure)
        (void)pthread_setname_np(*ret_thread, name); /* only for people who look at the process */
    return failure;
}

/* None of these fails on Linux with these arguments. */
void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, gavel_ns until)
{
    gavel_ns left = until - clock_now();
    struct timespec limit;

    if (left <= 0)
        return false;
    /* Condition variables do not know CLOCK_BOOTTIME; an hour at a time also keeps NEVER from overflowing. */
    (void)clock_gettime(CLOCK_MONOTONIC, &limit); /* cannot fail with a valid clock and pointer */
    left = ns_min(left, 3600 * NS_PER_S) + limit.tv_nsec;
    limit.tv_sec += (time_t)(left / NS_PER_S);
    limit.tv_nsec = (long)(left % NS_PER_S);
    (void)pthread_cond_timedwait(condition, mutex, &limit);
    return true;
}
