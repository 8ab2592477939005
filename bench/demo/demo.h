/* SPDX-License-Identifier: Apache-2.0 */

/* What the parts of `gavel demo` share: the driver, its steps, the picture and the report. */
#ifndef BENCH_DEMO_DEMO_H
#define BENCH_DEMO_DEMO_H

#include "bench/props/rig.h"
#include "bench/props/runs.h"
#include "bench/props/timeline.h"
#include "cli/cli.h"
#include "cli/output.h"

#define DEMO_MEMBERS 3
#define DEMO_STEPS 7

struct demo_step {
    const char *name;         /* NULL: not begun */
    enum gavel_status status; /* of the step */
    gavel_ns took;
};

struct demo {
    const struct cli *cli;
    struct rig rig;
    struct runs runs;
    gavel_ns began;
    gavel_ns ended;
    struct mark leader; /* the start of its command; epoch 0: none has led yet */
    struct demo_step steps[DEMO_STEPS];
    size_t step_count;
    struct timeline timeline;
    uint64_t fenced;
    uint64_t lost;
};

/* The candidate's id and the colour of its row. */
extern const char *const demo_names[DEMO_MEMBERS];
extern const enum style demo_styles[DEMO_MEMBERS];

/* Takes the steps until one fails. */
void demo_run_steps(struct demo *demo);

/* Judges what was recorded so far, into demo->timeline. */
GAVEL_CHECKED enum gavel_status demo_judge(struct demo *demo);

/* One line of the story as it happens. */
void demo_tell(const struct demo *demo, uint32_t member, gavel_ns at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Every step happened, nothing was lost, and no two led at once. */
bool demo_passed(const struct demo *demo);

/* One row for each candidate, one column for each slice of time. */
void demo_print_picture(const struct demo *demo, FILE *file);

/* The table of mandates, the picture and the verdict. */
void demo_print_report(const struct demo *demo, FILE *file);

/* The same as one JSON object. False if there is no memory for it or it cannot be written. */
bool demo_print_json(const struct demo *demo, FILE *file);

/* The command, for its program. */
extern const struct flag demo_flags[];
int command_demo(const struct cli *cli, int argc, char **argv);

#endif
