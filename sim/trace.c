/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/trace.h"

#include "sim/world.h"

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
