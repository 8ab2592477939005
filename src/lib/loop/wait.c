/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waiting for the loop. With a thread of ours that is a condition variable.
 * Without one somebody must drive the loop meanwhile, and if nobody does, the
 * waiting thread does it itself: a program may leave a group from the same
 * thread that calls gavel_dispatch().
 */
#include "lib/handle.h"
#include "lib/loop/loop.h"
#include "os/clock.h"
#include "os/thread.h"

/* The longest that one wait goes on without looking again. */
#define WAIT_MAX_MS 1000

bool handle_is_driver(struct gavel *gavel)
{
    bool is_driver;

    pthread_mutex_lock(&gavel->mutex);
    is_driver = gavel->is_driving && pthread_equal(gavel->driver, pthread_self());
    pthread_mutex_unlock(&gavel->mutex);
    return is_driver;
}

bool handle_is_callback(struct gavel *gavel)
{
    return watchdog_is_reporter(&gavel->watchdog) || handle_is_driver(gavel);
}

/* How long to wait at once, rounded up so that the end is not waited for in a busy loop. */
static int64_t wait_ms(gavel_ns until)
{
    gavel_ns left = until == NEVER ? NEVER : until - clock_now();

    if (left <= 0)
        return 0;
    return left > WAIT_MAX_MS * NS_PER_MS ? WAIT_MAX_MS : (left + NS_PER_MS - 1) / NS_PER_MS;
}

static void wait_for_change(struct gavel *gavel, int64_t ms)
{
    gavel->waiters++;
    (void)condition_wait(&gavel->changed, &gavel->mutex, clock_now() + ns_from_ms(ms)); /* or looks again */
    gavel->waiters--;
}

bool loop_take_over(struct gavel *gavel)
{
    if (gavel->is_driving)
        return false;
    gavel->is_driving = true;
    gavel->driver = pthread_self();
    return true;
}

void loop_hand_back(struct gavel *gavel)
{
    gavel->is_driving = false;
    pthread_cond_broadcast(&gavel->changed);
}

bool loop_wait(struct gavel *gavel, bool (*is_done)(void *argument), void *argument, gavel_ns until)
{
    while (!is_done(argument)) {
        int64_t ms = wait_ms(until);

        if (ms == 0)
            return false;
        if (gavel->is_threaded || gavel->is_driving) {
            wait_for_change(gavel, ms);
            continue;
        }
        (void)loop_take_over(gavel); /* nobody drives, so it is ours at once */
        pthread_mutex_unlock(&gavel->mutex);
        loop_pass(gavel, (int)ms);
        pthread_mutex_lock(&gavel->mutex);
        loop_hand_back(gavel);
    }
    return true;
}
