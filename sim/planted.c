/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/planted.h"

#include "sim/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum planted_bug planted_bug = PLANTED_BUG_NONE;

static const struct {
    const char *name;
    const char *what;
} bugs[] = {[PLANTED_BUG_NONE] = {"none", "no bug is planted"},
#define PLANTED_ROW(name, text, what) [PLANTED_BUG_##name] = {text, what},
            PLANTED_MAP(PLANTED_ROW)
#undef PLANTED_ROW
};

const char *planted_name(enum planted_bug bug) { return bugs[bug].name; }
const char *planted_what(enum planted_bug bug) { return bugs[bug].what; }

bool planted_find(const char *name, enum planted_bug *ret_bug)
{
    for (unsigned i = 1; i < PLANTED_BUG_COUNT; i++) {
        if (strcmp(bugs[i].name, name) == 0) {
            *ret_bug = (enum planted_bug)i;
            return true;
        }
    }
    return false;
}

void planted_list(void)
{
    for (unsigned i = 1; i < PLANTED_BUG_COUNT; i++)
        (void)printf("%-24s %s\n", bugs[i].name, bugs[i].what);
}

/* The first seed that shows the bug, or 0. */
static uint64_t hunt(struct world *world, const struct run_options *options, uint64_t limit,
                     struct run_result *ret_result)
{
    struct run_options one = *options;

    for (uint64_t i = 0; i < limit; i++) {
        one.seed = options->seed + i;
        run(world, &one, ret_result);
        if (ret_result->broken != INVARIANT_NONE)
            return i + 1;
    }
    return 0;
}

unsigned planted_try_all(struct world *world, const struct run_options *options, uint64_t limit)
{
    unsigned missed = 0;

    (void)printf("%-24s %-8s %6s  %s\n", "planted bug", "caught", "seeds", "what");
    for (unsigned i = 1; i < PLANTED_BUG_COUNT; i++) {
        struct run_result result;
        uint64_t seeds;

        planted_bug = (enum planted_bug)i;
        seeds = hunt(world, options, limit, &result);
        planted_bug = PLANTED_BUG_NONE;
        missed += seeds == 0;
        if (seeds == 0)
            (void)printf("%-24s %-8s %6" PRIu64 "  %s\n", bugs[i].name, "MISSED", limit, bugs[i].what);
        else
            (void)printf("%-24s %-8s %6" PRIu64 "  %s\n", bugs[i].name, invariant_name(result.broken), seeds,
                         bugs[i].what);
        (void)fflush(stdout); /* hunts take a while: show each as it ends */
    }
    return missed;
}
