/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/work.h"

#include "base/planted.h"
#include "sim/candidate/network.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/world.h"

bool work_believes(const struct process *process, gavel_ns local)
{
    if (PLANTED(IS_LEADER_WITHOUT_CLOCK))
        return process->mandate_epoch != 0;
    return process->mandate_epoch > process->fenced_epoch && local < process->stop_at;
}

/* A watchdog is a timer too and may be late; the stop margin is there for that. */
static gavel_ns watchdog_at(struct world *world, const struct process *process)
{
    gavel_ns margin = ns_from_ms(process->candidate.settings.stop_margin_ms);
    gavel_ns late = world_between(world, STREAM_WORK, 0, margin - margin / 8);
    gavel_ns at = ns_max(clock_real(&process->clock, process->deadline), world->now);

    return world_has(world, FAULT_STALL) ? at + late : at;
}

void work_follow_session(struct world *world, struct process *process)
{
    const struct gavel_settings *s = &process->candidate.settings;
    gavel_ns deadline = process->session.deadline - ns_from_ms(s->stop_margin_ms);

    if (process->mandate_epoch == 0)
        return;
    process->deadline = ns_min(deadline, process->term_ends_at);
    process->stop_at = process->deadline - ns_from_ms(s->stop_grace_ms);
    referee_check_exclusive(world, process);
}

void work_mandate(struct world *world, struct process *process, const struct candidate_action *action)
{
    uint64_t epoch = action->mandate.epoch;

    if (epoch != 0) {
        referee_mandate(world, process, epoch);
        process->stop_at = action->mandate.stop_at;
        process->deadline = action->mandate.deadline;
        process->term_ends_at = action->mandate.term_ends_at;
    }
    if (epoch != process->mandate_epoch)
        TRACE(world, process, epoch ? "may lead, epoch %llu" : "may no longer lead",
              (unsigned long long)epoch);
    process->mandate_epoch = epoch;
    if (epoch == 0)
        return;
    referee_check_exclusive(world, process);
    if (!process->watchdog_waits) {
        process->watchdog_waits = true;
        (void)world_push(world, watchdog_at(world, process), EVENT_WATCHDOG, process->slot);
    }
}

static void plan_act(struct world *world, const struct process *process)
{
    gavel_ns lease = ns_from_ms(process->candidate.settings.lease_ms);
    gavel_ns delay = world_between(world, STREAM_WORK, lease / 1000, lease / 4);

    world_push(world, world->now + delay, EVENT_ACT, process->slot)->number = process->work_number;
}

/* Some work comes to its end for good, sooner or later, also while it is being stopped. */
static void plan_finish(struct world *world, const struct process *process)
{
    gavel_ns lease = ns_from_ms(process->candidate.settings.lease_ms);
    bool is_drawn = prng_chance(&world->streams[STREAM_FINISH], 400);
    gavel_ns delay = world_between(world, STREAM_FINISH, 0, 4 * lease);

    if (is_drawn && world->profile.faults & FAULT_BIT(FAULT_FINISH))
        world_push(world, world->now + delay, EVENT_FINISH, process->slot)->number = process->work_number;
}

void work_start(struct world *world, struct process *process, uint64_t epoch)
{
    if (process->work_runs)
        violate(world, INVARIANT_ORDER, "%s starts work while its work already runs", process->label);
    if (process->mandate_epoch != epoch)
        violate(world, INVARIANT_ORDER, "%s starts work of epoch %llu without that mandate", process->label,
                (unsigned long long)epoch);
    referee_check_again(world, process, epoch);
    process->gave_up_at = 0;
    process->work_runs = true;
    process->work_number++;
    TRACE(world, process, "starts its work, epoch %llu", (unsigned long long)epoch);
    referee_check_exclusive(world, process);
    plan_act(world, process);
    plan_finish(world, process);
}

void work_stop(struct world *world, struct process *process, enum gavel_reason reason, gavel_ns deadline)
{
    gavel_ns grace = ns_from_ms(process->candidate.settings.stop_grace_ms);
    bool overruns = world_fault(world, STREAM_WORK, FAULT_OVERRUN, 500);
    gavel_ns took =
        world_between(world, STREAM_WORK, 0, world->profile.mood == MOOD_CALM ? grace / 2 : grace);
    gavel_ns longer = world_between(world, STREAM_WORK, 0, 3 * grace + NS_PER_S);

    TRACE(world, process, "must stop its work: %s", gavel_reason_name(reason));
    process->deadline = deadline;
    referee_demoted(world, process, gavel_reason_name(reason));
    if (!process->work_runs) { /* its guard has ended it */
        (void)world_push(world, world->now, EVENT_TOLD, process->slot);
        return;
    }
    world_push(world, world->now + took + (overruns ? longer : 0), EVENT_STOPPED, process->slot)->number =
        process->work_number;
}

static void look_at_deadline(struct world *world, struct process *process)
{
    process->watchdog_waits = false;
    if (!process->work_runs && process->mandate_epoch == 0)
        return;
    if (process->work_runs && clock_local(&process->clock, world->now) >= process->deadline) {
        process_die(world, process, "is aborted by its watchdog: its work has not stopped by the deadline");
        return;
    }
    if (clock_local(&process->clock, world->now) >= process->deadline)
        return; /* a mandate without work; its next renewal wakes the watchdog again */
    process->watchdog_waits = true;
    (void)world_push(world, watchdog_at(world, process), EVENT_WATCHDOG, process->slot);
}

void work_take(struct world *world, struct process *process, const struct event *event)
{
    if (event->kind == EVENT_WATCHDOG) {
        look_at_deadline(world, process);
        return;
    }
    if (!process->work_runs || event->number != process->work_number)
        return;
    if (event->kind == EVENT_STOPPED) {
        process->work_runs = false;
        TRACE(world, process, "has stopped its work");
        (void)world_push(world, world->now, EVENT_TOLD, process->slot);
        return;
    }
    if (work_believes(process, clock_local(&process->clock, world->now)))
        network_write(world, process, process->mandate_epoch);
    plan_act(world, process);
}

void work_write(struct world *world, const struct event *event)
{
    struct process *process = &world->processes[event->slot];

    if (!fence_allows(&world->resource, event->number, world->now, world->now, 0)) {
        world->referee.rejected_writes++;
        TRACE(world, process, "the resource rejects a write of epoch %llu",
              (unsigned long long)event->number);
        return;
    }
    fence_note(&world->resource, event->number, world->now);
    referee_wrote(world, process, event->incarnation, event->number);
}
