/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cold starts: all candidates of a group come within the observation window,
 * in any order, and nothing else goes wrong. Then the policy decides who is
 * the first to lead, not the order. The store may be empty, or have the record
 * of a leader that died with everybody else when the power went.
 */
#include "sim/candidate/referee.h"

#include "sim/candidate/network.h"
#include "sim/candidate/world.h"

#include <stdio.h>
#include <string.h>

/* What calls take, with some room: nobody can count whoever is not in the list when it is read. */
#define LATENCY_MS 50

/* The epoch of the leader before the power went. */
#define FORMER_EPOCH 7

static void draw_settings(struct world *world, struct gavel_settings *s)
{
    gavel_ms least = 4 * LATENCY_MS;
    /* Each waits for the lease of the dead leader by its own clock. */
    gavel_ms apart = LATENCY_MS + 2 * s->lease_ms * s->drift_ppm / 1000000;

    if (s->observation_ms < least)
        s->observation_ms = world_between(world, STREAM_COLD, least, least + 2 * s->lease_ms);
    if (s->stagger_ms < apart)
        s->stagger_ms = apart;
    if (s->start_jitter_max_ms - s->start_jitter_min_ms > s->observation_ms / 2)
        s->start_jitter_max_ms = s->start_jitter_min_ms;
    s->policy =
        prng_chance(&world->streams[STREAM_COLD], 500) ? GAVEL_POLICY_LEXICOGRAPHIC : GAVEL_POLICY_PRIORITY;
}

void cold_draw(struct world *world)
{
    struct profile *profile = &world->profile;
    struct gavel_settings *first = &profile->settings[0];
    gavel_ms window;

    if (!prng_chance(&world->streams[STREAM_COLD], 120))
        return;
    draw_settings(world, first);
    for (unsigned i = 1; i < SLOTS_MAX; i++)
        profile->settings[i] = *first;
    profile->worst = *first;
    profile->slots = profile->candidates;
    profile->faults &= FAULT_BIT(FAULT_RATE) | FAULT_BIT(FAULT_BELL);
    window = first->observation_ms - (first->start_jitter_max_ms - first->start_jitter_min_ms);
    profile->cold_start = ns_max(ns_shrink(ns_from_ms(window), first->drift_ppm) - ns_from_ms(LATENCY_MS), 1);
    profile->has_former_leader = prng_chance(&world->streams[STREAM_COLD], 400);
}

/* When the process of a slot starts. */
gavel_ns cold_start_at(struct world *world)
{
    return world_between(world, STREAM_COLD, 0, world->profile.cold_start);
}

void cold_begin(struct world *world)
{
    struct sim_store *store = &world->store;
    struct record *record = &store->record;
    unsigned former = (unsigned)prng_below(&world->streams[STREAM_COLD], world->profile.candidates);
    gavel_ns lease = ns_from_ms(world->profile.worst.lease_ms);
    gavel_ns expires_in;

    if (!world->profile.has_former_leader)
        return;
    store->is_found = true;
    store->holder_slot = SLOTS_MAX; /* nobody who lives */
    expires_in = world_between(world, STREAM_COLD, 0, lease);
    store->expires_at = sim_store_now(world) + expires_in;
    record->epoch = record->version = world->referee.last_epoch = FORMER_EPOCH;
    record->held = true;
    record->lease_ms = world->profile.worst.lease_ms;
    record->nonce = (struct nonce){1, 1};
    if (world->profile.hosts ==
        1) /* else some would know that it is dead, and the others wait for its lease */
        record->process = (struct process_id){.boot_id = "host-0", .pid = 1, .pid_ns = 1};
    (void)snprintf(record->holder, sizeof record->holder, "%c",
                   (char)('a' + former)); /* as process.c names it */
    if (!world->profile.has_sessions)
        return;
    /* Under its own name nobody could come back before its session has ended. */
    (void)snprintf(record->holder, sizeof record->holder, "former");
    granting_former_leader(world, expires_in);
}

static bool is_better(const struct world *world, const struct process *a, const struct process *b)
{
    if (world->profile.settings[0].policy == GAVEL_POLICY_PRIORITY && a->priority != b->priority)
        return a->priority > b->priority;
    if (world->profile.settings[0].policy == GAVEL_POLICY_PRIORITY && world->profile.has_sessions)
        return false; /* whoever was first of those */
    return strcmp(a->id, b->id) < 0;
}

void referee_first_granted(struct world *world, const struct process *process)
{
    const struct process *best = &world->processes[0];

    if (world->profile.cold_start == 0)
        return;
    for (unsigned i = 1; i < world->profile.candidates; i++)
        if (is_better(world, &world->processes[i], best))
            best = &world->processes[i];
    if (process != best && is_better(world, best, process))
        violate(world, INVARIANT_COLD, "%s is the first to lead although %s came within the window",
                process->label, best->label);
}
