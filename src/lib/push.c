/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/push.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/loop/loop.h"

/* So many groups in one pass; the descriptor stays readable for the rest, and timers come in between. */
#define GROUPS_PER_PASS 256

static void ready(struct gavel *gavel, struct source *source)
{
    char group[NAME_MAX_BYTES + 1];

    (void)source;
    if (gavel->capabilities.has_sessions)
        return; /* each pass takes in the news */
    for (int i = 0; i < GROUPS_PER_PASS && store_changed(gavel->store, group); i++)
        lib_candidate_doorbell_all(gavel, group);
}

enum gavel_status push_open(struct gavel *gavel)
{
    gavel->push = (struct source){.fd = gavel->store ? store_push_fd(gavel->store) : -1, .ready = ready};
    return gavel->push.fd < 0 ? GAVEL_OK : loop_add(gavel, &gavel->push);
}

void push_join(struct gavel_candidate *candidate)
{
    if (candidate->is_pushed || candidate->gavel->push.fd < 0 || candidate->gavel->capabilities.has_sessions)
        return;
    candidate->is_pushed = true;
    store_watch(candidate->gavel->store, candidate->group, true);
}

void push_leave(struct gavel_candidate *candidate)
{
    if (!candidate->is_pushed)
        return;
    candidate->is_pushed = false;
    store_watch(candidate->gavel->store, candidate->group, false);
}
