/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/simulator.h"

#include "base/assert.h"
#include "sim/candidate/faults.h"
#include "sim/candidate/network.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/work.h"
#include "sim/candidate/world.h"
#include "sim/common/assertion.h"
#include "sim/common/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell_assertion(void *context, const char *what)
{
    violate(context, INVARIANT_ASSERT, "%s", what);
}

static void trace_profile(struct world *world, uint64_t seed)
{
    static const char *const clocks[] = {[STORE_CLOCK_NONE] = "no clock",
                                         [STORE_CLOCK_STEPS] = "a clock that may step",
                                         [STORE_CLOCK_STEADY] = "a steady clock"};
    const struct profile *p = &world->profile;
    char faults[160] = "";

    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        if (p->faults & FAULT_BIT(fault)) {
            strcat(faults, faults[0] ? " " : ""); /* all names together fit */
            strcat(faults, fault_row(fault)->name);
        }
    }
    TRACE(world, NULL, "seed %llu: %u candidates, store with %s, %s: %s", (unsigned long long)seed,
          p->candidates, p->has_sessions ? "sessions" : clocks[p->clock], mood_name(p->mood), faults);
    for (unsigned i = 0; i < p->slots; i++) {
        const struct gavel_settings *s = &p->settings[i];

        TRACE(
            world, &world->processes[i],
            "lease %lld ms, heartbeat %lld, call %lld, grace %lld, margin %lld, drift %d ppm, %s%s, min %lld, max %lld, priority %d",
            (long long)s->lease_ms, (long long)s->heartbeat_ms, (long long)s->call_timeout_ms,
            (long long)s->stop_grace_ms, (long long)s->stop_margin_ms, s->drift_ppm,
            gavel_policy_name(s->policy), s->preempt ? " preempts" : "", (long long)s->min_mandate_ms,
            (long long)s->max_mandate_ms, (int)world->processes[i].priority);
    }
}

/* The run is over when its time is, and the bound for a leader was put to the test. */
static void probe(struct world *world)
{
    const struct referee *referee = &world->referee;
    gavel_ns quarter = ns_from_ms(world->profile.worst.lease_ms) / 4;
    bool is_led;

    referee_probe(world);
    is_led = referee->leader_seen_at == world->now;
    if (world->now >= world->profile.end_at &&
        (is_led || (world->profile.faults & FAULT_BIT(FAULT_BREAK) && !referee->is_done)))
        world->is_over = true;
    (void)world_push(world, world->now + quarter, EVENT_PROBE, 0);
}

static void take(struct world *world, const struct event *event)
{
    switch (event->kind) {
    case EVENT_SEND:
    case EVENT_APPLY:
        network_take(world, event);
        break;
    case EVENT_RELEASE:
        if (world->profile.has_sessions)
            granting_close_dead(world, event->number);
        else
            sim_store_release_for_the_dead(world, event->slot, event->nonce);
        break;
    case EVENT_FENCE:
        if (world->processes[event->slot].incarnation == event->incarnation)
            process_fence(world, &world->processes[event->slot]);
        break;
    case EVENT_EXPIRE:
        granting_expire(world, event->number);
        break;
    case EVENT_WRITE:
        work_write(world, event);
        break;
    case EVENT_FAULT:
        faults_take(world);
        break;
    case EVENT_QUIET:
        faults_end(world);
        break;
    case EVENT_PROBE:
        probe(world);
        break;
    default:
        process_take(world, event);
        break;
    }
}

static void run(void *memory, const struct run_options *options, struct run_result *ret_result)
{
    struct world *world = memory;
    const struct referee *referee = &world->referee;
    struct event event;

    world->trace = options->trace;
    assertion_watch(tell_assertion, world);
    if (setjmp(world->escape) == 0) {
        world_begin(world, options->seed, options->sizes[0], options->duration, options->without);
        processes_begin(world);
        if (world->trace)
            trace_profile(world, options->seed);
        faults_begin(world);
        while (!world->is_over && world_pop(world, &event))
            take(world, &event);
    }
    assertion_watch(NULL, NULL);
    *ret_result = (struct run_result){
        .ended_at = world->now,
        .events = world->events,
        .hash = world->hash,
        .faults = world->profile.faults,
        .sizes = {world->profile.candidates},
        .counts = {referee->grant_count, referee->writes, referee->rejected_writes},
    };
    if (referee->broken == INVARIANT_NONE)
        return;
    ret_result->broken = invariants[referee->broken].name;
    ret_result->sentence = invariants[referee->broken].what;
    memcpy(ret_result->what, world->referee.what, sizeof ret_result->what);
}

static void *begin(void) { return zeroed(1, sizeof(struct world)); }

static void end(void *memory)
{
    world_done(memory);
    free(memory);
}

const struct simulator candidate_simulator = {
    .name = "candidate",
    .command = "gavel-sim",
    .what = "candidates of one group on a store",
    .planted = PLANTED_KIND_CANDIDATE,
    .sizes = {{"candidates", CANDIDATES_MIN, CANDIDATES_MAX, .bench = 5}},
    .seconds = 60,
    .limit = 2000,
    .fault_count = FAULT_COUNT,
    .fault = fault_row,
    .counts = {"mandates", "writes", "writes rejected"},
    .begin = begin,
    .end = end,
    .run = run,
};
