/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/instants.h"

#include "guard/spec.h"

/* So long a process takes to die when many do, on a busy machine; see gavel-run(1) on large trees. */
#define DEATH_OF_ONE (400 * NS_PER_US)

/* And so long it takes to give a page of memory back: a tenth of a second for a gigabyte. */
#define DEATH_OF_PAGE (400)

/* Reading more often than this would not help anybody. */
#define READ_EVERY (10 * NS_PER_MS)

gavel_ns instants_kill_at(const struct instants *instants)
{
    gavel_ns at = instants->deadline - guard_kill_lead(instants->grace) - instants->allowance;

    return ns_min(ns_max(at, instants->stop_at), instants->orphan_until);
}

gavel_ns instants_suicide_at(const struct instants *instants)
{
    /* As late as it helps: what the kernel kills dies at once, and after a stall of the machine the guard
     * itself should have its turn first. */
    return instants->deadline - guard_kill_lead(instants->grace) / 5;
}

gavel_ns instants_read_at(const struct instants *instants, gavel_ns now)
{
    gavel_ns left = ns_max(instants->stop_at - now, 0);

    return ns_min(now + ns_max(left / 2, READ_EVERY), ns_max(instants->stop_at, now));
}

size_t instants_count_max(const struct instants *instants)
{
    return (size_t)(instants->grace / 2 / DEATH_OF_ONE) + 1;
}

void instants_allow(struct instants *instants, size_t count, uint64_t pages)
{
    gavel_ns most = instants->grace / 2;
    gavel_ns for_pages = pages < (uint64_t)(most / DEATH_OF_PAGE) ? (gavel_ns)pages * DEATH_OF_PAGE : most;

    instants->allowance = ns_min(ns_min((gavel_ns)count * DEATH_OF_ONE, most) + for_pages, most);
}
