/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Presets, and the sums that decide whether settings are safe.
 *
 *   renewal sent                                                        others may claim
 *   ├─ heartbeat + jitter ─┼─ call time-out ─┼ slack ┼─ grace ─┼ margin ┼ drift ┤
 *                                                    │         └ work has stopped (deadline)
 *                                                    └ work is told to stop
 */

#include "base/error.h"
#include "base/time.h"

#include <gavel/settings.h>

#include <stddef.h>
#include <string.h>

/* Longer times than this are a mistake of units, and would overflow sums. */
#define LONGEST_MS (INT64_C(30) * 24 * 3600 * 1000)

const char *const gavel_preset_names[] = {"local",   "database", "object-store", "frugal", "coordinator",
                                          "cluster", NULL};

/* What all presets share. */
#define COMMON                                                                                               \
    .epoch_grace_ms = 5000, .breaker_threshold = 5, .breaker_reset_ms = 30000, .breaker_attempts = 1,        \
    .contention_threshold = 2.0, .contention_every_ms = 30000, .drift_ppm = 1000

/* One who comes from a supervisor that checks each 5 s and waits a second before it takes over finds that in
 * `coordinator`; it is `database` otherwise, which is made for speed. */
#define DATABASE                                                                                             \
    .heartbeat_ms = 5000, .lease_ms = 10000, .candidate_timeout_ms = 20000, .election_interval_ms = 5000,    \
    .call_timeout_ms = 2000, .stop_grace_ms = 2000, .stop_margin_ms = 100, .stagger_ms = 500

static const struct gavel_settings presets[] = {
    {COMMON, .heartbeat_ms = 500, .heartbeat_jitter_ms = 50, .lease_ms = 2000, .candidate_timeout_ms = 3000,
     .election_interval_ms = 500, .call_timeout_ms = 500, .stop_grace_ms = 500, .stop_margin_ms = 50,
     .stagger_ms = 100},
    {COMMON, DATABASE},
    {COMMON, .policy = GAVEL_POLICY_LEXICOGRAPHIC, .heartbeat_ms = 5000, .heartbeat_jitter_ms = 1000,
     .lease_ms = 15000, .candidate_timeout_ms = 20000, .election_interval_ms = 5000,
     .start_jitter_max_ms = 5000, .call_timeout_ms = 5000, .stop_grace_ms = 2000, .stop_margin_ms = 100,
     .stagger_ms = 1000},
    {COMMON, .policy = GAVEL_POLICY_LEXICOGRAPHIC, .heartbeat_ms = 30000, .lease_ms = 90000,
     .candidate_timeout_ms = 90000, .election_interval_ms = 30000, .observation_ms = 15000,
     .preparation_ms = 5000, .min_mandate_ms = 60000, .max_mandate_ms = 300000, .call_timeout_ms = 10000,
     .stop_grace_ms = 10000, .stop_margin_ms = 500, .stagger_ms = 5000},
    {COMMON, DATABASE, .takeover_delay_ms = 1000},
    /* Not shorter: record 0067 has what a busy virtual machine needs. */
    {COMMON, .heartbeat_ms = 250, .heartbeat_jitter_ms = 25, .lease_ms = 1000, .candidate_timeout_ms = 1500,
     .election_interval_ms = 250, .call_timeout_ms = 300, .stop_grace_ms = 250, .stop_margin_ms = 50,
     .stagger_ms = 50},
};

enum gavel_status gavel_settings_preset(const char *name, struct gavel_settings *ret_settings)
{
    for (size_t i = 0; gavel_preset_names[i]; i++) {
        if (strcmp(name, gavel_preset_names[i]) == 0) {
            *ret_settings = presets[i];
            return GAVEL_OK;
        }
    }
    return GAVEL_ERR_INVALID;
}

/* The bounds of each single time; the names are those that people set. */
static const struct {
    const char *name;
    size_t offset;
    gavel_ms least;
} times[] = {
#define TIME(field, least)                                                                                   \
    {                                                                                                        \
#field, offsetof(struct gavel_settings, field##_ms), least                                           \
    }
    TIME(heartbeat, 1),         TIME(heartbeat_jitter, 0), TIME(lease, 1),
    TIME(candidate_timeout, 1), TIME(observation, 0),      TIME(election_interval, 1),
    TIME(preparation, 0),       TIME(min_mandate, 0),      TIME(max_mandate, 0),
    TIME(takeover_delay, 0),    TIME(start_jitter_min, 0), TIME(start_jitter_max, 0),
    TIME(call_timeout, 1),      TIME(stop_grace, 0),       TIME(stop_margin, 0),
    TIME(stagger, 0),           TIME(epoch_grace, 0),      TIME(breaker_reset, 1),
    TIME(contention_every, 0),
#undef TIME
};

static enum gavel_status check_values(const struct gavel_settings *s, struct gavel_error *error)
{
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        gavel_ms value;

        memcpy(&value, (const char *)s + times[i].offset, sizeof value);
        if (value < times[i].least || value > LONGEST_MS)
            return error_set(error, GAVEL_ERR_INVALID,
                             "%s is %lld ms; it must be between %lld ms and 30 days (%lld ms)", times[i].name,
                             (long long)value, (long long)times[i].least, (long long)LONGEST_MS);
    }
    if (s->breaker_threshold < 1)
        return error_set(error, GAVEL_ERR_INVALID, "breaker_threshold is %d; it must be at least 1",
                         s->breaker_threshold);
    if (s->breaker_attempts < 1)
        return error_set(error, GAVEL_ERR_INVALID, "breaker_attempts is %d; it must be at least 1",
                         s->breaker_attempts);
    if (!(s->contention_threshold >= 1.0 && s->contention_threshold <= 1e6)) /* also refuses NaN */
        return error_set(error, GAVEL_ERR_INVALID,
                         "contention_threshold is %g; it must be between 1 and 1000000",
                         s->contention_threshold);
    if (s->drift_ppm < 0 || s->drift_ppm > 100000)
        return error_set(error, GAVEL_ERR_INVALID,
                         "drift_ppm is %d; it must be between 0 and 100000 (10 %% between two clocks)",
                         s->drift_ppm);
    if ((unsigned)s->policy > GAVEL_POLICY_BALANCED)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the policy is none of first, lexicographic, priority and balanced");
    return GAVEL_OK;
}

static gavel_ms stopped_by_ms(const struct gavel_settings *s)
{
    return ms_from_ns(ns_shrink(ns_from_ms(s->lease_ms), s->drift_ppm)) - s->stop_margin_ms;
}

static gavel_ms takeover_after_ms(const struct gavel_settings *s)
{
    return ms_from_ns(ns_stretch(ns_from_ms(s->lease_ms), s->drift_ppm)) + 1;
}

static gavel_ms needed_ms(const struct gavel_settings *s)
{
    return s->heartbeat_ms + s->heartbeat_jitter_ms + s->call_timeout_ms + s->stop_grace_ms;
}

enum gavel_status gavel_settings_check(const struct gavel_settings *s, struct gavel_error *error)
{
    enum gavel_status status = check_values(s, error);

    if (status != GAVEL_OK)
        return status;
    if (s->start_jitter_min_ms > s->start_jitter_max_ms)
        return error_set(error, GAVEL_ERR_BUDGET,
                         "start_jitter_min (%lld ms) is above start_jitter_max (%lld ms)",
                         (long long)s->start_jitter_min_ms, (long long)s->start_jitter_max_ms);
    if (needed_ms(s) >= stopped_by_ms(s))
        return error_set(
            error, GAVEL_ERR_BUDGET,
            "the times do not add up: heartbeat %lld + jitter %lld + call_timeout %lld + stop_grace %lld = %lld ms must be less than lease %lld - drift %lld - stop_margin %lld = %lld ms; make the lease longer or one of the others shorter",
            (long long)s->heartbeat_ms, (long long)s->heartbeat_jitter_ms, (long long)s->call_timeout_ms,
            (long long)s->stop_grace_ms, (long long)needed_ms(s), (long long)s->lease_ms,
            (long long)(s->lease_ms - s->stop_margin_ms - stopped_by_ms(s)), (long long)s->stop_margin_ms,
            (long long)stopped_by_ms(s));
    if (s->candidate_timeout_ms <= s->heartbeat_ms + s->heartbeat_jitter_ms)
        return error_set(
            error, GAVEL_ERR_BUDGET,
            "candidate_timeout (%lld ms) must be longer than heartbeat + jitter (%lld ms), or every candidate is forgotten between two heartbeats",
            (long long)s->candidate_timeout_ms, (long long)(s->heartbeat_ms + s->heartbeat_jitter_ms));
    if (s->max_mandate_ms > 0 && s->max_mandate_ms < s->lease_ms)
        return error_set(error, GAVEL_ERR_BUDGET,
                         "max_mandate (%lld ms) must be 0 (no limit) or at least the lease (%lld ms)",
                         (long long)s->max_mandate_ms, (long long)s->lease_ms);
    if (s->max_mandate_ms > 0 && s->max_mandate_ms <= s->min_mandate_ms)
        return error_set(error, GAVEL_ERR_BUDGET, "max_mandate (%lld ms) must be above min_mandate (%lld ms)",
                         (long long)s->max_mandate_ms, (long long)s->min_mandate_ms);
    return GAVEL_OK;
}

void gavel_settings_bounds(const struct gavel_settings *s, size_t candidates, struct gavel_bounds *ret_bounds)
{
    gavel_ms ranks = s->policy == GAVEL_POLICY_FIRST ? 1 : (gavel_ms)candidates;
    gavel_ms look = s->election_interval_ms + s->heartbeat_jitter_ms + s->call_timeout_ms;
    gavel_ms claim = ranks * s->stagger_ms + s->call_timeout_ms + s->preparation_ms;
    /* Where a lease runs out, the policy waits for a better candidate that came an observation later. */
    gavel_ms later = s->policy == GAVEL_POLICY_FIRST ? 0 : s->observation_ms;
    gavel_ms loss = look + takeover_after_ms(s) + later + s->takeover_delay_ms + claim;
    /* A leader's clock may be 1 % slow against a standby's: what it thinks is stopped_by lasts longer. */
    gavel_ms beyond = stopped_by_ms(s) - takeover_after_ms(s) * 100 / 101;

    *ret_bounds = (struct gavel_bounds){
        .renew_slack_ms = stopped_by_ms(s) - needed_ms(s),
        .stop_begins_ms = stopped_by_ms(s) - s->stop_grace_ms,
        .stopped_by_ms = stopped_by_ms(s),
        .takeover_after_ms = takeover_after_ms(s),
        .gap_resign_ms = look + claim,
        .gap_killed_ms = look + s->takeover_delay_ms + claim,
        .gap_loss_ms = loss,
        .gap_outage_ms = s->election_interval_ms + loss,
        .overlap_ms = 0,
        .overlap_at_1pct_ms = beyond > 0 ? beyond : 0,
    };
}

static const char *const policy_names[] = {
    [GAVEL_POLICY_FIRST] = "first",
    [GAVEL_POLICY_LEXICOGRAPHIC] = "lexicographic",
    [GAVEL_POLICY_PRIORITY] = "priority",
    [GAVEL_POLICY_BALANCED] = "balanced",
};

const char *gavel_policy_name(enum gavel_policy policy)
{
    return (size_t)policy < sizeof policy_names / sizeof *policy_names ? policy_names[policy] : "unknown";
}

enum gavel_status gavel_policy_parse(const char *name, enum gavel_policy *ret_policy)
{
    for (size_t i = 0; i < sizeof policy_names / sizeof *policy_names; i++) {
        if (strcmp(name, policy_names[i]) == 0) {
            *ret_policy = (enum gavel_policy)i;
            return GAVEL_OK;
        }
    }
    return GAVEL_ERR_INVALID;
}
