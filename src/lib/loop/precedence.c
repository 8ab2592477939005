/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/loop/precedence.h"

#include <time.h>

/* Long enough for the loop to get the mutex, short enough for nobody to notice. */
#define STEP_BACK_NS 20000

void precedence_init(struct precedence *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
    atomic_init(&lock->is_wanted, false);
}

void precedence_done(struct precedence *lock) { pthread_mutex_destroy(&lock->mutex); }

void precedence_lock_first(struct precedence *lock)
{
    if (pthread_mutex_trylock(&lock->mutex) == 0)
        return;
    atomic_store(&lock->is_wanted, true);
    pthread_mutex_lock(&lock->mutex);
    atomic_store(&lock->is_wanted, false);
}

void precedence_lock(struct precedence *lock)
{
    const struct timespec step_back = {.tv_nsec = STEP_BACK_NS};

    /* A real sleep, not a yield: a reader of high priority would yield to nobody. */
    while (atomic_load(&lock->is_wanted))
        (void)nanosleep(&step_back, NULL); /* cut short is as good */
    pthread_mutex_lock(&lock->mutex);
}

void precedence_unlock(struct precedence *lock) { pthread_mutex_unlock(&lock->mutex); }
