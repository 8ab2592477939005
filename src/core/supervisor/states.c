/* SPDX-License-Identifier: Apache-2.0 */

#include "core/supervisor/states.h"

#include "base/assert.h"

#define BIT(state) (1U << (state))

/* The diagram stands in supervisor.h; a test prints this table. */
static const struct {
    const char *name;
    unsigned allowed; /* bit set of next states */
} states[] = {
    [SUPERVISOR_EMPTY] = {"empty", BIT(SUPERVISOR_HOOK_ELECTED) | BIT(SUPERVISOR_STARTING)},
    [SUPERVISOR_HOOK_ELECTED] = {"hook_elected", BIT(SUPERVISOR_STARTING) | BIT(SUPERVISOR_CLEARING)},
    [SUPERVISOR_STARTING] = {"starting",
                             BIT(SUPERVISOR_RUNNING) | BIT(SUPERVISOR_STOPPING) | BIT(SUPERVISOR_CLEARING)},
    [SUPERVISOR_RUNNING] = {"running", BIT(SUPERVISOR_STOPPING) | BIT(SUPERVISOR_CLEARING)},
    [SUPERVISOR_STOPPING] = {"stopping", BIT(SUPERVISOR_CLEARING)},
    [SUPERVISOR_CLEARING] = {"clearing", BIT(SUPERVISOR_HOOK_DEMOTED) | BIT(SUPERVISOR_EMPTY)},
    [SUPERVISOR_HOOK_DEMOTED] = {"hook_demoted", BIT(SUPERVISOR_CLEARING)},
};

static const char *const causes[] = {
    [CAUSE_NONE] = "none",           [CAUSE_ORDERED] = "ordered",         [CAUSE_LAPSED] = "lapsed",
    [CAUSE_ENDED] = "ended",         [CAUSE_RESIGN] = "resign",           [CAUSE_LIMIT] = "restart_limit",
    [CAUSE_NOT_READY] = "not_ready", [CAUSE_HOOK_FAILED] = "hook_failed",
};

void supervisor_move(struct supervisor *supervisor, enum supervisor_state to)
{
    ASSERT((size_t)to < sizeof states / sizeof *states);
    ASSERT(supervisor_may_move(supervisor->state, to));
    if (to == SUPERVISOR_RUNNING)
        ASSERT(supervisor->current == supervisor->rules.child_count);
    for (size_t i = 0; to == SUPERVISOR_EMPTY && i < SUPERVISOR_SLOTS; i++)
        ASSERT(!supervisor->is_running[i]);
    supervisor->state = to;
}

bool supervisor_may_move(enum supervisor_state from, enum supervisor_state to)
{
    return (states[from].allowed & BIT(to)) != 0;
}

const char *supervisor_state_name(enum supervisor_state state) { return states[state].name; }

const char *supervisor_cause_name(enum supervisor_cause cause) { return causes[cause]; }
