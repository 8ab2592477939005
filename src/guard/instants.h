/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When the guard does what. Pure: only sums over the mandate's instants.
 *
 *   stop_at = deadline − grace    SIGTERM, in reverse order of the children
 *   kill_at                       SIGKILL to everything that is left: deadline − lead, earlier
 *                                 where many processes have to die, but a part of the grace always stays
 *   suicide_at                    the kernel kills the guard if it has not got there: frozen,
 *                                 starved; its children die with it
 *   deadline                      nothing is left
 */
#ifndef GUARD_INSTANTS_H
#define GUARD_INSTANTS_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>

struct instants {
    gavel_ns stop_at; /* of the mandate, as last read */
    gavel_ns deadline;
    gavel_ns grace;        /* of the mandate: from stop_at to the deadline */
    gavel_ns allowance;    /* for the death of many processes, see instants_allow() */
    gavel_ns orphan_until; /* the elector is dead: the end of the orphan grace; NEVER while it lives */
};

gavel_ns instants_kill_at(const struct instants *instants);
gavel_ns instants_suicide_at(const struct instants *instants);

/*
 * When to read the mandate again, since it is renewed all the time: half-way to
 * its end as we know it, so that neither the stop nor the kernel's kill is ever
 * near while renewals succeed.
 */
gavel_ns instants_read_at(const struct instants *instants, gavel_ns now);

/* How many processes it makes sense to count: more would not change the plan. */
size_t instants_count_max(const struct instants *instants);

/* Allows time for the death of `count` processes with `pages` of memory; at most half of the grace. */
void instants_allow(struct instants *instants, size_t count, uint64_t pages);

#endif
