/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every row has the same columns, so that one table shape serves latencies,
 * shares and rates. A row goes into the JSON tree at once; notes are printed
 * from there when their section ends.
 */
#include "bench/report.h"

#include "base/histogram.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum gavel_status report_init(struct report *report, const struct cli *cli, const char *out)
{
    *report = (struct report){.cli = cli, .out = out, .sections = json_array()};
    return report->sections ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}

void report_done(struct report *report)
{
    json_decref(report->sections);
    *report = (struct report){0};
}

void report_section(struct report *report, const char *name, const char *title)
{
    static const char *const headings[] = {"measured", "n",    "p50", "p90", "p99",
                                           "max",      "unit", "aim", "",    NULL};
    const struct cli *cli = report->cli;

    report->section = name;
    report->rows = json_array();
    report->notes = json_array();
    /* What runs out of memory here is missing from the JSON, and shows there. */
    (void)json_array_append_new(report->sections,
                                json_pack("{s:s, s:s, s:o, s:o}", "name", name, "title", title, "rows",
                                          report->rows, "notes", report->notes));
    table_init(&report->table, headings);
    if (!cli->config.json) {
        (void)printf("\n%s%s: %s%s\n", style_begin(cli, STYLE_BOLD), name, title, style_end(cli, STYLE_BOLD));
        (void)fflush(stdout); /* a failure to write shows in cli_finish(); the forks need empty buffers */
    }
}

static bool has_aim(struct aim aim) { return aim.p50 > 0 || aim.p99 > 0 || aim.max > 0 || aim.is_none; }

static void aim_text(struct aim aim, char *buffer, size_t size)
{
    const struct {
        const char *name;
        double value;
    } parts[] = {{"p50 ", aim.p50}, {"p99 ", aim.p99}, {"max ", aim.max}};
    const char *sign = aim.is_rate ? ">=" : "<=";
    size_t length = 0;
    bool is_single = aim.p50 > 0 && aim.p99 <= 0 && aim.max <= 0;

    if (!has_aim(aim) || aim.is_none)
        (void)snprintf(buffer, size, "%s", aim.is_none ? "none" : "-");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].value > 0 && length < size)
            length += (size_t)snprintf(buffer + length, size - length, "%s%s%s %g", length ? ", " : "",
                                       is_single ? "" : parts[i].name, sign, parts[i].value);
}

static bool is_met(struct aim aim, double p50, double p99, double max)
{
    if (aim.is_none)
        return p50 <= 0;
    if (aim.is_rate)
        return p50 >= aim.p50;
    return (aim.p50 <= 0 || p50 <= aim.p50) && (aim.p99 <= 0 || p99 <= aim.p99) &&
           (aim.max <= 0 || max <= aim.max);
}

/* The columns of aim and judgement, and the same for JSON: true, false, or null without an aim or a
 * sample. */
static json_t *judge(struct report *report, struct aim aim, size_t count, double p50, double p99, double max)
{
    char text[64];

    aim_text(aim, text, sizeof text);
    table_cell(&report->table, STYLE_DIM, "%s", text);
    if (!has_aim(aim) || !count) {
        table_cell(&report->table, STYLE_PLAIN, "%s", "");
        return json_null();
    }
    bool met = is_met(aim, p50, p99, max);
    table_cell(&report->table, met ? STYLE_GREEN : STYLE_YELLOW, "%s", met ? "met" : "missed");
    report->missed += !met;
    return json_boolean(met);
}

/* The letters and digits of a name, and one dash between its words. */
static void file_words(const char *name, char *buffer, size_t size)
{
    size_t length = 0;

    for (const char *c = name; *c && length + 2 < size; c++) {
        if (!isalnum((unsigned char)*c))
            continue;
        if (length && !isalnum((unsigned char)c[-1]))
            buffer[length++] = '-';
        buffer[length++] = *c;
    }
    buffer[length] = '\0';
}

/* More would not show in a plot, and make it large. */
#define CURVE_POINTS 2000

/* The share of samples that are not larger, ready to be drawn. */
static void write_csv(struct report *report, const char *name, const struct samples *samples, double scale,
                      const char *unit)
{
    char path[PATH_MAX], words[128];
    FILE *file;

    if (!report->out)
        return;
    file_words(name, words, sizeof words);
    int length = snprintf(path, sizeof path, "%s/%s-%s.csv", report->out, report->section, words);
    if (length < 0 || (size_t)length >= sizeof path)
        return;
    file = fopen(path, "we");
    if (!file) {
        report_note(report, "cannot write %s: %s", path, strerror(errno));
        return;
    }
    (void)fprintf(file, "%s,share\n", unit);
    size_t step = (samples->count + CURVE_POINTS - 1) / CURVE_POINTS;
    for (size_t i = 0; i < samples->count; i++)
        if (i % step == 0 || i + 1 == samples->count)
            (void)fprintf(file, "%.6f,%.6f\n", (double)samples->values[i] / scale,
                          (double)(i + 1) / (double)samples->count);
    if (fclose(file) != 0)
        report_note(report, "cannot write %s: %s", path, strerror(errno));
}

/* Three digits that matter, without an exponent. */
static void figure(struct report *report, double value)
{
    table_cell(&report->table, STYLE_PLAIN, "%.*f",
               value < 1      ? 3
               : value < 10   ? 2
               : value < 1000 ? 1
                              : 0,
               value);
}

void report_samples(struct report *report, const char *name, struct samples *samples, double scale,
                    const char *unit, struct aim aim)
{
    double p50 = (double)samples_percentile(samples, 50) / scale;
    double p90 = (double)samples_percentile(samples, 90) / scale;
    double p99 = (double)samples_percentile(samples, 99) / scale;
    double max = (double)samples_percentile(samples, 100) / scale;

    table_cell(&report->table, STYLE_PLAIN, "%s", name);
    table_cell(&report->table, STYLE_PLAIN, "%zu", samples->count);
    figure(report, p50);
    figure(report, p90);
    figure(report, p99);
    figure(report, max);
    table_cell(&report->table, STYLE_PLAIN, "%s", unit);
    json_t *met = judge(report, aim, samples->count, p50, p99, max);
    (void)json_array_append_new(report->rows,
                                json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "name",
                                          name, "unit", unit, "n", (json_int_t)samples->count, "p50", p50,
                                          "p90", p90, "p99", p99, "max", max, "aim_p50", aim.p50, "aim_p99",
                                          aim.p99, "aim_max", aim.max, "met", met));
    write_csv(report, name, samples, scale, unit);
}

void report_value(struct report *report, const char *name, double value, const char *unit, struct aim aim)
{
    table_cell(&report->table, STYLE_PLAIN, "%s", name);
    table_cell(&report->table, STYLE_PLAIN, "1");
    figure(report, value);
    table_cell(&report->table, STYLE_PLAIN, "-");
    table_cell(&report->table, STYLE_PLAIN, "-");
    table_cell(&report->table, STYLE_PLAIN, "-");
    table_cell(&report->table, STYLE_PLAIN, "%s", unit);
    json_t *met = judge(report, aim, 1, value, value, value);
    (void)json_array_append_new(report->rows,
                                json_pack("{s:s, s:s, s:i, s:f, s:f, s:o}", "name", name, "unit", unit, "n",
                                          1, "value", value, "aim", aim.p50, "met", met));
}

void report_note(struct report *report, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)json_array_append_new(report->notes, json_string(text));
}

void report_section_end(struct report *report)
{
    size_t i;
    json_t *note;

    if (!report->cli->config.json) {
        if (json_array_size(report->rows))
            table_print(&report->table, report->cli, stdout);
        json_array_foreach(report->notes, i, note)
            (void)printf("  %s\n", json_string_value(note));
        (void)fflush(stdout); /* as above */
    }
    table_done(&report->table);
}
