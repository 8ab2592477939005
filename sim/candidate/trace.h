/* SPDX-License-Identifier: Apache-2.0 */

/* The story of a run of candidates; see sim/common/story.h. */
#ifndef SIM_CANDIDATE_TRACE_H
#define SIM_CANDIDATE_TRACE_H

#include "sim/common/story.h"

struct world;
struct process;

void trace_line(struct world *world, const struct process *process, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* `process` is NULL for something that concerns all. */
#define TRACE(world, process, ...) STORY(world, trace_line, process, __VA_ARGS__)
#define TRACE_DETAIL(world, process, ...) STORY_DETAIL(world, trace_line, process, __VA_ARGS__)

struct gavel_event;

/* What a candidate tells its subscribers. */
void trace_event(struct world *world, const struct process *process, const struct gavel_event *event);

#endif
