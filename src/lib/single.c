/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/single.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "os/clock.h"

void single_start(struct gavel_candidate *candidate)
{
    struct gavel_event event;

    publish_mandate(candidate->published, 0, NEVER);
    candidate->work_runs = true;
    candidate->work_epoch = 0;
    candidate->single_since = clock_now();
    deliver_elected(candidate);
    event = deliver_blank_event(candidate, GAVEL_EVENT_BECAME_LEADER);
    event.leader = candidate->id;
    deliver_event(candidate, &event);
}

void single_stop(struct gavel_candidate *candidate)
{
    struct gavel_event event = deliver_blank_event(candidate, GAVEL_EVENT_LOST_LEADERSHIP);

    publish_mandate(candidate->published, 0, 0);
    event.reason = GAVEL_REASON_STOPPED;
    event.took_ms = ms_from_ns(event.at_ns - candidate->single_since);
    deliver_event(candidate, &event);
    candidate->work_runs = false;
    deliver_demoted(candidate, GAVEL_REASON_STOPPED);
    event = deliver_blank_event(candidate, GAVEL_EVENT_STOPPED);
    deliver_event(candidate, &event);
    precedence_lock_first(&candidate->lock);
    candidate->has_ended = true;
    precedence_unlock(&candidate->lock);
}
