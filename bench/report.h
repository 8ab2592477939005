/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The results of a bench: sections of rows, printed as tables while they come
 * in, and kept as JSON and CSV.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "cli/output.h"
#include "cli/samples.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct report {
    const struct cli *cli;
    const char *out; /* directory; NULL: no files */
    json_t *sections;
    json_t *rows;  /* of the current section; borrowed from it */
    json_t *notes; /* likewise */
    const char *section;
    struct table table;
    size_t missed; /* aims, in all sections */
};

/* report_done() is safe without report_init(). */
GAVEL_CHECKED enum gavel_status report_init(struct report *report, const struct cli *cli, const char *out);
void report_done(struct report *report);

void report_section(struct report *report, const char *name, const char *title);

/* The aim of a row; 0: none. For a rate, at least p50; for anything else, at most. */
struct aim {
    double p50;
    double p99;
    double max;
    bool is_rate;
    bool is_none; /* there must not be any: a count of 0 */
};

/* Percentiles of samples, shown after division by `scale` in `unit`. Also writes
 * <out>/<section>-<name>.csv. */
void report_samples(struct report *report, const char *name, struct samples *samples, double scale,
                    const char *unit, struct aim aim);

/* A single figure. */
void report_value(struct report *report, const char *name, double value, const char *unit, struct aim aim);

/* A line below the table. */
void report_note(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the table and the notes of the section. */
void report_section_end(struct report *report);

#endif
