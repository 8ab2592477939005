/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/trace.h"

#include "sim/candidate/world.h"

#include <stdarg.h>

void trace_line(struct world *world, const struct process *process, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    story_write(world->trace, world->now, process ? process->label : NULL, format, arguments);
    va_end(arguments);
}

void trace_event(struct world *world, const struct process *process, const struct gavel_event *event)
{
    const char *name = gavel_event_name(event->kind);
    unsigned long long epoch = event->epoch;

    switch (event->kind) {
    case GAVEL_EVENT_BECAME_LEADER:
    case GAVEL_EVENT_MANDATE_RENEWED:
    case GAVEL_EVENT_OVERRUN:
        TRACE(world, process, "%s: epoch %llu", name, epoch);
        break;
    case GAVEL_EVENT_LOST_LEADERSHIP:
        TRACE(world, process, "%s: %s, epoch %llu", name, gavel_reason_name(event->reason), epoch);
        break;
    case GAVEL_EVENT_LEADER_DOWN:
        TRACE(world, process, "%s: %s, epoch %llu", name, event->previous, epoch);
        break;
    case GAVEL_EVENT_LEADER_CHANGED:
        TRACE(world, process, "%s: %s -> %s, epoch %llu", name,
              event->previous[0] ? event->previous : "nobody", event->leader, epoch);
        break;
    case GAVEL_EVENT_BREAKER_OPEN:
    case GAVEL_EVENT_STOPPED:
        TRACE(world, process, "%s: %s", name, gavel_status_name(event->status));
        break;
    case GAVEL_EVENT_BREAKER_CLOSED:
        TRACE(world, process, "%s", name);
        break;
    case GAVEL_EVENT_PHASE_CHANGED:
        TRACE_DETAIL(world, process, "%s: %s -> %s", name, gavel_phase_name(event->previous_phase),
                     gavel_phase_name(event->phase));
        break;
    case GAVEL_EVENT_CANDIDATES_UPDATED:
        TRACE_DETAIL(world, process, "%s: %zu active", name, event->candidates);
        break;
    case GAVEL_EVENT_CONTENTION_DETECTED:
        TRACE_DETAIL(world, process, "%s: %lld ms instead of %lld", name, (long long)event->took_ms,
                     (long long)event->expected_ms);
        break;
    case GAVEL_EVENT_ELECTION_CHECK:
    case GAVEL_EVENT_HEARTBEAT:
    case GAVEL_EVENT_COUNT:
        break; /* too often to be worth a line */
    }
}
