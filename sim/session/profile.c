/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/session/profile.h"

#include <string.h>

const struct named *testbed_fault_row(unsigned fault)
{
    static const struct named rows[] = {
#define FAULT_ROW(name, text, what) [CLIENT_FAULT_##name] = {text, what},
        CLIENT_FAULT_MAP(FAULT_ROW)
#undef FAULT_ROW
    };

    return fault < CLIENT_FAULTS_FROM ? cluster_fault_row(fault) : &rows[fault - CLIENT_FAULTS_FROM];
}

/* Of the cluster's own: who is a member, and clocks beyond the bound, are judged by sim/raft. */
#define NOT_HERE                                                                                             \
    (FAULT_BIT(FAULT_BEYOND) | FAULT_BIT(FAULT_FORGED) | FAULT_BIT(FAULT_MEMBERS) | FAULT_BIT(FAULT_FLIP) |  \
     FAULT_BIT(FAULT_WITNESS) | FAULT_BIT(FAULT_STRANGER) | FAULT_BIT(FAULT_FLOOD) | FAULT_BIT(FAULT_DEAF) | \
     FAULT_BIT(FAULT_MIXED) | FAULT_BIT(FAULT_DISTANT) | FAULT_BIT(FAULT_DISKS) | FAULT_BIT(FAULT_ORDERS))

_Static_assert(TESTBED_FAULTS <= 64, "the faults of the cluster and of the testbed fit into one set");
_Static_assert(FAULT_COUNT < 64 &&
                   ((FAULT_BIT(FAULT_COUNT) - FAULT_BIT(CLIENT_FAULTS_FROM)) & ~NOT_HERE) == 0,
               "faults of the cluster whose bits those of the testbed have do not happen here");

/* What sessions must survive without anybody noticing. */
#define QUIET                                                                                                \
    (FAULT_BIT(FAULT_RATE) | FAULT_BIT(FAULT_CRASH) | FAULT_BIT(FAULT_TRANSFER) |                            \
     FAULT_BIT(FAULT_STEP_DOWN) | FAULT_BIT(FAULT_PAUSE) | FAULT_BIT(FAULT_PARTITION) |                      \
     FAULT_BIT(FAULT_STALL) | FAULT_BIT(FAULT_COMPACT) | FAULT_BIT(FAULT_SURVIVE) |                          \
     CLIENT_FAULT_BIT(CLIENT_FAULT_CLIENT_RATE) | CLIENT_FAULT_BIT(CLIENT_FAULT_SESSIONLESS) |               \
     CLIENT_FAULT_BIT(CLIENT_FAULT_REMOVAL))
/* After a host was lost at 2.8 s: an election, and the longest time to live. */
#define LOSS_JUDGED_AT (6 * NS_PER_S)
#define QUIET_LONGEST (150 * NS_PER_MS)

static uint64_t draw_faults(struct prng *prng, enum mood mood)
{
    static const unsigned chance[] = {
        [MOOD_CALM] = 150, [MOOD_MILD] = 350, [MOOD_WILD] = 600, [MOOD_STORM] = 500};
    uint64_t set = 0;

    for (unsigned fault = 0; fault < CLIENT_FAULT_COUNT; fault++) {
        unsigned per_mille = chance[mood];

        if (fault == CLIENT_FAULT_CLIENT_RATE || fault == CLIENT_FAULT_FREEZE ||
            fault == CLIENT_FAULT_SESSIONLESS || fault == CLIENT_FAULT_RESIGN)
            per_mille = 700;
        if (fault == CLIENT_FAULT_REMOVAL) /* it needs groups that nobody uses, and these are rare */
            per_mille = 500;
        if (prng_chance(prng, per_mille))
            set |= CLIENT_FAULT_BIT(fault);
    }
    return set;
}

static void draw_groups(struct session_profile *p, struct prng *prng)
{
    static const Gavel__Policy policies[] = {GAVEL__POLICY__POLICY_FIRST, GAVEL__POLICY__POLICY_FIRST,
                                             GAVEL__POLICY__POLICY_LEXICOGRAPHIC,
                                             GAVEL__POLICY__POLICY_PRIORITY, GAVEL__POLICY__POLICY_BALANCED};

    p->groups = 1 + (unsigned)prng_below(prng, GROUPS_MAX);
    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        struct group_profile *group = &p->group[i];
        bool preempts = prng_chance(prng, 400);
        uint32_t min_mandate_ms = (uint32_t)prng_between(prng, 50, 800);
        bool has_minimum = prng_chance(prng, 400);

        group->policy = policies[prng_below(prng, sizeof policies / sizeof *policies)];
        group->preempts = preempts && group->policy != GAVEL__POLICY__POLICY_FIRST &&
                          group->policy != GAVEL__POLICY__POLICY_BALANCED && !p->is_quiet;
        group->min_mandate_ms = has_minimum ? min_mandate_ms : 0;
    }
}

static void draw_program(struct session_profile *p, struct prng *prng, struct program_profile *program,
                         const bool takes_leases[GROUPS_MAX])
{
    bool is_wide = p->cluster.worst.drift_ppm > 20000; /* what drift does shows over long times */
    gavel_ns low = p->is_quiet ? 2500 : is_wide ? 1000 : 200;
    gavel_ns high = p->is_quiet ? 4000 : is_wide ? 2000 : 1200;
    bool is_alone = prng_chance(prng, 300);

    program->ttl_ms = (uint32_t)prng_between(prng, low, high);
    program->lease_ms = (uint32_t)prng_between(prng, low, high);
    program->machine = (unsigned)prng_below(prng, p->cluster.nodes);
    if (is_alone)
        program->machine = SLOTS_MAX;
    program->act_every = prng_between(prng, 20 * NS_PER_MS, 120 * NS_PER_MS);
    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        uint64_t drawn = prng_below(prng, 100);
        bool has_lease = drawn < 50 && takes_leases[i];
        bool is_elsewhere = prng_chance(prng, 600);

        program->roles[i] = has_lease ? ROLE_LEASE : drawn < 75 ? ROLE_CAMPAIGN : ROLE_NONE;
        if (i >= p->groups)
            program->roles[i] = ROLE_NONE;
        /* What may be removed is what nobody uses: some groups have few candidates. */
        if (is_elsewhere && (p->faults & CLIENT_FAULT_BIT(CLIENT_FAULT_REMOVAL)))
            program->roles[i] = ROLE_NONE;
    }
    p->ttl_max_ms = program->ttl_ms > p->ttl_max_ms ? program->ttl_ms : p->ttl_max_ms;
    p->ttl_max_ms = program->lease_ms > p->ttl_max_ms ? program->lease_ms : p->ttl_max_ms;
}

/* A bound that shows: with the usual one the clocks of a short run hardly part. */
static void widen_drift(struct session_profile *p, int drift_ppm)
{
    struct raft_settings wide = p->cluster.worst;

    wide.drift_ppm = drift_ppm;
    if (raft_settings_check(&wide, NULL) != GAVEL_OK)
        return;
    p->cluster.worst.drift_ppm = drift_ppm;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        p->cluster.settings[i].drift_ppm = drift_ppm;
    cluster_profile_find_room(&p->cluster);
    p->cluster.faults |= FAULT_BIT(FAULT_RATE);
    p->faults |= FAULT_BIT(FAULT_RATE) | CLIENT_FAULT_BIT(CLIENT_FAULT_CLIENT_RATE);
}

void session_profile_draw(struct session_profile *p, uint64_t seed, unsigned nodes, unsigned programs,
                          gavel_ns duration, uint64_t without)
{
    struct prng prng;
    unsigned drawn;
    bool takes_leases[GROUPS_MAX];
    bool is_wide;
    int drift_ppm;

    memset(p, 0, sizeof *p);
    prng_seed(&prng, seed * UINT64_C(0x9e3779b97f4a7c15) + 5);
    drawn = 3 + (unsigned)prng_below(&prng, 3);
    if (seed % 40 == 0)
        drawn = 1; /* every client is connected to the leader itself */
    p->is_quiet = prng_chance(&prng, 120);
    cluster_profile_draw(&p->cluster, &prng, nodes ? nodes : drawn, duration, without | NOT_HERE);
    p->faults = draw_faults(&prng, p->cluster.mood) & ~without;
    if (p->is_quiet) {
        p->cluster.mood = MOOD_MILD;
        p->cluster.faults = (p->cluster.faults | FAULT_BIT(FAULT_CRASH) | FAULT_BIT(FAULT_TRANSFER)) & QUIET;
        p->cluster.faults &= ~without;
        p->cluster.longest = QUIET_LONGEST;
        p->faults &= QUIET;
    }
    is_wide = prng_chance(&prng, 400) && !(without & FAULT_BIT(FAULT_RATE));
    drift_ppm = (int)prng_between(&prng, 20000, 90000);
    if (is_wide)
        widen_drift(p, drift_ppm);
    p->cluster.is_bound = prng_chance(&prng, 700);
    p->faults |= p->cluster.faults;
    draw_groups(p, &prng);
    for (unsigned i = 0; i < GROUPS_MAX; i++)
        takes_leases[i] = prng_chance(&prng, 350);
    drawn = 2 + (unsigned)prng_below(&prng, PROGRAMS_MAX - 1);
    p->programs = programs ? programs : drawn;
    for (unsigned i = 0; i < p->programs; i++)
        draw_program(p, &prng, &p->program[i], takes_leases);
    p->fault_every = prng_between(&prng, 300 * NS_PER_MS, 2 * NS_PER_S);
    p->act_late = prng_between(&prng, 0, 150 * NS_PER_MS);
    p->loss_per_mille = (unsigned)prng_between(&prng, 0, 150);
    p->late_per_mille = (unsigned)prng_between(&prng, 0, 150);
    p->twice_per_mille = (unsigned)prng_between(&prng, 0, 150);
    p->retention = prng_between(&prng, 20 * NS_PER_MS, 600 * NS_PER_MS);
    if (!(p->faults & CLIENT_FAULT_BIT(CLIENT_FAULT_REMOVAL)))
        p->retention = 0;
    for (unsigned i = 0; i < GROUPS_MAX; i++)
        p->group[i].has_notes = prng_chance(&prng, p->retention > 0 ? 400 : 1000);
    p->is_mixed = prng_chance(&prng, 150);
    p->loses_host = prng_chance(&prng, 200) && p->cluster.nodes >= 3 && !p->is_quiet && !p->is_mixed;
    if (p->loses_host) {
        p->cluster.mood = MOOD_MILD;
        p->cluster.faults &= FAULT_BIT(FAULT_RATE) | FAULT_BIT(FAULT_COMPACT);
        p->faults &= p->cluster.faults | CLIENT_FAULT_BIT(CLIENT_FAULT_CLIENT_RATE);
        p->cluster.heal_at = ns_max(p->cluster.heal_at, LOSS_JUDGED_AT);
    }
    p->cluster.propose_every = 300 * NS_PER_MS; /* the programs have enough to say */
    p->cluster.act_every = 100 * NS_PER_MS;
    p->close_part = prng_chance(&prng, 700) ? 1 : (uint32_t)prng_below(&prng, 3);
}
