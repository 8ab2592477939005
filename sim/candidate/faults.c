/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/faults.h"

#include "sim/candidate/network.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/world.h"

static gavel_ns between(struct world *world, gavel_ns low, gavel_ns high)
{
    return world_between(world, STREAM_FAULT, low, high);
}

static unsigned below(struct world *world, unsigned bound)
{
    return (unsigned)prng_below(&world->streams[STREAM_FAULT], bound);
}

static gavel_ns lease_of(const struct world *world) { return ns_from_ms(world->profile.worst.lease_ms); }

static void plan(struct world *world)
{
    gavel_ns delay = between(world, world->profile.fault_every / 16, 2 * world->profile.fault_every);

    (void)world_push(world, world->now + delay, EVENT_FAULT, 0);
}

void faults_begin(struct world *world)
{
    plan(world);
    (void)world_push(world, world->profile.quiet_at, EVENT_QUIET, 0);
}

/* Somebody, rather often the leader: there it matters. */
static struct process *pick(struct world *world)
{
    struct process *process = &world->processes[below(world, world->profile.slots)];

    if (below(world, 2) == 0) {
        for (unsigned i = 0; i < world->profile.slots; i++)
            if (referee_is_active(world, &world->processes[i]))
                process = &world->processes[i];
    }
    return process;
}

/* Short, about a lease, or far beyond it. */
static gavel_ns draw_length(struct world *world)
{
    gavel_ns lease = lease_of(world);

    switch (below(world, 4)) {
    case 0:
        return between(world, NS_PER_MS, lease / 4);
    case 1:
    case 2:
        return between(world, lease / 2, lease * 3 / 2);
    default:
        return between(world, lease, 4 * lease);
    }
}

static void pause_process(struct world *world)
{
    struct process *process = pick(world);
    gavel_ns length = draw_length(world);

    if (process->is_alive && !process_is_frozen(process, world->now))
        process_freeze(world, process, world->now + length);
}

static void stall_process(struct world *world)
{
    struct process *process = pick(world);
    gavel_ns length = draw_length(world);

    if (!process->is_alive)
        return;
    TRACE(world, process, "its event loop is late by %.3f s", (double)length / (double)NS_PER_S);
    process->stalled_until = ns_max(process->stalled_until, world->now + length);
}

static void crash_process(struct world *world)
{
    struct process *process = pick(world);

    if (process->is_alive)
        process_die(world, process, "is killed");
}

static void cut_process(struct world *world)
{
    struct process *process = pick(world);
    gavel_ns length = draw_length(world);
    gavel_ns fading = below(world, 2) == 0 ? between(world, 0, lease_of(world)) : 0;

    process->is_cut_one_way = below(world, 2) == 0;
    process->cut_from = world->now + fading;
    process->cut_until = process->cut_from + length;
    TRACE(world, process, "%s for %.3f s in %.3f s, with late answers until then",
          process->is_cut_one_way ? "gets no answers from the store" : "cannot reach the store",
          (double)length / (double)NS_PER_S, (double)fading / (double)NS_PER_S);
}

/* The worst moment to lose the store: see network.c. */
static void ambush_process(struct world *world)
{
    struct process *process = pick(world);

    if (!process->work_runs)
        return;
    world->ambushed = process;
    TRACE(world, process, "will lose the store after its next renewal");
}

static void begin_outage(struct world *world)
{
    static const struct {
        enum outage outage;
        const char *what;
    } kinds[] = {{OUTAGE_AWAY, "is away"},
                 {OUTAGE_REFUSES, "answers with failures"},
                 {OUTAGE_MUTE, "commits but does not answer"},
                 {OUTAGE_SLOW, "is slow"}};
    unsigned kind = below(world, sizeof kinds / sizeof *kinds);
    gavel_ns length = draw_length(world);

    world->outage = kinds[kind].outage;
    world->outage_until = world->now + length;
    TRACE(world, NULL, "the store %s for %.3f s", kinds[kind].what, (double)length / (double)NS_PER_S);
}

/* By some leases, or by so much that it would never come right by itself: a time zone, a dead battery. */
static void step_clock(struct world *world)
{
    gavel_ns most = (below(world, 2) == 0 ? 4 : 1000) * lease_of(world);
    gavel_ns by = between(world, -most, most);

    if (world->profile.clock == STORE_CLOCK_STEPS)
        sim_store_step(world, by);
}

static void forge_bells(struct world *world)
{
    unsigned slot = below(world, world->profile.slots);
    unsigned count = below(world, 4) == 0 ? 100 : 1;
    gavel_ns spread = between(world, 0, lease_of(world) / 4);

    TRACE(world, &world->processes[slot], "is rung %u times by nobody", count);
    for (unsigned i = 0; i < count; i++)
        (void)world_push(world, world->now + spread * i / count, EVENT_BELL, slot);
}

static void start_twin(struct world *world)
{
    unsigned slot = world->profile.candidates + below(world, TWINS_MAX);

    if (!world->processes[slot].is_alive)
        process_start(world, &world->processes[slot]);
}

static void command(struct world *world)
{
    struct process *process = pick(world);
    const char *desired = world->processes[below(world, world->profile.candidates)].id;
    bool names_one = below(world, 2) == 0;
    bool forces = below(world, 3) == 0;
    struct candidate_event event = {.kind = CANDIDATE_RESIGN};
    unsigned what = below(world, 8);

    if (!process->is_alive || process_is_frozen(process, world->now) || world->now < process->stalled_until)
        return;
    if (what < 2) {
        event.resign.successor = names_one ? desired : "";
        TRACE(world, process, "is told to resign in favour of \"%s\"", event.resign.successor);
    } else if (what < 5) {
        event.kind = CANDIDATE_ENSURE;
        event.ensure.epoch = candidate_leader_epoch(&process->candidate);
        event.ensure.force = forces;
        event.ensure.desired = names_one ? desired : "";
        TRACE(world, process, "is asked to ensure a leader, desired \"%s\"%s", event.ensure.desired,
              forces ? ", by force" : "");
    } else if (what < 7) {
        event.kind = CANDIDATE_SET_ELIGIBLE;
        event.eligible = process->is_eligible = !process->is_eligible;
        TRACE(world, process, "is made %s", event.eligible ? "eligible" : "ineligible");
    } else {
        event.kind = CANDIDATE_STOP;
        process->is_stop_asked = true;
        TRACE(world, process, "is told to leave");
    }
    process_step(world, process, &event);
}

static const struct {
    enum fault fault;
    void (*happen)(struct world *world);
    unsigned weight;
} lasting[] = {
    {FAULT_PAUSE, pause_process, 4}, {FAULT_STALL, stall_process, 2}, {FAULT_CRASH, crash_process, 4},
    {FAULT_CUT, cut_process, 4},     {FAULT_CUT, ambush_process, 3},  {FAULT_OUTAGE, begin_outage, 2},
    {FAULT_STEP, step_clock, 3},     {FAULT_BELL, forge_bells, 1},    {FAULT_TWIN, start_twin, 3},
    {FAULT_COMMAND, command, 5},
};

/* What happens to a cluster, and is no fault of anybody's. */
static void change_cluster(struct world *world)
{
    struct prng *prng = &world->streams[STREAM_CLUSTER];
    bool ends_wish = prng_chance(prng, 600);
    bool changes_leader = prng_chance(prng, 60);
    bool rejoins = prng_chance(prng, 150);
    struct process *one = &world->processes[prng_below(prng, world->profile.slots)];

    if (!world->profile.has_sessions)
        return;
    if (ends_wish)
        granting_end_wish(world);
    if (rejoins && world_has(world, FAULT_CRASH) && one->is_alive && one->session.number != 0 &&
        one->candidate.state == CANDIDATE_STANDBY && !one->candidate.is_stopping &&
        !process_is_frozen(one, world->now) && world->now >= one->stalled_until)
        process_rejoin(world, one);
    if (changes_leader)
        granting_change_leader(world);
}

/* Who is dead comes back sooner or later, now and then at once. */
static void restart_some(struct world *world)
{
    for (unsigned i = 0; i < world->profile.candidates; i++) {
        bool comes_back = below(world, 3) == 0;
        gavel_ns delay = below(world, 2) == 0 ? between(world, NS_PER_MS, 50 * NS_PER_MS)
                                              : between(world, 0, 2 * lease_of(world));

        if (!world->processes[i].is_alive && comes_back)
            (void)world_push(world, world->now + delay, EVENT_START, i);
    }
}

void faults_take(struct world *world)
{
    unsigned total = 0;
    unsigned drawn;

    if (world->is_quiet)
        return;
    plan(world);
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
        total += lasting[i].weight;
    drawn = below(world, total);
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++) {
        if (drawn < lasting[i].weight) {
            if (world_has(world, lasting[i].fault))
                lasting[i].happen(world);
            break;
        }
        drawn -= lasting[i].weight;
    }
    change_cluster(world);
    restart_some(world);
}

static bool can_lead(const struct world *world, const struct process *process)
{
    return process->is_alive && !granting_is_short(world, process->slot) && process->is_eligible &&
           !process->is_stop_asked;
}

/*
 * The last thing to go wrong: the leader dies, often together with the one
 * that comes first by its id, so that the others wait for nobody in vain.
 * Returns the slots that stay dead.
 */
static unsigned strike(struct world *world)
{
    unsigned first = below(world, 2) == 0 ? 0 : below(world, world->profile.candidates);
    bool strikes = below(world, 2) == 0;
    unsigned dead = 0;

    if (!strikes || !world_has(world, FAULT_CRASH))
        return 0;
    for (unsigned i = 0; i < world->profile.candidates; i++) {
        struct process *process = &world->processes[i];

        if (process->is_alive && (i == first || referee_is_active(world, process))) {
            process_die(world, process, "is killed");
            dead |= 1U << i;
        }
    }
    return dead;
}

/* Twins go, most of the dead come back, the frozen run; at least one can lead. */
void faults_end(struct world *world)
{
    unsigned stay_dead = strike(world);
    bool has_one = false;

    world->is_quiet = true;
    network_settle(world);
    for (unsigned i = 0; i < world->profile.slots; i++) {
        struct process *process = &world->processes[i];
        bool comes_back = below(world, 3) != 0 && !(stay_dead & 1U << i);

        if (world->now < process->stalled_until)
            world_hurry(world, i, process->stalled_until);
        process->stalled_until = 0;
        if (process->is_alive && i >= world->profile.candidates)
            process_die(world, process, "is killed");
        else if (!process->is_alive && i < world->profile.candidates && comes_back)
            process_start(world, process);
        if (process->is_alive && process_is_frozen(process, world->now)) {
            world_hurry(world, i, process->frozen_until);
            process_resume(world, process);
        }
        has_one |= can_lead(world, process);
    }
    for (unsigned i = 0; i < world->profile.candidates && !has_one; i++) {
        struct process *process = &world->processes[i];

        process->is_eligible = true;
        if (process->is_alive)
            process_die(world, process, "is killed");
        process_start(world, process);
        has_one = true;
    }
    referee_quiet(world);
    (void)world_push(world, world->now + lease_of(world) / 4, EVENT_PROBE, 0);
}
