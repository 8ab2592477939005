/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/loop/grid.h"

#define GRID_MAX_NS (50 * NS_PER_MS)

/* Of a session only the end of its term counts: what the machine knows of the deadline may be old. */
static gavel_ns stop_at(const struct candidate *machine)
{
    const struct store_session endless = {.number = machine->mandate_session, .deadline = NEVER};
    gavel_ns stop_at, deadline;

    candidate_times_in(machine, &endless, &stop_at, &deadline);
    return stop_at;
}

gavel_ns grid_wake_at(const struct candidate *machine, size_t groups)
{
    gavel_ns at = candidate_wake_at(machine);
    gavel_ns grid = ns_min(ns_from_ms(machine->settings.heartbeat_ms) / 10, GRID_MAX_NS);
    bool comes_round = at == machine->look_at || at == machine->beat_at || at == machine->list_at;

    if (groups <= GRID_ABOVE || at == NEVER || grid == 0)
        return at;
    if (!comes_round || (machine->state != CANDIDATE_LEADING && machine->state != CANDIDATE_STANDBY))
        return at;
    at = (at + grid - 1) / grid * grid;
    if (machine->state == CANDIDATE_LEADING)
        return ns_min(at, stop_at(machine));
    /* While a call is under way the machine waits for its answer: a claim that was due before cannot be
     * made. */
    return machine->calls[SLOT_MANDATE].is_pending ? at : ns_min(at, machine->claim_at);
}
