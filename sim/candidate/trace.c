/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/trace.h"

#include "sim/candidate/world.h"

#include <stdarg.h>

void trace_line(struct world *world, const struct process *process, const char *format, ...)
{
    struct trace *trace = world->trace;
    char *line = trace->lines[trace->count++ % TRACE_LINES];
    va_list arguments;
    int length;

    length = snprintf(line, TRACE_WIDTH, "%12.6f  %-3s ", (double)world->now / (double)NS_PER_S,
                      process ? process->label : "*");
    if (length < 0 || length >= TRACE_WIDTH)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line + length, TRACE_WIDTH - (size_t)length, format, arguments); /* cut off if too long */
    va_end(arguments);
    if (trace->stream)
        (void)fprintf(trace->stream, "%s\n", line); /* a closed pipe ends the program anyway */
}

void trace_print(const struct trace *trace, FILE *stream)
{
    unsigned first = trace->count > TRACE_LINES ? trace->count - TRACE_LINES : 0;

    for (unsigned i = first; i < trace->count; i++)
        (void)fprintf(stream, "%s\n", trace->lines[i % TRACE_LINES]);
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
