/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee on groups that are done for good: the success of at most one
 * mandate is recorded, by the process that had it and when nobody works; no
 * mandate comes after; and whoever is told how it ended is told the truth.
 */
#include "sim/candidate/referee.h"

#include "sim/candidate/network.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/world.h"

void referee_closed(struct world *world, const struct message *message, uint64_t epoch)
{
    struct referee *referee = &world->referee;
    const struct grant *grant = &referee->grants[epoch % GRANTS_KEPT];
    const char *label = world->processes[message->slot].label;

    if (referee->is_done)
        violate(world, INVARIANT_DONE, "%s closes the group, which was closed by %s before", label,
                world->processes[referee->done_slot].label);
    if (grant->epoch != epoch || grant->slot != message->slot || grant->incarnation != message->incarnation)
        violate(world, INVARIANT_DONE, "%s closes the group with epoch %llu, which is not its own", label,
                (unsigned long long)epoch);
    for (unsigned i = 0; i < world->profile.slots; i++) {
        const struct process *process = &world->processes[i];

        if (referee_is_active(world, process) && !(world->profile.faults & FAULT_BIT(FAULT_BREAK)))
            violate(world, INVARIANT_DONE, "%s closes the group while %s works", label, process->label);
    }
    referee->is_done = true;
    referee->done_slot = message->slot;
    referee->done_incarnation = message->incarnation;
}

void referee_stopped(struct world *world, const struct process *process, enum gavel_status status)
{
    const struct referee *referee = &world->referee;
    bool is_own = referee->is_done && referee->done_slot == process->slot &&
                  referee->done_incarnation == process->incarnation;

    /* Two that were long under way make the dead look alive; nobody can tell. */
    if (status == GAVEL_ERR_ID_IN_USE && world->profile.has_sessions && !referee_has_twin(world, process) &&
        process->late_keeps < 2)
        violate(world, INVARIANT_L1, "%s ends for good since another has its id, but there was none",
                process->label);
    if (status == GAVEL_ERR_DONE && !referee->is_done)
        violate(world, INVARIANT_DONE, "%s is told that the group is done, which it is not", process->label);
    if (status == GAVEL_OK && process->has_finished && !is_own)
        violate(world, INVARIANT_DONE, "%s is told that its success is recorded, which it is not",
                process->label);
}

/* How long a candidate may take part in a group that is done, in real time, once nothing goes wrong. */
static gavel_ns end_allowed(const struct world *world)
{
    const struct gavel_settings *worst = &world->profile.worst;
    struct gavel_bounds bounds;

    gavel_settings_bounds(worst, world->profile.slots, &bounds);
    /* A breaker that opened while somebody led may stay open for its whole reset time. */
    return 2 * ns_from_ms(bounds.gap_outage_ms + worst->breaker_reset_ms + worst->start_jitter_max_ms +
                          worst->observation_ms + worst->candidate_timeout_ms + worst->heartbeat_ms);
}

bool referee_probe_done(struct world *world)
{
    struct referee *referee = &world->referee;
    bool is_over = true;

    if (!referee->is_done)
        return false;
    if (referee->done_from == 0)
        referee->done_from = world->now;
    for (unsigned i = 0; i < world->profile.slots; i++) {
        const struct process *process = &world->processes[i];

        if (!process->is_alive)
            continue;
        is_over = false;
        if (world->now - referee->done_from > end_allowed(world))
            violate(world, INVARIANT_DONE, "%s still takes part in a group that is done", process->label);
    }
    if (is_over)
        referee->leader_seen_at = world->now; /* all is as it should be, which ends the run in time */
    return true;
}
