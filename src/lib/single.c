/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/single.h"

#include "lib/handle.h"
#include "lib/member.h"
#include "os/clock.h"

static void emit(struct gavel_candidate *candidate, struct gavel_event event)
{
    event.at_ns = clock_now();
    event.group = candidate->group;
    event.candidate = candidate->id;
    if (!event.leader)
        event.leader = "";
    if (!event.previous)
        event.previous = "";
    event.phase = GAVEL_PHASE_READY;
    event.previous_phase = GAVEL_PHASE_READY;
    deliver_event(candidate, &event);
}

void single_start(struct gavel_candidate *candidate)
{
    publish_mandate(candidate->published, 0, NEVER);
    emit(candidate, (struct gavel_event){.kind = GAVEL_EVENT_BECAME_LEADER, .leader = candidate->id});
    candidate->work_runs = true;
    candidate->work_epoch = 0;
    deliver_elected(candidate);
}

void single_stop(struct gavel_candidate *candidate)
{
    publish_mandate(candidate->published, 0, 0);
    candidate->work_runs = false;
    deliver_demoted(candidate, GAVEL_REASON_STOPPED);
    emit(candidate,
         (struct gavel_event){.kind = GAVEL_EVENT_LOST_LEADERSHIP, .reason = GAVEL_REASON_STOPPED});
    emit(candidate, (struct gavel_event){.kind = GAVEL_EVENT_STOPPED});
    precedence_lock_first(&candidate->lock);
    candidate->has_ended = true;
    precedence_unlock(&candidate->lock);
}
