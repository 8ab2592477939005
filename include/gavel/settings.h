/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The settings of a candidate, their presets, and the arithmetic that says
 * whether they add up.
 *
 * Start from a preset and change what you need:
 *
 *     struct gavel_settings settings;
 *     if (gavel_settings_preset("local", &settings) != GAVEL_OK)
 *         die();
 *     settings.policy = GAVEL_POLICY_PRIORITY;
 *
 * All times are in milliseconds. A budget that does not add up is rejected
 * when the candidate joins, with the sum spelled out:
 *
 *     lease * (1 - drift) - stop margin  >  heartbeat + jitter + call time-out + stop grace
 *
 * That is, one renewal may be lost or late, and the work still has its whole
 * grace to stop before anyone else may lead.
 */
#ifndef GAVEL_SETTINGS_H
#define GAVEL_SETTINGS_H

#include <gavel/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A duration in milliseconds. */
typedef int64_t gavel_ms;

/*
 * Who claims a vacant group. A policy never affects safety: it only makes the
 * others wait, so a preferred candidate that is dead delays the others but
 * never blocks them.
 */
enum gavel_policy {
    GAVEL_POLICY_FIRST,         /* whoever comes first */
    GAVEL_POLICY_LEXICOGRAPHIC, /* the lowest candidate id, byte by byte */
    GAVEL_POLICY_PRIORITY,      /* the highest number; ties by lowest id */
    GAVEL_POLICY_BALANCED,      /* who leads the fewest groups; only on gavel:// */
};

struct gavel_settings {
    gavel_ms heartbeat_ms;         /* how often a candidate registers and a leader renews */
    gavel_ms heartbeat_jitter_ms;  /* random extra time, so that not all call the store at once */
    gavel_ms lease_ms;             /* how long a mandate lasts without a renewal */
    gavel_ms candidate_timeout_ms; /* a candidate silent for longer is not listed as active */
    gavel_ms election_interval_ms; /* how often a standby looks at the group */
    gavel_ms observation_ms;       /* cold start: how long to watch before taking part */
    gavel_ms preparation_ms;       /* how long a new leader waits before its work starts */
    gavel_ms min_mandate_ms;       /* how long a new leader leads before it hands over */
    gavel_ms max_mandate_ms;       /* the longest mandate, then it gets a new epoch; 0: no limit */
    gavel_ms takeover_delay_ms;    /* wait before replacing a lost leader; never after a hand-over */
    gavel_ms start_jitter_min_ms;  /* shortest random wait before the first call to the store */
    gavel_ms start_jitter_max_ms;  /* longest random wait before it */
    gavel_ms call_timeout_ms;      /* how long a call to the store may take */
    gavel_ms stop_grace_ms;        /* how long the work may take to stop */
    gavel_ms stop_margin_ms;       /* between the deadline and the end of the lease, for late timers */
    gavel_ms stagger_ms;           /* wait before a claim for each candidate that the policy prefers */
    gavel_ms epoch_grace_ms;       /* how long gavel_epoch_valid() accepts the previous epoch */
    gavel_ms breaker_reset_ms;     /* how long the circuit breaker stays open while somebody leads */
    int breaker_threshold;         /* failures in a row that open it */
    int breaker_attempts;          /* calls it lets through while half open */
    double contention_threshold;   /* contention: heartbeats more than this many intervals apart */
    gavel_ms contention_every_ms;  /* shortest time between two contention events */
    int drift_ppm;                 /* largest difference between clock rates, in parts per million */
    enum gavel_policy policy;
    bool preempt;           /* hand over to a candidate that the policy prefers, after min_mandate_ms */
    bool trust_store_clock; /* take over as soon as the lease has expired by the store's clock */
};

/* The names of the presets, ending with NULL: "local", "database", "object-store", "frugal",
 * "coordinator", "cluster". */
GAVEL_API extern const char *const gavel_preset_names[];

/* ERR_INVALID if there is no preset of that name; *ret_settings is then untouched. */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_settings_preset(const char *name,
                                                                struct gavel_settings *ret_settings);

/*
 * Checks the settings as a whole. ERR_INVALID for a single value that makes
 * no sense (negative, absurdly large), ERR_BUDGET if the times do not add up
 * or contradict each other (a minimum above its maximum). *error (may be NULL)
 * says which, with the sum.
 */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_settings_check(const struct gavel_settings *settings,
                                                               struct gavel_error *error);

/* What the settings guarantee; printed by `gavel check`. */
struct gavel_bounds {
    gavel_ms renew_slack_ms;     /* what the budget leaves over; positive, or the settings are rejected */
    gavel_ms stop_begins_ms;     /* after the last good renewal was sent: the work is told to stop */
    gavel_ms stopped_by_ms;      /* after the same instant: the work has stopped (the deadline) */
    gavel_ms takeover_after_ms;  /* after the last renewal was seen: the earliest take-over */
    gavel_ms gap_resign_ms;      /* worst gap without a leader: handed over, doorbell lost */
    gavel_ms gap_killed_ms;      /* the same when the leader was killed and its death is proven */
    gavel_ms gap_loss_ms;        /* worst gap without a leader: frozen or cut off */
    gavel_ms gap_outage_ms;      /* the same when the store was away and circuit breakers are open */
    gavel_ms overlap_ms;         /* worst overlap of two leaders while clock rates keep the bound: 0 */
    gavel_ms overlap_at_1pct_ms; /* the same if clock rates differ by 1 %, beyond the default bound */
};

/* Computes what checked settings guarantee for a group with this many candidates. */
GAVEL_API void gavel_settings_bounds(const struct gavel_settings *settings, size_t candidates,
                                     struct gavel_bounds *ret_bounds);

/* "first", "lexicographic", "priority", "balanced". */
GAVEL_API const char *gavel_policy_name(enum gavel_policy policy);
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_policy_parse(const char *name, enum gavel_policy *ret_policy);

#ifdef __cplusplus
}
#endif

#endif
