/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/profile.h"

#include "base/assert.h"
#include "sim/raft/host.h"

#include <string.h>

const struct named *cluster_fault_row(unsigned fault)
{
    static const struct named rows[] = {
#define FAULT_ROW(name, text, what) [FAULT_##name] = {text, what},
        FAULT_MAP(FAULT_ROW)
#undef FAULT_ROW
    };

    return &rows[fault];
}

static bool is_good(const struct raft_settings *settings)
{
    return raft_settings_check(settings, NULL) == GAVEL_OK;
}

/* Times that nobody would write down, but that add up. */
static void draw_settings(struct prng *prng, struct raft_settings *ret_settings)
{
    for (int i = 0; i < 20; i++) {
        struct raft_settings s = *ret_settings;

        s.election_min = prng_between(prng, 60 * NS_PER_MS, 350 * NS_PER_MS);
        s.election_max = s.election_min + prng_between(prng, s.election_min / 4, 2 * s.election_min);
        s.promise = prng_between(prng, s.election_min / 2, s.election_min);
        s.heartbeat = prng_between(prng, s.promise / 10, s.promise / 2);
        s.stop_margin = prng_between(prng, NS_PER_MS, s.promise / 5);
        s.drift_ppm = prng_chance(prng, 500) ? (int)prng_between(prng, 0, 100000) : 1000;
        s.transfer_timeout = prng_between(prng, s.stop_margin + NS_PER_MS, 2 * s.election_max);
        if (prng_chance(prng, 300)) /* hardly more than the work needs to stop */
            s.transfer_timeout = s.stop_margin + prng_between(prng, 1, 5 * NS_PER_MS);
        s.catch_up_timeout = prng_between(prng, 100 * NS_PER_MS, 10 * NS_PER_S);
        s.batch_bytes = (uint32_t)prng_between(prng, 1, 4096);
        s.batch_entries = (uint32_t)prng_between(prng, 1, 64);
        s.inflight_max = (uint32_t)prng_between(prng, 1, 8);
        s.vote_burst = (uint32_t)prng_between(prng, 4, 32);
        s.vote_refill = prng_between(prng, NS_PER_MS, 40 * NS_PER_MS);
        if (is_good(&s)) {
            *ret_settings = s;
            return;
        }
    }
}

/* Which kinds of faults there are: none, a few, or most of them. */
static uint64_t draw_faults(struct prng *prng, enum mood mood)
{
    static const unsigned chance[] = {
        [MOOD_CALM] = 0, [MOOD_MILD] = 180, [MOOD_WILD] = 500, [MOOD_STORM] = 300};
    uint64_t set = 0;

    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        unsigned per_mille = chance[mood];

        switch (fault) {
        case FAULT_BEYOND:
        case FAULT_FORGED: /* they excuse overlapping leases, so they must be rare */
            per_mille = per_mille / 6;
            break;
        case FAULT_CRASH:
        case FAULT_TRANSFER:
        case FAULT_SLOW_STOP:
            per_mille = per_mille * 3 / 2;
            break;
        case FAULT_RATE: /* not faults in themselves: also in calm runs */
        case FAULT_STAGGER:
        case FAULT_SETTINGS:
        case FAULT_WITNESS:
        case FAULT_COMPACT:
        case FAULT_FLOOD:
            per_mille = 300;
            break;
        case FAULT_ORDERS: /* drawn last, and from the side */
            continue;
        case FAULT_DISTANT: /* they need longer runs */
        case FAULT_DISKS:
            per_mille = 150;

            break;
        default:
            break;
        }
        if (prng_chance(prng, per_mille))
            set |= FAULT_BIT(fault);
    }
    return set;
}

static void draw_members(struct profile *p, struct prng *prng)
{
    bool has_learner = prng_chance(prng, 100);
    unsigned witness = (unsigned)prng_below(prng, p->nodes);
    unsigned witnesses = 1 + (unsigned)prng_below(prng, p->nodes > 4 ? (p->nodes - 1) / 2 : 1);

    p->first = (struct raft_config){.count = (uint8_t)p->nodes};
    for (unsigned i = 0; i < p->nodes; i++) {
        uint8_t priority = (uint8_t)prng_below(prng, 4);

        p->first.members[i] = (struct raft_member){.id = i + 1, .is_voter = true};
        if (p->faults & FAULT_BIT(FAULT_PRIORITY))
            p->first.members[i].priority = priority;
    }
    for (unsigned i = 0; i < witnesses && p->faults & FAULT_BIT(FAULT_WITNESS) && p->nodes >= 2; i++)
        p->first.members[(witness + i) % p->nodes].is_witness = true;
    if (has_learner && p->faults & FAULT_BIT(FAULT_MEMBERS) && p->nodes >= 3)
        p->first.members[(witness + p->nodes - 1) % p->nodes].is_voter = false;
}

static void draw_times(struct profile *p, struct prng *prng)
{
    bool is_far = p->faults & FAULT_BIT(FAULT_FAR);
    gavel_ns far = prng_between(prng, 2 * NS_PER_MS, 25 * NS_PER_MS);
    gavel_ns every = prng_between(prng, 150 * NS_PER_MS, 1500 * NS_PER_MS);

    p->fault_every = p->mood == MOOD_MILD ? 3 * every : p->mood == MOOD_STORM ? every / 6 : every;
    p->loss_per_mille = (unsigned)prng_between(prng, 0, p->mood == MOOD_MILD ? 30 : 200);
    p->delay_per_mille = (unsigned)prng_between(prng, 0, p->mood == MOOD_MILD ? 10 : 60);
    p->duplicate_per_mille = (unsigned)prng_between(prng, 0, 100);
    p->survive_per_mille = (unsigned)prng_between(prng, 100, 1000);
    p->link_min = 100 * NS_PER_US;
    p->link_max = prng_between(prng, 100 * NS_PER_US, 2 * NS_PER_MS);
    p->jitter = prng_between(prng, 0, 500 * NS_PER_US);
    if (is_far)
        p->link_max = far;
    p->timer_late = prng_between(prng, 0, NS_PER_MS);
    p->write_min = 100 * NS_PER_US;
    p->write_max = prng_between(prng, 100 * NS_PER_US, 2 * NS_PER_MS);
    p->propose_every = prng_between(prng, 3 * NS_PER_MS, 60 * NS_PER_MS);
    (void)prng_between(prng, 0, NS_PER_MS); /* unused; keeps the rest of each seed's profile as it was */
    p->act_every = prng_between(prng, 5 * NS_PER_MS, 60 * NS_PER_MS);
    p->compact_after = (unsigned)prng_between(prng, 1, 60);
    if (!(p->faults & FAULT_BIT(FAULT_COMPACT)))
        p->compact_after = 200;
}

/* Mostly a minority is far away, or has slow disks; now and then anybody. */
static void draw_distances(struct profile *p, struct prng *prng)
{
    bool are_any = prng_chance(prng, 200);
    bool are_all = prng_chance(prng, 400);
    unsigned left = (p->nodes - 1) / 2;

    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        gavel_ns distance = 25 * NS_PER_MS << prng_below(prng, 3);
        bool is_distant = prng_chance(prng, i < p->nodes ? 500 : 250);
        bool is_slow = prng_chance(prng, 500);
        gavel_ns disk = (gavel_ns)(prng_chance(prng, 500) ? 50 : 250) * NS_PER_MS;

        distance += prng_between(prng, 0, distance);
        disk += prng_between(prng, 0, 3 * disk);
        if (p->faults & FAULT_BIT(FAULT_DISTANT) && is_distant && (are_any || i >= p->nodes || left > 0)) {
            p->distance[i] = distance;
            left -= left > 0;
        }
        if (p->faults & FAULT_BIT(FAULT_DISKS) && (is_slow || are_all))
            p->disk[i] = disk;
    }
    for (unsigned i = 0; i < SLOTS_MAX && p->faults & (FAULT_BIT(FAULT_DISTANT) | FAULT_BIT(FAULT_DISKS));
         i++) {
        /* or what clients ask for would pile up */
        p->settings[i].batch_bytes = 65536;
        p->settings[i].batch_entries = 256;
        p->settings[i].inflight_max = 8;
    }
}

/* What a promise is worth to a leader with these settings. */
static gavel_ns lease_of(const struct raft_settings *s, gavel_ns promise)
{
    return promise / (1000000 + s->drift_ppm) * (1000000 - s->drift_ppm) - s->stop_margin;
}

/* The lease of a round lasts until the answers to the next one; nodes differ in promise and heartbeat. */
void cluster_profile_find_room(struct profile *p)
{
    p->room = NEVER;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        p->room = ns_min(p->room, lease_of(&p->settings[i], p->shortest) - p->settings[i].heartbeat);
}

/*
 * Without faults no leader is replaced, also one that is far away and yet near enough to work. But if its
 * round trips are just as long as its lease allows, some are shorter and some longer: it claims, and lapses
 * with the first that is late. Then it is the distance that goes wrong, so in calm runs nobody is at that
 * distance.
 */
static void fit_distances(struct profile *p)
{
    gavel_ns longest = p->shortest;
    gavel_ns most = 0;

    if (p->mood != MOOD_CALM)
        return;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        longest = ns_max(longest, p->settings[i].promise);
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        most = ns_max(most, lease_of(&p->settings[i], longest) - p->settings[i].heartbeat);
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        gavel_ns least_trip = 2 * (p->distance[i] + p->link_min);
        gavel_ns most_trip = 2 * (p->distance[i] + p->link_max + p->jitter + p->timer_late) + NS_PER_MS;

        if (p->distance[i] > 0 && most_trip > p->room && least_trip <= most)
            p->distance[i] = most;
    }
}

/* A round must be back well before the lease it makes has lapsed, or nobody could ever lead for long. */
static void fit_links(struct profile *p)
{
    gavel_ns slack = p->room / (p->mood == MOOD_CALM ? 8 : 4);

    p->timer_late = ns_min(p->timer_late, slack / 8);
    p->jitter = ns_min(p->jitter, slack / 4);
    p->link_max = ns_min(p->link_max, slack - p->jitter - p->timer_late);
    p->link_min = ns_min(p->link_min, p->link_max);
    for (unsigned i = 0; i < SLOTS_MAX; i++) /* leaders that prefer another must be able to hand over to it */
        if (p->settings[i].prefers_priority)
            p->settings[i].transfer_timeout =
                ns_max(p->settings[i].transfer_timeout,
                       p->settings[i].stop_margin + 12 * p->link_max + 20 * NS_PER_MS);
    for (unsigned i = 0; i < SLOTS_MAX && p->link_max > 2 * NS_PER_MS; i++) {
        /* One entry at a time over slow links would take longer than any bound. */
        if (p->settings[i].batch_bytes < 16384)
            p->settings[i].batch_bytes = 16384;
        if (p->settings[i].batch_entries < 16)
            p->settings[i].batch_entries = 16;
    }
}

static void take_worst(struct raft_settings *worst, const struct raft_settings *s)
{
    worst->election_min = ns_max(worst->election_min, s->election_min);
    worst->election_max = ns_max(worst->election_max, s->election_max);
    worst->promise = ns_max(worst->promise, s->promise);
    worst->stop_margin = ns_max(worst->stop_margin, s->stop_margin);
    worst->transfer_timeout = ns_max(worst->transfer_timeout, s->transfer_timeout);
}

/* One of the two can lead while the other follows: a heartbeat may be lost without the lease. */
static bool go_together(const struct raft_settings *a, const struct raft_settings *b)
{
    return lease_of(a, b->promise) > 2 * a->heartbeat && lease_of(b, a->promise) > 2 * b->heartbeat;
}

static bool goes_with_all(const struct profile *p, const struct raft_settings *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!go_together(s, &p->settings[i]))
            return false;
    return true;
}

/* One set of settings for all, or each node its own: then they agree in the drift bound. */
static void draw_all_settings(struct profile *p, struct prng *prng)
{
    struct raft_settings s;
    bool is_hasty = prng_chance(prng, 600) && p->faults & FAULT_BIT(FAULT_TRANSFER);
    gavel_ns haste = prng_between(prng, 1, 60 * NS_PER_MS);
    bool prefers = prng_chance(prng, 500) && p->faults & FAULT_BIT(FAULT_PRIORITY);

    raft_settings_default(&s);
    s.verify = guard_verify_cb;
    s.sign = guard_sign_cb;
    p->settings[0] = s;
    draw_settings(prng, &s);
    if (p->faults & FAULT_BIT(FAULT_SETTINGS))
        p->settings[0] = s;
    s.prefers_after = prng_between(prng, 0, 2 * NS_PER_S);
    if (prefers || (p->faults & FAULT_BIT(FAULT_PARTIAL) && p->faults & FAULT_BIT(FAULT_PRIORITY))) {
        p->settings[0].prefers_priority = true;
        p->settings[0].prefers_after = s.prefers_after;
    }
    if (is_hasty)
        p->settings[0].transfer_timeout = p->settings[0].stop_margin + haste;
    p->worst = p->settings[0];
    p->shortest = p->settings[0].promise;
    for (unsigned i = 1; i < SLOTS_MAX; i++) {
        s = p->settings[0];
        draw_settings(prng, &s);
        s.drift_ppm = p->settings[0].drift_ppm;
        p->settings[i] = p->settings[0];
        if (!(p->faults & FAULT_BIT(FAULT_MIXED)) || !is_good(&s) || !goes_with_all(p, &s, i))
            continue;
        p->settings[i] = s;
        if (is_hasty)
            p->settings[i].transfer_timeout = s.stop_margin + haste;
        p->shortest = ns_min(p->shortest, s.promise);
        take_worst(&p->worst, &s);
    }
}

static unsigned draw_nodes(struct prng *prng)
{
    static const unsigned char sizes[] = {1, 2, 3, 3, 3, 3, 3, 3, 4, 4, 5, 5, 5, 5, 6, 7, 9};

    return sizes[prng_below(prng, sizeof sizes)];
}

/* Without a draw of its own, so that what is drawn after it stays what it was. */
static void draw_orders(struct profile *p, const struct prng *prng, uint64_t without)
{
    struct prng aside = *prng;

    if (prng_chance(&aside, 350))
        p->faults |= FAULT_BIT(FAULT_ORDERS) & ~without;
}

/*
 * Where there are witnesses and slow disks, in half of the runs all nodes but one or two are witnesses, and
 * only those one or two have slow disks: the witnesses can elect one of themselves, and have to give the
 * others time to take over. Drawn aside, too.
 */
static void draw_slow_workers(struct profile *p, const struct prng *prng)
{
    const uint64_t both = FAULT_BIT(FAULT_WITNESS) | FAULT_BIT(FAULT_DISKS);
    struct prng aside = *prng;
    unsigned workers;

    (void)prng_next(&aside); /* that one decides about orders */
    workers = 1 + (unsigned)prng_below(&aside, 2);
    if ((p->faults & both) != both || p->nodes < 3 || !prng_chance(&aside, 500))
        return;
    for (unsigned i = 0; i < p->nodes; i++) {
        struct raft_member *member = &p->first.members[i];

        member->is_witness = member->is_voter && i >= workers;
        p->disk[i] = member->is_witness ? 0 : prng_between(&aside, 250 * NS_PER_MS, 1000 * NS_PER_MS);
    }
    p->first.members[0].is_voter = true;
}

/* Less than what clients propose while the disks of a majority hang. */
static void bound_uncommitted(struct profile *p)
{
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        p->settings[i].uncommitted_entries = 128;
        p->settings[i].uncommitted_bytes = 64 * 1024;
    }
}

void cluster_profile_draw(struct profile *p, struct prng *prng, unsigned nodes, gavel_ns duration,
                          uint64_t without)
{
    unsigned drawn = draw_nodes(prng);
    uint64_t mood = prng_below(prng, 100);

    memset(p, 0, sizeof *p);
    p->nodes = nodes ? nodes : drawn;
    p->mood = mood < 10 ? MOOD_CALM : mood < 35 ? MOOD_MILD : mood < 80 ? MOOD_WILD : MOOD_STORM;
    p->faults = draw_faults(prng, p->mood) & ~without;
    if (p->faults & FAULT_BIT(FAULT_DISTANT))
        p->faults &= ~FAULT_BIT(FAULT_DISKS); /* both at once is more than a bound can be stated for */
    draw_all_settings(p, prng);
    draw_times(p, prng);
    cluster_profile_find_room(p);
    fit_links(p);
    draw_members(p, prng);
    draw_distances(p, prng);
    fit_distances(p);
    draw_orders(p, prng, without);
    draw_slow_workers(p, prng);
    bound_uncommitted(p);
    p->longest = NEVER;
    p->heal_at = duration / 2;
    p->end_at = duration;
}

void cluster_profile_plain(struct profile *p, unsigned nodes, gavel_ns low, gavel_ns high)
{
    memset(p, 0, sizeof *p);
    p->nodes = nodes;
    raft_settings_default(&p->worst);
    p->worst.verify = guard_verify_cb;
    p->worst.sign = guard_sign_cb;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        p->settings[i] = p->worst;
    p->first = (struct raft_config){.count = (uint8_t)nodes};
    for (unsigned i = 0; i < nodes; i++)
        p->first.members[i] = (struct raft_member){.id = i + 1, .is_voter = true};
    p->link_min = low;
    p->link_max = low;
    p->jitter = high - low; /* evenly, anew for each message */
    p->write_min = 100 * NS_PER_US;
    p->write_max = NS_PER_MS;
    p->propose_every = 20 * NS_PER_MS;
    p->act_every = 20 * NS_PER_MS;
    p->compact_after = 200;
    p->longest = NEVER;
    p->heal_at = NEVER;
    p->end_at = NEVER;
}
