/* SPDX-License-Identifier: Apache-2.0 */

/* The end of the demo: who led when, and the verdict, for people and as JSON. */
#include "bench/demo/demo.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

static double ms(gavel_ns ns) { return (double)ns / NS_PER_MS; }

static const char *ended_how(const struct mandate *mandate)
{
    switch (mandate->how) {
    case MANDATE_STOPPED:
        return "stopped in order";
    case MANDATE_DIED:
        return "killed; found dead by the next";
    case MANDATE_OPEN:
        break;
    }
    return mandate->is_elected ? "no end on record" : "was never elected";
}

static void print_mandates(const struct demo *demo, FILE *file)
{
    static const char *const headings[] = {"candidate", "epoch",  "from s", "until s",
                                           "beats",     "gap ms", "end",    NULL};
    const struct timeline *timeline = &demo->timeline;
    struct table table;

    table_init(&table, headings);
    for (size_t i = 0; i < timeline->count; i++) {
        const struct mandate *mandate = &timeline->mandates[i];
        table_cell(&table, demo_styles[mandate->member], "%s", demo_names[mandate->member]);
        table_cell(&table, STYLE_PLAIN, "%" PRIu64, mandate->epoch);
        table_cell(&table, STYLE_PLAIN, "%.3f", ms(mandate->begin - demo->began) / 1000);
        if (mandate->end == NEVER)
            table_cell(&table, STYLE_RED, "-");
        else
            table_cell(&table, STYLE_PLAIN, "%.3f", ms(mandate->end - demo->began) / 1000);
        table_cell(&table, STYLE_PLAIN, "%zu", mandate->beats);
        table_cell(&table, STYLE_PLAIN, "%.2f", ms(timeline_gap(timeline, i)));
        table_cell(&table, mandate->is_elected ? STYLE_PLAIN : STYLE_RED, "%s", ended_how(mandate));
    }
    table_print(&table, demo->cli, file);
    table_done(&table);
}

static void print_violation(const struct demo *demo, const struct violation *violation, FILE *file)
{
    const struct mandate *a = &demo->timeline.mandates[violation->a];
    const struct mandate *b = &demo->timeline.mandates[violation->b];
    const char *first = demo_names[a->member], *second = demo_names[b->member];
    double from = ms(violation->from - demo->began), to = ms(violation->to - demo->began);

    switch (violation->kind) {
    case VIOLATION_OVERLAP:
        if (violation->to == NEVER)
            (void)fprintf(file,
                          "    %s (epoch %" PRIu64 ") and %s (epoch %" PRIu64 ") both ran from %.3f ms on\n",
                          first, a->epoch, second, b->epoch, from);
        else
            (void)fprintf(
                file, "    %s (epoch %" PRIu64 ") and %s (epoch %" PRIu64 ") both ran from %.3f to %.3f ms\n",
                first, a->epoch, second, b->epoch, from, to);
        break;
    case VIOLATION_EPOCH:
        (void)fprintf(file,
                      "    %s began at %.3f ms with epoch %" PRIu64 ", not above epoch %" PRIu64 " of %s\n",
                      second, from, b->epoch, a->epoch, first);
        break;
    case VIOLATION_NO_MANDATE:
        (void)fprintf(
            file, "    %s acted from %.3f to %.3f ms with epoch %" PRIu64 " without having been elected\n",
            first, from, to, a->epoch);
        break;
    case VIOLATION_LATE_ACT:
        (void)fprintf(file,
                      "    %s (epoch %" PRIu64 ") acted at %.3f ms, and had to have stopped by %.3f ms\n",
                      first, a->epoch, from, to);
        break;
    case VIOLATION_ALIVE:
        (void)fprintf(file,
                      "    the command of %s (epoch %" PRIu64
                      ") was still there at %.3f ms, when the next began\n",
                      first, a->epoch, from);
        break;
    case VIOLATION_ORDER:
        (void)fprintf(
            file, "    the log took a beat of %s (epoch %" PRIu64 ") after one of %s (epoch %" PRIu64 ")\n",
            first, a->epoch, second, b->epoch);
        break;
    }
}

static const char *failure_text(enum gavel_status status)
{
    switch (status) {
    case GAVEL_ERR_TIMEOUT:
        return "it did not happen in time";
    case GAVEL_ERR_STOPPED:
        return "interrupted";
    case GAVEL_ERR_IO:
        return "a process failed";
    default:
        return gavel_status_text(status);
    }
}

static void print_steps_missed(const struct demo *demo, FILE *file)
{
    for (size_t i = 0; i < demo->step_count; i++)
        if (demo->steps[i].status != GAVEL_OK)
            (void)fprintf(file, "    the step \"%s\" failed after %.1f s: %s\n", demo->steps[i].name,
                          ms(demo->steps[i].took) / 1000, failure_text(demo->steps[i].status));
    if (demo->lost)
        (void)fprintf(file, "    %" PRIu64 " records were lost for want of room\n", demo->lost);
}

static const char *verdict(const struct demo *demo)
{
    if (demo->timeline.violation_count)
        return "two commands ran at once";
    return demo_passed(demo) ? "at no instant two commands" : "the demo did not finish";
}

void demo_print_report(const struct demo *demo, FILE *file)
{
    const struct timeline *timeline = &demo->timeline;
    enum style style = demo_passed(demo) ? STYLE_GREEN : STYLE_RED;

    (void)fprintf(file, "\nWho led when, as the commands wrote it down:\n\n");
    print_mandates(demo, file);
    (void)fprintf(file, "\n");
    demo_print_picture(demo, file);
    (void)fprintf(file, "\n%zu mandates, %zu beats of work, %" PRIu64 " refused by the fence\n",
                  timeline->count, timeline->beats, demo->fenced);
    (void)fprintf(file, "verdict: %s%s%s\n", style_begin(demo->cli, style), verdict(demo),
                  style_end(demo->cli, style));
    print_steps_missed(demo, file);
    for (size_t i = 0; i < timeline->violation_count && i < TIMELINE_VIOLATIONS_MAX; i++)
        print_violation(demo, &timeline->violations[i], file);
    if (timeline->violation_count > TIMELINE_VIOLATIONS_MAX)
        (void)fprintf(file, "    and %zu more\n", timeline->violation_count - TIMELINE_VIOLATIONS_MAX);
}

/* An end that never came is null. */
static json_t *instant(const struct demo *demo, gavel_ns at)
{
    return at == NEVER ? json_null() : json_real(ms(at - demo->began));
}

static json_t *mandates_json(const struct demo *demo)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < demo->timeline.count; i++) {
        const struct mandate *mandate = &demo->timeline.mandates[i];
        json_t *item = json_pack("{s:s, s:I, s:b, s:o, s:o, s:s, s:I, s:f}", "candidate",
                                 demo_names[mandate->member], "epoch", (json_int_t)mandate->epoch, "elected",
                                 mandate->is_elected, "from_ms", instant(demo, mandate->begin), "until_ms",
                                 instant(demo, mandate->end), "end", mandate_end_name(mandate->how), "beats",
                                 (json_int_t)mandate->beats, "gap_ms", ms(timeline_gap(&demo->timeline, i)));
        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *violations_json(const struct demo *demo)
{
    const struct timeline *timeline = &demo->timeline;
    json_t *list = json_array();

    for (size_t i = 0; list && i < timeline->violation_count && i < TIMELINE_VIOLATIONS_MAX; i++) {
        const struct violation *violation = &timeline->violations[i];
        const struct mandate *a = &timeline->mandates[violation->a], *b = &timeline->mandates[violation->b];
        json_t *item = json_pack(
            "{s:s, s:[{s:s, s:I}, {s:s, s:I}], s:o, s:o}", "kind", violation_name(violation->kind),
            "mandates", "candidate", demo_names[a->member], "epoch", (json_int_t)a->epoch, "candidate",
            demo_names[b->member], "epoch", (json_int_t)b->epoch, "from_ms", instant(demo, violation->from),
            "to_ms", instant(demo, violation->kind == VIOLATION_EPOCH ? NEVER : violation->to));
        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *steps_json(const struct demo *demo)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < demo->step_count; i++) {
        const struct demo_step *step = &demo->steps[i];
        json_t *item =
            json_pack("{s:s, s:b, s:s, s:f}", "name", step->name, "passed", step->status == GAVEL_OK,
                      "status", gavel_status_name(step->status), "took_ms", ms(step->took));
        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

bool demo_print_json(const struct demo *demo, FILE *file)
{
    json_t *root = json_pack("{s:s, s:b, s:f, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "verdict", verdict(demo),
                             "passed", demo_passed(demo), "took_ms", ms(demo->ended - demo->began), "beats",
                             (json_int_t)demo->timeline.beats, "fenced", (json_int_t)demo->fenced, "lost",
                             (json_int_t)demo->lost, "violation_count",
                             (json_int_t)demo->timeline.violation_count, "steps", steps_json(demo),
                             "mandates", mandates_json(demo), "violations", violations_json(demo));

    if (!root)
        return false;
    bool is_written =
        json_dumpf(root, file, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0 && fputc('\n', file) != EOF;
    json_decref(root);
    return is_written;
}
