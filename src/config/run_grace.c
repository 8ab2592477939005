/* SPDX-License-Identifier: Apache-2.0 */

#include "config/run_grace.h"

#include "base/error.h"
#include "core/candidate/session_bounds.h"
#include "guard/spec.h"

#include <inttypes.h>
#include <stdio.h>

#define FLAG_TEXT_MAX 24
#define ADVICE_MAX 96
#define LEAST_GRACE_MS 50
#define LEASE_STEP_MS 100 /* what is proposed is a round number */

/* As somebody would write it behind a flag. */
static const char *flag_text(gavel_ms ms, char buffer[static FLAG_TEXT_MAX])
{
    if (ms % 1000 == 0)
        snprintf(buffer, FLAG_TEXT_MAX, "%" PRId64 "s", ms / 1000);
    else
        snprintf(buffer, FLAG_TEXT_MAX, "%" PRId64 "ms", ms);
    return buffer;
}

/* What is left for the children when the time to kill what remains is taken away. */
static gavel_ms budget_ms(gavel_ms stop_grace_ms)
{
    return ms_from_ns(ns_from_ms(stop_grace_ms) - guard_kill_lead(ns_from_ms(stop_grace_ms)));
}

/* A lease with which the settings add up; 0 if the lease is not what is wrong with them. */
static gavel_ms lease_for(const struct gavel_settings *settings, const struct run_sessions *sessions)
{
    struct gavel_settings longer = *settings;
    gavel_ms least = longer.heartbeat_ms + longer.heartbeat_jitter_ms + longer.call_timeout_ms +
                     longer.stop_grace_ms + longer.stop_margin_ms + 1;

    if (sessions && sessions->asked_ttl_ms == 0)
        return session_lease_for(settings);
    /* Drift takes its part of the lease away; two more for what the sums round off. */
    longer.lease_ms = least * 1000000 / (1000000 - longer.drift_ppm) + 2;
    longer.lease_ms += LEASE_STEP_MS - longer.lease_ms % LEASE_STEP_MS;
    return gavel_settings_check(&longer, NULL) != GAVEL_OK ? 0 : longer.lease_ms;
}

static enum gavel_status check_session(const struct gavel_settings *settings,
                                       const struct run_sessions *sessions, struct gavel_error *error)
{
    struct session_terms terms;

    if (!sessions)
        return GAVEL_OK;
    session_terms_of(settings, sessions->asked_ttl_ms, &terms);
    return session_terms_check(settings, &terms, error);
}

/* " --lease 3s", and what the URL has to say; "" if they are right as they are, or nothing would do. */
static void advise(const struct gavel_settings *settings, const struct run_sessions *sessions,
                   char ret_text[static ADVICE_MAX])
{
    gavel_ms asked = sessions ? sessions->asked_ttl_ms : 0;
    struct gavel_settings enough = *settings;
    char lease[FLAG_TEXT_MAX];
    size_t length = 0;

    ret_text[0] = '\0';
    if (gavel_settings_check(settings, NULL) != GAVEL_OK ||
        (asked == 0 && check_session(settings, sessions, NULL) != GAVEL_OK)) {
        enough.lease_ms = lease_for(settings, sessions);
        if (enough.lease_ms <= settings->lease_ms)
            return;
        length = (size_t)snprintf(ret_text, ADVICE_MAX, " --lease %s", flag_text(enough.lease_ms, lease));
    }
    if (asked > 0 && check_session(&enough, sessions, NULL) != GAVEL_OK && session_ttl_for(&enough) > 0)
        snprintf(ret_text + length, ADVICE_MAX - length, "%s ttl_ms=%" PRId64 " in the URL",
                 length > 0 ? " and" : "", session_ttl_for(&enough));
}

enum gavel_status run_settings_check(const struct gavel_settings *settings,
                                     const struct run_sessions *sessions, struct gavel_error *error)
{
    struct gavel_error cause = {0};
    enum gavel_status status = gavel_settings_check(settings, &cause);
    char advice[ADVICE_MAX];

    if (status == GAVEL_OK && settings->stop_grace_ms < LEAST_GRACE_MS)
        return error_set(
            error, GAVEL_ERR_BUDGET,
            "a stop grace of %" PRId64
            " ms is too short for a tree of processes to die in time; give --stop-grace %dms or more",
            settings->stop_grace_ms, LEAST_GRACE_MS);
    if (status == GAVEL_OK)
        return check_session(settings, sessions, error);
    advise(settings, sessions, advice);
    if (status == GAVEL_ERR_BUDGET && advice[0] != '\0')
        return error_set(error, status, "%.400s;%s would do", cause.message, advice);
    return error_set(error, status, "%s", cause.message);
}

static enum gavel_status refuse(const struct run_child *children, size_t count, gavel_ms sum,
                                const struct gavel_settings *settings, const struct run_sessions *sessions,
                                struct gavel_error *error)
{
    struct gavel_settings enough = *settings;
    char list[160] = "", grace[FLAG_TEXT_MAX], advice[ADVICE_MAX];
    size_t length = 0;

    for (size_t i = 0; i < count && length < sizeof list - 1; i++)
        if (children[i].grace_ms >= 0)
            length += (size_t)snprintf(list + length, sizeof list - length, "%s%s %" PRId64,
                                       length ? " + " : "", children[i].name, children[i].grace_ms);
    if (length >= sizeof list) /* cut off */
        snprintf(list, sizeof list, "the graces of %zu children", count);
    enough.stop_grace_ms = sum;
    while (budget_ms(enough.stop_grace_ms) < sum) /* the kill lead is at most half a second */
        enough.stop_grace_ms++;
    advise(&enough, sessions, advice);
    return error_set(error, GAVEL_ERR_BUDGET,
                     "the children stop one after the other, and %s = %" PRId64
                     " ms do not fit into the stop grace of %" PRId64 " ms, which leaves %" PRId64
                     " ms before SIGKILL; give --stop-grace %s%s%s, or shorter graces",
                     list, sum, settings->stop_grace_ms, budget_ms(settings->stop_grace_ms),
                     flag_text(enough.stop_grace_ms, grace), advice[0] != '\0' ? " and" : "", advice);
}

enum gavel_status run_graces_share(const struct run_child *children, size_t count,
                                   const struct gavel_settings *settings, const struct run_sessions *sessions,
                                   struct child_rule *rules, struct gavel_error *error)
{
    gavel_ns budget = ns_from_ms(settings->stop_grace_ms);
    gavel_ms sum = 0;

    budget -= guard_kill_lead(budget);
    for (size_t i = 0; i < count; i++)
        sum += children[i].grace_ms >= 0 ? children[i].grace_ms : 0;
    if (ns_from_ms(sum) > budget)
        return refuse(children, count, sum, settings, sessions, error);
    for (size_t i = 0; i < count; i++)
        rules[i].grace =
            children[i].grace_ms >= 0 ? ns_from_ms(children[i].grace_ms) : budget - ns_from_ms(sum);
    return GAVEL_OK;
}
