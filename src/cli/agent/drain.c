/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/agent/drain.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>

/* The clock of a condition stands still while the machine is suspended, ours does not: it is looked at
 * anew. */
#define LOOK_AGAIN_NS (100 * NS_PER_MS)

void drain_init(struct drain *drain)
{
    *drain = (struct drain){.is_lost = true};
    pthread_mutex_init(&drain->mutex, NULL);
    condition_init(&drain->changed);
}

void drain_done(struct drain *drain)
{
    pthread_cond_destroy(&drain->changed);
    pthread_mutex_destroy(&drain->mutex);
}

void drain_elected(struct drain *drain, uint64_t epoch)
{
    pthread_mutex_lock(&drain->mutex);
    drain->has_led = true;
    drain->is_lost = drain->has_stopped = false;
    drain->first = drain->newest = epoch;
    pthread_mutex_unlock(&drain->mutex);
}

void drain_renewed(struct drain *drain, uint64_t epoch)
{
    pthread_mutex_lock(&drain->mutex);
    if (!drain->is_lost && epoch > drain->newest)
        drain->newest = epoch;
    pthread_mutex_unlock(&drain->mutex);
}

void drain_lost(struct drain *drain)
{
    pthread_mutex_lock(&drain->mutex);
    drain->is_lost = true;
    pthread_mutex_unlock(&drain->mutex);
}

bool drain_wait(struct drain *drain, gavel_ns until)
{
    bool has_stopped;

    pthread_mutex_lock(&drain->mutex);
    while (!drain->has_stopped && clock_now() < until)
        (void)condition_wait(&drain->changed, &drain->mutex, ns_min(until, clock_now() + LOOK_AGAIN_NS));
    has_stopped = drain->has_stopped;
    pthread_mutex_unlock(&drain->mutex);
    return has_stopped;
}

static enum gavel_status judge(const struct drain *drain, uint64_t epoch, bool leads,
                               struct gavel_error *error)
{
    if (!drain->has_led)
        return error_set(error, GAVEL_ERR_STATE, "this candidate has not led yet, so nothing has to stop");
    if (epoch < drain->first)
        return error_set(error, GAVEL_ERR_TERM_STALE,
                         "epoch %" PRIu64 " ended long ago; that of the newest mandate is %" PRIu64, epoch,
                         drain->newest);
    if (epoch > drain->newest)
        return error_set(error, GAVEL_ERR_INVALID,
                         "this candidate has never had epoch %" PRIu64 "; its newest is %" PRIu64, epoch,
                         drain->newest);
    if (leads)
        return error_set(error, GAVEL_ERR_STATE,
                         "it leads with epoch %" PRIu64 " right now; POST /resign lets another lead", epoch);
    return GAVEL_OK;
}

enum gavel_status drain_stopped(struct drain *drain, uint64_t epoch, bool leads, struct gavel_error *error)
{
    enum gavel_status status;

    pthread_mutex_lock(&drain->mutex);
    status = judge(drain, epoch, leads, error);
    if (status == GAVEL_OK) {
        drain->has_stopped = true;
        pthread_cond_broadcast(&drain->changed);
    }
    pthread_mutex_unlock(&drain->mutex);
    return status;
}

void drain_look(struct drain *drain, struct drain_view *ret_view)
{
    pthread_mutex_lock(&drain->mutex);
    *ret_view = (struct drain_view){.is_working = drain->has_led && !drain->is_lost,
                                    .is_stopping = drain->has_led && drain->is_lost && !drain->has_stopped,
                                    .first = drain->first,
                                    .newest = drain->newest};
    pthread_mutex_unlock(&drain->mutex);
}
