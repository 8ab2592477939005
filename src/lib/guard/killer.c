/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/guard/killer.h"

#include "os/clock.h"

#include <signal.h>

enum gavel_status killer_open(struct killer *killer)
{
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};

    *killer = (struct killer){.set_to = NEVER};
    if (timer_create(CLOCK_BOOTTIME, &how, &killer->timer) < 0)
        return GAVEL_ERR_IO;
    killer->has_timer = true;
    return GAVEL_OK;
}

void killer_close(struct killer *killer)
{
    if (killer->has_timer)
        (void)timer_delete(killer->timer); /* ours, so it cannot fail */
    killer->has_timer = false;
    timers_done(&killer->instants);
}

enum gavel_status killer_reserve(struct killer *killer, size_t count)
{
    return timers_reserve(&killer->instants, count);
}

void killer_set(struct killer *killer, struct timer *instant, gavel_ns at)
{
    struct itimerspec spec;
    const struct timer *first;

    timers_set(&killer->instants, instant, at);
    first = timers_first(&killer->instants);
    at = first ? first->at : NEVER;
    if (at == killer->set_to)
        return;
    killer->set_to = at;
    spec = clock_alarm(at);
    (void)timer_settime(killer->timer, TIMER_ABSTIME, &spec, NULL); /* cannot fail with these */
}
