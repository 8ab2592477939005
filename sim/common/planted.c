/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/planted.h"

#include "base/planted.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum planted_bug planted_bug = PLANTED_BUG_NONE;

static const struct {
    const char *name;
    const char *what;
    enum planted_kind kind;
} bugs[] = {[PLANTED_BUG_NONE] = {"none", "no bug is planted", PLANTED_KIND_CANDIDATE},
#define PLANTED_ROW(name, text, what) [PLANTED_BUG_##name] = {text, what, PLANTED_KIND_CANDIDATE},
            PLANTED_CANDIDATE_MAP(PLANTED_ROW)
#undef PLANTED_ROW
#define PLANTED_ROW(name, text, what) [PLANTED_BUG_##name] = {text, what, PLANTED_KIND_RAFT},
                PLANTED_RAFT_MAP(PLANTED_ROW)
#undef PLANTED_ROW
#define PLANTED_ROW(name, text, what) [PLANTED_BUG_##name] = {text, what, PLANTED_KIND_SESSION},
                    PLANTED_SESSION_MAP(PLANTED_ROW)
#undef PLANTED_ROW
};

const char *planted_name(enum planted_bug bug) { return bugs[bug].name; }

bool planted_find(enum planted_kind kind, const char *name, enum planted_bug *ret_bug)
{
    for (unsigned i = 1; i < PLANTED_BUG_COUNT; i++) {
        if (bugs[i].kind == kind && strcmp(bugs[i].name, name) == 0) {
            *ret_bug = (enum planted_bug)i;
            return true;
        }
    }
    return false;
}

void planted_list(enum planted_kind kind)
{
    for (unsigned i = 1; i < PLANTED_BUG_COUNT; i++)
        if (bugs[i].kind == kind)
            (void)printf("%-28s %s\n", bugs[i].name, bugs[i].what);
}

unsigned planted_try_all(enum planted_kind kind, planted_run_cb run, void *context, uint64_t first,
                         uint64_t limit)
{
    unsigned missed = 0;

    (void)printf("%-28s %-18s %6s  %s\n", "planted bug", "caught by", "seeds", "what");
    for (unsigned i = 1; i < PLANTED_BUG_COUNT; i++) {
        const char *broken = NULL;
        uint64_t seeds = 0;

        if (bugs[i].kind != kind)
            continue;
        planted_bug = (enum planted_bug)i;
        while (!broken && seeds < limit)
            broken = run(context, first + seeds++);
        planted_bug = PLANTED_BUG_NONE;
        missed += !broken;
        (void)printf("%-28s %-18s %6" PRIu64 "  %s\n", bugs[i].name, broken ? broken : "MISSED", seeds,
                     bugs[i].what);
        (void)fflush(stdout); /* hunts take a while: show each as it ends */
    }
    return missed;
}
