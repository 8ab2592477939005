/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The story of a run, one line per thing that happens, with the real time in
 * seconds and the name of the process:
 *
 *      12.345678  a   became leader, epoch 3
 *
 * Text is made only when somebody reads it: all of it (--trace), or the last
 * lines before a violation, in a second run of the same seed.
 */
#ifndef SIM_CANDIDATE_TRACE_H
#define SIM_CANDIDATE_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#define TRACE_LINES 48
#define TRACE_WIDTH 200

struct trace {
    FILE *stream; /* every line goes here at once; NULL: only the last ones are kept */
    unsigned count;
    char lines[TRACE_LINES][TRACE_WIDTH];
};

struct world;
struct process;

void trace_line(struct world *world, const struct process *process, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The last lines, oldest first. */
void trace_print(const struct trace *trace, FILE *stream);

/* process may be NULL for something that concerns all. */
#define TRACE(world, process, ...)                                                                           \
    do {                                                                                                     \
        if ((world)->trace)                                                                                  \
            trace_line((world), (process), __VA_ARGS__);                                                     \
    } while (0)

/* What only a whole story tells, not the short one of a failure. */
#define TRACE_DETAIL(world, process, ...)                                                                    \
    do {                                                                                                     \
        if ((world)->trace && (world)->trace->stream)                                                        \
            trace_line((world), (process), __VA_ARGS__);                                                     \
    } while (0)

struct gavel_event;

/* What a candidate tells its subscribers. */
void trace_event(struct world *world, const struct process *process, const struct gavel_event *event);

#endif
