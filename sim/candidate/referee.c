/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/referee.h"

#include "sim/candidate/network.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/work.h"
#include "sim/candidate/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What an event may take in the world: more means that it runs away. */
#define EVENTS_MAX 5000000

const struct named invariants[] = {[INVARIANT_NONE] = {"none", "nothing is broken"},
#define INVARIANT_ROW(name, text, what) [INVARIANT_##name] = {text, what},
                                   INVARIANT_MAP(INVARIANT_ROW)
#undef INVARIANT_ROW
};

_Noreturn void violate(struct world *world, enum invariant invariant, const char *format, ...)
{
    va_list arguments;

    world->referee.broken = invariant;
    va_start(arguments, format);
    (void)vsnprintf(world->referee.what, sizeof world->referee.what, format,
                    arguments); /* cut off if too long */
    va_end(arguments);
    TRACE(world, NULL, "VIOLATION of %s: %s", invariants[invariant].name, world->referee.what);
    longjmp(world->escape, 1);
}

static bool rates_keep_the_bound(const struct world *world)
{
    return !(world->profile.faults & FAULT_BIT(FAULT_BREAK));
}

bool referee_is_active(const struct world *world, const struct process *process)
{
    if (!process->is_alive || process_is_frozen(process, world->now))
        return false;
    return process->work_runs || work_believes(process, clock_local(&process->clock, world->now));
}

void referee_check_exclusive(struct world *world, const struct process *process)
{
    if (!rates_keep_the_bound(world) || !referee_is_active(world, process))
        return;
    for (unsigned i = 0; i < world->profile.slots; i++) {
        const struct process *other = &world->processes[i];

        if (other != process && referee_is_active(world, other))
            violate(world, INVARIANT_S4, "%s (epoch %llu, %s) and %s (epoch %llu, %s) lead at the same time",
                    process->label, (unsigned long long)process->candidate.epoch,
                    process->work_runs ? "works" : "believes", other->label,
                    (unsigned long long)other->candidate.epoch, other->work_runs ? "works" : "believes");
    }
}

struct grant *referee_grant(struct world *world, uint64_t epoch)
{
    struct grant *grant = &world->referee.grants[epoch % GRANTS_KEPT];

    return grant->epoch == epoch ? grant : NULL;
}

/* Whether somebody has asked for another leader; the minimum mandate may still have to pass. */
static bool is_wish_open(const struct world *world)
{
    const struct record *record = &world->store.record;

    if (record->wish_epoch != 0 && record->wish_epoch == record->epoch)
        return true;
    for (unsigned i = 0; i < world->profile.slots; i++) {
        const struct candidate *machine = &world->processes[i].candidate;

        if (world->processes[i].is_alive && machine->wish_epoch != 0 && machine->wish_epoch == machine->epoch)
            return true;
    }
    return false;
}

/* L2 holds where nothing goes wrong and nobody commands: in calm runs, and at the end of the others. */
static bool is_stable(const struct world *world)
{
    unsigned harmless = FAULT_BIT(FAULT_RATE) | FAULT_BIT(FAULT_MIXED) | FAULT_BIT(FAULT_FINISH);

    if (!rates_keep_the_bound(world))
        return false;
    if (is_wish_open(world))
        return false;
    return (world->profile.faults & ~harmless) == 0 || world->referee.stable_from > 0;
}

/* Whether the settings of a leader let it hand over to a better candidate. */
static bool may_be_preempted(const struct world *world, unsigned slot)
{
    const struct gavel_settings *settings = &world->profile.settings[slot];

    if (world->profile.has_sessions) /* then these are the group's */
        return world->granting.preempts && world->granting.policy != GAVEL_POLICY_FIRST;
    return settings->preempt && settings->policy != GAVEL_POLICY_FIRST;
}

void referee_granted(struct world *world, const struct grant *granted, unsigned previous_slot)
{
    struct referee *referee = &world->referee;
    const struct process *process = &world->processes[granted->slot];
    const struct grant *previous = referee_grant(world, referee->last_epoch);
    /* Who is granted a mandate that it cannot take up gives it back, and was no leader. */
    bool was_led = !world->profile.has_sessions || (previous && previous->was_led);
    unsigned long long epoch = granted->epoch;

    if (granted->epoch <= referee->last_epoch)
        violate(world, INVARIANT_S1, "%s is granted epoch %llu after epoch %llu was granted", process->label,
                epoch, (unsigned long long)referee->last_epoch);
    if (referee->is_done)
        violate(world, INVARIANT_DONE, "%s is granted epoch %llu of a group that is done", process->label,
                epoch);
    if (referee->grant_count == 0)
        referee_first_granted(world, process);
    referee->last_epoch = granted->epoch;
    referee->grant_count++;
    referee->grants[granted->epoch % GRANTS_KEPT] = *granted;
    if (previous_slot == SLOTS_MAX || !was_led || !is_stable(world) || may_be_preempted(world, previous_slot))
        return;
    if (previous_slot == granted->slot && world->profile.settings[granted->slot].max_mandate_ms > 0)
        return;
    violate(world, INVARIANT_L2, "%s replaces %s as epoch %llu although nothing is wrong", process->label,
            world->processes[previous_slot].label, epoch);
}

/* Whether the last leader was lost less than the takeover delay of this one ago. */
static bool is_early(const struct world *world, const struct grant *granted)
{
    const struct sim_store *store = &world->store;
    const struct gavel_settings *settings = &world->profile.settings[granted->slot];
    gavel_ns delay = ns_shrink(ns_from_ms(settings->takeover_delay_ms), settings->drift_ppm);

    if (!rates_keep_the_bound(world) || !store->is_found || store->record.held ||
        store->record.loss == GAVEL_LOSS_NONE)
        return false;
    return world->now - store->lost_at < delay;
}

void referee_check_early(struct world *world, const struct grant *granted)
{
    const struct sim_store *store = &world->store;

    if (!is_early(world, granted))
        return;
    violate(world, INVARIANT_DELAY,
            "%s replaces a leader that was lost (%s) %.3f s ago; the takeover delay is %lld ms",
            world->processes[granted->slot].label, gavel_loss_name(store->record.loss),
            (double)(world->now - store->lost_at) / (double)NS_PER_S,
            (long long)world->profile.settings[granted->slot].takeover_delay_ms);
}

void referee_check_delay(struct world *world, const struct grant *granted)
{
    const struct grant *grant = referee_grant(world, world->store.record.epoch);
    bool is_same = grant && grant->slot == granted->slot && grant->incarnation == granted->incarnation;

    if (!is_same)
        referee_check_early(world, granted);
}

/* Whether nobody of that id has lived since `from`; a heartbeat may have been under way for a moment. */
static bool was_dead_before(const struct world *world, const char *id, gavel_ns from)
{
    bool is_known = false;

    for (unsigned i = 0; i < world->profile.slots; i++) {
        const struct process *process = &world->processes[i];

        if (strcmp(process->id, id) != 0 || process->incarnation == 0)
            continue;
        is_known = true;
        if (process->is_alive || process->died_at + 20 * NS_PER_MS > from)
            return false;
    }
    /* A heartbeat that was long under way makes the dead look alive; nobody can tell. */
    for (size_t i = 0; i < world->store.registration_count; i++)
        if (strcmp(world->store.registrations[i].id, id) == 0 && world->store.heard_at[i] >= from)
            return false;
    return is_known;
}

/* Who preempts is the best of those whom the leader knows to be active. */
static void check_best(struct world *world, const struct process *process)
{
    const struct candidate *machine = &process->candidate;
    const struct peer *successor = peers_find(&machine->peers, machine->successor ? machine->successor : "");

    if (world->profile.faults & FAULT_BIT(FAULT_COMMAND))
        return; /* somebody may have named another */
    for (size_t i = 0; successor && i < machine->peers.count; i++) {
        const struct peer *peer = &machine->peers.items[i];

        if (peer->is_active && peer->is_eligible && strcmp(peer->id, process->id) != 0 &&
            peer_is_better(peer, machine->settings.policy, successor->id, successor->priority))
            violate(world, INVARIANT_L2, "%s hands over to %s although %s is active and better",
                    process->label, successor->id, peer->id);
    }
}

void referee_handed_over(struct world *world, const struct process *process)
{
    const struct candidate *machine = &process->candidate;
    const struct grant *grant = referee_grant(world, machine->epoch);

    if (machine->wish_epoch == machine->epoch)
        world->referee.wished_epoch = machine->epoch;
    if (!grant || machine->wish_epoch == machine->epoch)
        return;
    check_best(world, process);
    if (!world->is_quiet)
        return;
    /* A mandate that was renewed as a new epoch began with the first of them. */
    for (const struct grant *before = referee_grant(world, grant->epoch - 1);
         before && before->slot == process->slot && before->incarnation == process->incarnation;
         before = referee_grant(world, grant->epoch - 1))
        grant = before;
    if (was_dead_before(world, machine->successor ? machine->successor : "", grant->at))
        violate(world, INVARIANT_L2, "%s hands over to %s, which was dead before that mandate began",
                process->label, machine->successor ? machine->successor : "");
}

void referee_renewed(struct world *world, const struct message *message, uint64_t epoch)
{
    if (epoch < world->referee.last_epoch)
        violate(world, INVARIANT_S1, "the store renews epoch %llu of %s after epoch %llu was granted",
                (unsigned long long)epoch, world->processes[message->slot].label,
                (unsigned long long)world->referee.last_epoch);
}

void referee_mandate(struct world *world, const struct process *process, uint64_t epoch)
{
    struct grant *grant = referee_grant(world, epoch);

    world->referee.leader_seen_at = world->now; /* it may hand over again before the next probe */
    if (!grant)
        violate(world, INVARIANT_S1, "%s leads with epoch %llu, which was not granted", process->label,
                (unsigned long long)epoch);
    grant->was_led = true;
    if (grant->slot != process->slot || grant->incarnation != process->incarnation)
        violate(world, INVARIANT_S1, "%s leads with epoch %llu, which was granted to process %u of %s",
                process->label, (unsigned long long)epoch, grant->incarnation,
                world->processes[grant->slot].label);
}

void referee_wrote(struct world *world, const struct process *process, uint32_t incarnation, uint64_t epoch)
{
    struct referee *referee = &world->referee;

    referee->writes++;
    if (epoch < referee->highest_write)
        violate(world, INVARIANT_S2,
                "the resource takes a write of %s with epoch %llu after one with epoch %llu", process->label,
                (unsigned long long)epoch, (unsigned long long)referee->highest_write);
    if (epoch == referee->highest_write &&
        (referee->highest_slot != process->slot || referee->highest_incarnation != incarnation))
        violate(world, INVARIANT_S2, "%s and %s both write with epoch %llu", process->label,
                world->processes[referee->highest_slot].label, (unsigned long long)epoch);
    referee->highest_write = epoch;
    referee->highest_slot = process->slot;
    referee->highest_incarnation = incarnation;
}

bool referee_has_twin(const struct world *world, const struct process *process)
{
    for (unsigned i = world->profile.candidates; i < world->profile.slots; i++)
        if (strcmp(world->processes[i].id, process->id) == 0)
            return true;
    return false;
}

void referee_demoted(struct world *world, const struct process *process, const char *why)
{
    if (process->has_finished || world->referee.is_done)
        return;
    /* Who hears late of a twin that lived when faults were on is right to leave all the same. */
    if (process->candidate.stop_status == GAVEL_ERR_ID_IN_USE && referee_has_twin(world, process))
        return;
    if (is_stable(world) && !may_be_preempted(world, process->slot))
        violate(world, INVARIANT_L2, "%s stops although nothing is wrong: %s", process->label, why);
}

void referee_check_breaker(struct world *world, const struct process *process, const struct breaker *before,
                           const struct message *message)
{
    bool is_closed = process->candidate.breaker.state == BREAKER_CLOSED;

    if (!is_closed || before->state == BREAKER_CLOSED)
        return;
    if (message->request.op >= STORE_HEARTBEAT || message->sent_at < before->opened_at)
        violate(world, INVARIANT_BREAKER,
                "%s takes the answer to a %s of %.3f s before as a sign that the store is back",
                process->label, store_op_name(message->request.op),
                (double)(before->opened_at - message->sent_at) / (double)NS_PER_S);
}

void referee_check_candidate(struct world *world, struct process *process)
{
    gavel_ns now = clock_local(&process->clock, world->now);
    const struct candidate *candidate = &process->candidate;

    for (int i = 0; i < SLOT_COUNT; i++)
        if (candidate->calls[i].is_pending && candidate->calls[i].give_up_at <= now)
            violate(world, INVARIANT_STUCK, "%s still waits for the answer to a %s that is overdue",
                    process->label, store_op_name(candidate->calls[i].op));
    referee_check_session(world, process);
    if (candidate_is_leader(candidate, now) != work_believes(process, now) &&
        candidate->epoch > process->fenced_epoch)
        violate(world, INVARIANT_ORDER, "%s %s itself the leader but has published the opposite",
                process->label, candidate_is_leader(candidate, now) ? "takes" : "does not take");
    if (world->events > EVENTS_MAX)
        violate(world, INVARIANT_STUCK, "more than %d events: somebody runs away", EVENTS_MAX);
}

/* Whether the breaker is open, or will be if no call under way is answered. */
static bool may_open(const struct candidate *candidate)
{
    int failures = candidate->breaker.failures;

    for (int i = 0; i < SLOT_COUNT; i++)
        failures += candidate->calls[i].is_pending;
    return candidate->breaker.state != BREAKER_CLOSED || failures >= candidate->settings.breaker_threshold;
}

bool referee_is_survivor(const struct world *world, const struct process *process)
{
    return process->is_alive && process->candidate.is_registered &&
           !granting_is_short(world, process->slot) && process->candidate.state >= CANDIDATE_STANDBY &&
           process->is_eligible && !process->is_stop_asked && !referee_has_twin(world, process);
}

/* Released, or held by a process whose death everybody can see. */
static bool is_free_for_all(const struct world *world)
{
    const struct record *record = &world->store.record;

    if (!record->held)
        return true;
    if (!world->profile.sees_processes || world->profile.hosts > 1)
        return false;
    for (unsigned i = 0; i < world->profile.slots; i++)
        if (world->processes[i].is_alive && world->processes[i].pid == record->process.pid)
            return false;
    return true;
}

/* How long the quiet phase may go without a leader, in real time. */
static gavel_ns gap_allowed(const struct world *world)
{
    const struct gavel_settings *worst = &world->profile.worst;
    struct gavel_bounds bounds;
    unsigned survivors = 0;
    unsigned closed = 0;
    gavel_ms free;
    gavel_ms gap;

    gavel_settings_bounds(worst, world->profile.slots, &bounds);
    free = world->store.record.held || world->store.record.loss != GAVEL_LOSS_NONE ? bounds.gap_killed_ms
                                                                                   : bounds.gap_resign_ms;
    for (unsigned i = 0; i < world->profile.candidates; i++) {
        if (!referee_is_survivor(world, &world->processes[i]))
            continue;
        survivors++;
        closed += !may_open(&world->processes[i].candidate);
    }
    /* One that has just resigned holds back; so it takes two of them to follow a release at once. */
    if (closed == 0)
        gap = bounds.gap_outage_ms;
    else
        gap = is_free_for_all(world) && closed >= 2 ? free : bounds.gap_loss_ms;
    /* Those who have only just come wait for better ones that still look on. */
    if (worst->policy != GAVEL_POLICY_FIRST)
        gap += worst->observation_ms + worst->call_timeout_ms;
    if (survivors == 0)
        gap += worst->start_jitter_max_ms + worst->observation_ms + worst->candidate_timeout_ms +
               worst->heartbeat_ms;
    return ns_stretch(ns_from_ms(gap), worst->drift_ppm) + 20 * NS_PER_MS;
}

void referee_quiet(struct world *world)
{
    world->referee.leader_seen_at = world->now;
    world->referee.gap_allowed =
        world->profile.has_sessions ? referee_session_gap(world) : gap_allowed(world);
    TRACE(world, NULL, "all faults end; a leader must be there within %.3f s",
          (double)world->referee.gap_allowed / (double)NS_PER_S);
}

void referee_probe(struct world *world)
{
    struct referee *referee = &world->referee;
    const struct process *leader = NULL;

    if (referee_probe_done(world) || !rates_keep_the_bound(world))
        return;
    for (unsigned i = 0; i < world->profile.slots; i++)
        if (referee_is_active(world, &world->processes[i]))
            leader = &world->processes[i];
    if (leader) {
        referee->leader_seen_at = world->now;
        if (referee->steady_slot != leader->slot || referee->steady_incarnation != leader->incarnation ||
            referee->steady_work != leader->work_number) {
            referee->steady_slot = leader->slot;
            referee->steady_incarnation = leader->incarnation;
            referee->steady_work = leader->work_number;
            referee->steady_from = world->now;
        }
        if (world->now - referee->steady_from > ns_from_ms(world->profile.worst.lease_ms))
            referee->stable_from = world->now;
    } else if (world->now - referee->leader_seen_at > referee->gap_allowed) {
        violate(world, INVARIANT_L1, "no leader for %.3f s although nothing is wrong; %.3f s are allowed",
                (double)(world->now - referee->leader_seen_at) / (double)NS_PER_S,
                (double)referee->gap_allowed / (double)NS_PER_S);
    }
}
