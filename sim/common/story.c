/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/story.h"

void story_write(struct trace *trace, gavel_ns now, const char *label, const char *format, va_list arguments)
{
    char *line = trace->lines[trace->count++ % TRACE_LINES];
    int length =
        snprintf(line, TRACE_WIDTH, "%12.6f  %-3s ", (double)now / (double)NS_PER_S, label ? label : "*");

    if (length < 0 || length >= TRACE_WIDTH)
        return;
    (void)vsnprintf(line + length, TRACE_WIDTH - (size_t)length, format, arguments); /* cut off if too long */
    if (trace->stream)
        (void)fprintf(trace->stream, "%s\n", line); /* a closed pipe ends the program anyway */
}

void story_print(const struct trace *trace, FILE *stream)
{
    unsigned first = trace->count > TRACE_LINES ? trace->count - TRACE_LINES : 0;

    for (unsigned i = first; i < trace->count; i++)
        (void)fprintf(stream, "%s\n", trace->lines[i % TRACE_LINES]);
}
