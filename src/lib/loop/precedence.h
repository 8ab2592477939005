/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mutex at which the loop goes first. An ordinary mutex is not fair: a
 * program that asks for the leader in a tight loop would take it again and
 * again before the loop wakes up, until the mandate is lost for want of a
 * renewal. With this one, threads that only read step back while the loop
 * waits.
 */
#ifndef LIB_LOOP_PRECEDENCE_H
#define LIB_LOOP_PRECEDENCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct precedence {
    pthread_mutex_t mutex;
    _Atomic bool is_wanted; /* by the loop */
};

void precedence_init(struct precedence *lock);
void precedence_done(struct precedence *lock);

/* For the loop: only threads already waiting for the mutex itself may come before it. */
void precedence_lock_first(struct precedence *lock);

/* For everybody else. */
void precedence_lock(struct precedence *lock);

void precedence_unlock(struct precedence *lock);

#endif
