/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The story of a run, one line per event, with the real time in seconds and the
 * process it concerns:
 *
 *      12.345678  a   became leader, epoch 3
 *
 * Text is made only when it is wanted: all of it (--trace), or the last lines
 * before a violation, in a second run of the same seed.
 */
#ifndef SIM_COMMON_STORY_H
#define SIM_COMMON_STORY_H

#include "base/time.h"

#include <stdarg.h>
#include <stdio.h>

#define TRACE_LINES 64
#define TRACE_WIDTH 220

struct trace {
    FILE *stream; /* every line goes here at once; NULL: only the last ones are kept */
    unsigned count;
    char lines[TRACE_LINES][TRACE_WIDTH];
};

/* One line; label is NULL for something that concerns all. */
void story_write(struct trace *trace, gavel_ns now, const char *label, const char *format, va_list arguments)
    __attribute__((format(printf, 4, 0)));

/*
 * A line of a world that has a `trace`, written by its function `tell`, which
 * is not called when no story is wanted. DETAIL lines are left out of the short
 * story of a failure.
 */
#define STORY(world, tell, whom, ...)                                                                        \
    do {                                                                                                     \
        if ((world)->trace)                                                                                  \
            tell((world), (whom), __VA_ARGS__);                                                              \
    } while (0)
#define STORY_DETAIL(world, tell, whom, ...)                                                                 \
    do {                                                                                                     \
        if ((world)->trace && (world)->trace->stream)                                                        \
            tell((world), (whom), __VA_ARGS__);                                                              \
    } while (0)

/* The last lines, oldest first. */
void story_print(const struct trace *trace, FILE *stream);

#endif
