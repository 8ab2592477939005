/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/profile.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

const struct named *fault_row(unsigned fault)
{
    static const struct named rows[] = {
#define FAULT_ROW(name, text, what) [FAULT_##name] = {text, what},
        FAULT_MAP(FAULT_ROW)
#undef FAULT_ROW
    };

    return &rows[fault];
}

static bool is_good(const struct gavel_settings *settings)
{
    return gavel_settings_check(settings, NULL) == GAVEL_OK;
}

/* Times that nobody would write down, but that add up. */
static bool draw_free(struct prng *prng, struct gavel_settings *s)
{
    gavel_ms lease = prng_between(prng, 400, 12000);

    s->lease_ms = lease;
    s->heartbeat_ms = prng_between(prng, lease / 8, lease / 3);
    s->heartbeat_jitter_ms = prng_between(prng, 0, lease / 16);
    s->call_timeout_ms = prng_between(prng, lease / 16, lease / 3);
    s->stop_grace_ms = prng_between(prng, 0, lease / 4);
    s->stop_margin_ms = prng_chance(prng, 500) ? 0 : prng_between(prng, 0, lease / 20);
    s->candidate_timeout_ms = s->heartbeat_ms + s->heartbeat_jitter_ms + prng_between(prng, 1, 8 * lease);
    s->election_interval_ms = prng_between(prng, lease / 8, lease);
    s->drift_ppm = prng_chance(prng, 500) ? (int)prng_between(prng, 0, 100000) : 1000;
    s->observation_ms = prng_chance(prng, 300) ? prng_between(prng, 0, 2 * lease) : 0;
    s->preparation_ms = prng_chance(prng, 300) ? prng_between(prng, 0, lease) : 0;
    s->min_mandate_ms = prng_chance(prng, 300) ? prng_between(prng, 0, 4 * lease) : 0;
    s->max_mandate_ms = prng_chance(prng, 300) ? s->min_mandate_ms + prng_between(prng, lease, 6 * lease) : 0;
    s->takeover_delay_ms = prng_chance(prng, 300) ? prng_between(prng, 0, lease) : 0;
    s->start_jitter_min_ms = prng_chance(prng, 300) ? prng_between(prng, 0, lease) : 0;
    s->start_jitter_max_ms = s->start_jitter_min_ms + prng_between(prng, 0, lease / 2);
    s->stagger_ms = prng_between(prng, 0, lease / 8);
    s->epoch_grace_ms = prng_between(prng, 0, lease);
    s->breaker_threshold = (int)prng_between(prng, 1, 8);
    s->breaker_attempts = (int)prng_between(prng, 1, 3);
    s->breaker_reset_ms = prng_between(prng, lease / 4, 4 * lease);
    return is_good(s);
}

static void draw_settings(struct prng *prng, struct gavel_settings *ret_settings)
{
    static const char *const presets[] = {"local",    "local",       "local",        "local", "local",
                                          "database", "coordinator", "object-store", "frugal"};
    const char *preset = presets[prng_below(prng, sizeof presets / sizeof *presets)];
    struct gavel_settings s;
    bool is_known = gavel_settings_preset(preset, &s) == GAVEL_OK;

    ASSERT(is_known);
    *ret_settings = s;
    if (prng_chance(prng, 400)) {
        for (int i = 0; i < 20 && !draw_free(prng, &s); i++)
            s = *ret_settings;
        if (is_good(&s))
            *ret_settings = s;
    } else if (prng_chance(prng, 500)) {
        ret_settings->breaker_reset_ms = prng_between(prng, 1000, 10000);
    }
    if (prng_chance(prng, 300)) /* new epochs come often */
        ret_settings->max_mandate_ms =
            ret_settings->min_mandate_ms + prng_between(prng, 1, 4) * ret_settings->lease_ms;
    if (prng_chance(prng, 300)) /* the dead are listed for long */
        ret_settings->candidate_timeout_ms = prng_between(prng, 2, 8) * ret_settings->lease_ms;
    ret_settings->policy = (enum gavel_policy)prng_below(prng, 3);
    ret_settings->preempt = prng_chance(prng, 250);
}

/* Another candidate of the same group, configured by somebody else: everything may differ but the drift
 * bound. */
static void draw_other_settings(struct prng *prng, const struct gavel_settings *first,
                                struct gavel_settings *ret)
{
    struct gavel_settings s = *first;

    if (draw_free(prng, &s)) {
        s.drift_ppm = first->drift_ppm;
        if (is_good(&s)) {
            *ret = s;
            return;
        }
    }
    s = *first;
    s.lease_ms = s.lease_ms * prng_between(prng, 2, 4);
    *ret = is_good(&s) ? s : *first;
}

static void take_worst(struct gavel_settings *worst, const struct gavel_settings *s)
{
#define WORST(field)                                                                                         \
    if (s->field > worst->field)                                                                             \
    worst->field = s->field
    WORST(heartbeat_ms);
    WORST(heartbeat_jitter_ms);
    WORST(lease_ms);
    WORST(candidate_timeout_ms);
    WORST(election_interval_ms);
    WORST(observation_ms);
    WORST(preparation_ms);
    WORST(min_mandate_ms);
    WORST(max_mandate_ms);
    WORST(takeover_delay_ms);
    WORST(start_jitter_max_ms);
    WORST(call_timeout_ms);
    WORST(stop_grace_ms);
    WORST(stop_margin_ms);
    WORST(stagger_ms);
    WORST(breaker_reset_ms);
    WORST(breaker_threshold);
    WORST(breaker_attempts);
    WORST(policy);
    WORST(preempt);
#undef WORST
}

/* Which kinds of faults there are: none, a few, or most of them. */
static uint64_t draw_faults(struct prng *prng, enum mood mood)
{
    static const unsigned chance[] = {[MOOD_CALM] = 0, [MOOD_MILD] = 250, [MOOD_WILD] = 750};
    uint64_t set = 0;

    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        unsigned per_mille = fault == FAULT_BREAK ? chance[mood] / 8 : chance[mood];

        if (fault == FAULT_FINISH) /* drawn elsewhere, so that the seeds of before mean what they did */
            continue;
        if (fault == FAULT_RATE || fault == FAULT_MIXED) /* not a fault in itself: also in calm runs */
            per_mille = per_mille / 2 + 300;
        if (prng_chance(prng, per_mille))
            set |= FAULT_BIT(fault);
    }
    return set;
}

static void draw_store(struct profile *p, struct prng *prng)
{
    static const enum store_clock clocks[] = {STORE_CLOCK_NONE, STORE_CLOCK_NONE, STORE_CLOCK_STEPS,
                                              STORE_CLOCK_STEPS, STORE_CLOCK_STEADY};

    p->clock = clocks[prng_below(prng, sizeof clocks / sizeof *clocks)];
    p->sees_processes = prng_chance(prng, 500);
    p->hosts = p->clock == STORE_CLOCK_STEADY ? 1 : (unsigned)prng_between(prng, 1, 4);
    if (p->clock == STORE_CLOCK_STEPS && prng_chance(prng, 200)) {
        /* Whoever sets trust_store_clock promises that it does not step. */
        p->faults &= ~FAULT_BIT(FAULT_STEP);
        for (unsigned i = 0; i < SLOTS_MAX; i++)
            p->settings[i].trust_store_clock = true;
    }
}

/* How long faults go on, and how often they come, follow from the lease: what matters happens around it. */
static void draw_times(struct profile *p, struct prng *prng, gavel_ns duration)
{
    gavel_ns lease = ns_from_ms(p->worst.lease_ms);
    gavel_ns quiet_at = duration * 2 / 3;

    if (quiet_at < 6 * lease)
        quiet_at = 6 * lease;
    p->quiet_at = quiet_at;
    p->end_at = ns_max(duration, quiet_at + 2 * lease);
    p->fault_every =
        p->mood == MOOD_WILD ? prng_between(prng, lease / 8, lease) : prng_between(prng, lease, 4 * lease);
    p->loss_per_mille = (unsigned)prng_between(prng, 0, p->mood == MOOD_WILD ? 200 : 50);
    p->delay_per_mille = (unsigned)prng_between(prng, 0, p->mood == MOOD_WILD ? 200 : 50);
    p->duplicate_per_mille = (unsigned)prng_between(prng, 0, 100);
    p->failure_per_mille = (unsigned)prng_between(prng, 0, 60);
}

void profile_draw(struct profile *p, struct prng *prng, unsigned candidates, gavel_ns duration,
                  uint64_t without)
{
    unsigned drawn = (unsigned)prng_between(prng, CANDIDATES_MIN, CANDIDATES_MAX);
    uint64_t mood = prng_below(prng, 100);

    memset(p, 0, sizeof *p);
    p->candidates = candidates ? candidates : drawn;
    p->mood = mood < 12 ? MOOD_CALM : mood < 40 ? MOOD_MILD : MOOD_WILD;
    p->faults = draw_faults(prng, p->mood);
    draw_settings(prng, &p->settings[0]);
    for (unsigned i = 1; i < SLOTS_MAX; i++) {
        struct gavel_settings other;

        draw_other_settings(prng, &p->settings[0], &other);
        p->settings[i] = p->settings[0];
        if (prng_chance(prng, 400) && p->faults & ~without & FAULT_BIT(FAULT_MIXED))
            p->settings[i] = other;
    }
    draw_store(p, prng);
    p->faults &= ~without;
    p->slots = p->candidates + (p->faults & FAULT_BIT(FAULT_TWIN) ? TWINS_MAX : 0);
    p->worst = p->settings[0];
    for (unsigned i = 1; i < p->slots; i++)
        take_worst(&p->worst, &p->settings[i]);
    draw_times(p, prng, duration);
}
