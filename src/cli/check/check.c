/* SPDX-License-Identifier: Apache-2.0 */

/* gavel check: whether the settings add up, and what they guarantee. */
#include "cli/check/check.h"

#include "cli/check/check_load.h"
#include "cli/cluster/cluster_cli.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "cli/run/run_plan.h"
#include "cli/settings/setting_values.h"
#include "cli/store/facts.h"
#include "config/duration.h"
#include "config/run_grace.h"
#include "core/candidate/candidate.h"
#include "guard/spec.h"
#include "store/store.h"

#include "base/error.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PICTURE_COLUMNS 70
#define CANDIDATES_MAX 1024

/* The instants of the picture, after the last renewal that succeeded was sent. */
struct instant {
    gavel_ms at_ms;
    const char *text;
};

#define INSTANTS 6

/* After the last renewal that succeeded was sent: when `gavel run` kills what has not stopped. */
static gavel_ms kill_begins_ms(const struct gavel_settings *s, const struct gavel_bounds *bounds)
{
    return bounds->stopped_by_ms - ms_from_ns(guard_kill_lead(ns_from_ms(s->stop_grace_ms)));
}

static bool has_session(const struct findings *f) { return f->session.ttl_ms > 0; }

/* By when the next renewal, or keep-alive, was answered or is late. */
static gavel_ms renewed_by_ms(const struct gavel_settings *s, const struct findings *f)
{
    return s->call_timeout_ms +
           (has_session(f) ? f->session.keep_every_ms : s->heartbeat_ms + s->heartbeat_jitter_ms);
}

static void instants_of(const struct gavel_settings *s, const struct findings *f,
                        struct instant ret_instants[static INSTANTS])
{
    const struct gavel_bounds *bounds = &f->bounds;
    bool has = has_session(f);
    const struct instant instants[INSTANTS] = {
        {0,
         has ? "the leader sends a keep-alive that is answered" : "the leader sends a renewal that succeeds"},
        {renewed_by_ms(s, f), has ? "by now the next one is answered, or late"
                                  : "by now the next renewal is answered, or has failed"},
        {bounds->stop_begins_ms, has ? "without an answer the work is told to stop (gavel run: SIGTERM)"
                                     : "without a renewal the work is told to stop (gavel run: SIGTERM)"},
        {kill_begins_ms(s, bounds), "gavel run kills what has not stopped (SIGKILL)"},
        {bounds->stopped_by_ms, "the work has stopped (the deadline)"},
        {bounds->takeover_after_ms,
         has ? "the store grants the mandate to another, counted from when it had the keep-alive"
             : "others may take over, counted from when they saw the renewal"},
    };

    /* An answer may be late only after the work was told to stop: then the budget has a warning. */
    for (int i = 0; i < INSTANTS; i++) {
        int at = i;

        for (; at > 0 && ret_instants[at - 1].at_ms > instants[i].at_ms; at--)
            ret_instants[at] = ret_instants[at - 1];
        ret_instants[at] = instants[i];
    }
}

static char letter_of(int instant) { return (char)('A' + instant); }

/* A bar to scale with a letter at each instant; letters that would fall on one another are put side by
 * side. */
static void print_picture(const struct cli *cli, const struct gavel_settings *s, const struct findings *f)
{
    struct instant instants[INSTANTS] = {0};
    char bar[PICTURE_COLUMNS + INSTANTS + 1];
    gavel_ms longest;
    int last = -1;

    instants_of(s, f, instants);
    longest = instants[INSTANTS - 1].at_ms;
    memset(bar, '-', sizeof bar);
    for (int i = 0; i < INSTANTS; i++) {
        int column = longest > 0 ? (int)(instants[i].at_ms * (PICTURE_COLUMNS - 1) / longest) : 0;

        last = column > last ? column : last + 1;
        bar[last] = letter_of(i);
    }
    bar[last + 1] = '\0';
    printf("\n  %s%s%s\n\n", style_begin(cli, STYLE_CYAN), bar, style_end(cli, STYLE_CYAN));
    for (int i = 0; i < INSTANTS; i++)
        printf("  %c %8" PRId64 " ms  %s\n", letter_of(i), instants[i].at_ms, instants[i].text);
}

static void heading(const struct cli *cli, const char *text)
{
    printf("%s%s%s\n", style_begin(cli, STYLE_BOLD), text, style_end(cli, STYLE_BOLD));
}

/* A longest mandate of 0 is no mandate of no length. */
static bool is_unlimited(const struct setting *setting, const struct config *config)
{
    return setting->offset == offsetof(struct config, settings.max_mandate_ms) &&
           config->settings.max_mandate_ms == 0;
}

static void print_settings(const struct cli *cli)
{
    char value[128];

    heading(cli, "Settings");
    printf("  %-22s  %s\n", "preset", cli->config.preset);
    for (size_t i = 0; i < settings_count; i++)
        if (settings_table[i].groups & OPTIONS_SETTINGS && settings_table[i].kind != SETTING_TEXT)
            printf("  %-22s  %s\n", settings_table[i].key,
                   is_unlimited(&settings_table[i], &cli->config)
                       ? "none"
                       : setting_text(&settings_table[i], &cli->config, value, sizeof value));
}

/* The time from a renewal, or keep-alive, until the mandate must be over. */
static gavel_ms granted_ms(const struct gavel_settings *s, const struct findings *f)
{
    return has_session(f) ? f->session.ttl_ms : s->lease_ms;
}

static gavel_ms drift_ms(const struct gavel_settings *s, const struct findings *f)
{
    return granted_ms(s, f) - s->stop_margin_ms - f->bounds.stopped_by_ms;
}

static gavel_ms needed_ms(const struct gavel_settings *s, const struct findings *f)
{
    return renewed_by_ms(s, f) + s->stop_grace_ms;
}

static void print_slack(const struct cli *cli, const struct findings *f)
{
    gavel_ms slack = f->bounds.renew_slack_ms;
    char advice[CHECK_ADVICE_MAX];

    printf("  left over  %" PRId64 " ms: ", slack);
    if (slack > 0) {
        printf("%sthe times add up%s\n", style_begin(cli, STYLE_GREEN), style_end(cli, STYLE_GREEN));
        return;
    }
    check_session_advise(&cli->config.settings, &f->session, advice); /* a lease would have been refused */
    printf("%sa keep-alive that takes a whole call time-out ends the mandate; %s%s\n",
           style_begin(cli, STYLE_YELLOW), advice, style_end(cli, STYLE_YELLOW));
}

static void print_budget(const struct cli *cli, const struct findings *f)
{
    const struct gavel_settings *s = &cli->config.settings;

    heading(cli, "\nBudget");
    printf("  there is   %s %" PRId64 " - drift %" PRId64 " - stop margin %" PRId64 " = %" PRId64 " ms\n",
           has_session(f) ? "session" : "lease", granted_ms(s, f), drift_ms(s, f), s->stop_margin_ms,
           f->bounds.stopped_by_ms);
    if (has_session(f))
        printf("  needed     keep-alive %" PRId64 " + call time-out %" PRId64, f->session.keep_every_ms,
               s->call_timeout_ms);
    else
        printf("  needed     heartbeat %" PRId64 " + jitter %" PRId64 " + call time-out %" PRId64,
               s->heartbeat_ms, s->heartbeat_jitter_ms, s->call_timeout_ms);
    printf("\n             + stop grace %" PRId64 " = %" PRId64 " ms\n", s->stop_grace_ms, needed_ms(s, f));
    print_slack(cli, f);
    print_picture(cli, s, f);
}

static void print_bound(const char *what, gavel_ms ms)
{
    char text[DURATION_TEXT_MAX];

    printf("  %-52s  %s\n", what, duration_exact(ms, text));
}

/* A clock that alone decides, and may step, can end a lease as soon as it has begun: until the deadline two
 * lead. */
static gavel_ms overlap_at_step_ms(const struct cli *cli, const struct gavel_bounds *bounds)
{
    const struct store_capabilities *store = store_capabilities_of(cli->config.store);

    return store->clock == STORE_CLOCK_STEPS && cli->config.settings.trust_store_clock ? bounds->stopped_by_ms
                                                                                       : 0;
}

/* The cluster has settings of its own, which are not known here. */
static const char election_text[] =
    "If the cluster elects a leader of its own meanwhile, as when a host is lost together with the node that leads the cluster, it takes longer by that election. If the new leader cannot know how long the sessions were silent, because nodes were restarted too, they have a new time to live.";

static void print_bounds(const struct cli *cli, const struct findings *f)
{
    const struct gavel_bounds *bounds = &f->bounds;
    char text[96];

    snprintf(text, sizeof text, "\nLongest time without a leader, with %" PRId64 " candidates",
             f->candidates);
    heading(cli, text);
    print_bound("after a hand-over", bounds->gap_resign_ms);
    print_bound("after a proven death", bounds->gap_killed_ms);
    print_bound(has_session(f) ? "after a freeze, a cut connection or a lost host"
                               : "after a freeze or a cut connection",
                bounds->gap_loss_ms);
    print_bound("after an outage of the store", bounds->gap_outage_ms);
    if (has_session(f)) {
        fputs("  ", stdout);
        print_wrapped(stdout, output_columns(stdout), 2, 2, election_text);
    }
    heading(cli, "\nLongest overlap of two leaders");
    snprintf(text, sizeof text, "while clock rates differ by at most %g %%",
             cli->config.settings.drift_ppm / 1e4);
    print_bound(text, bounds->overlap_ms);
    print_bound("if they differ by 1 %, beyond what is assumed", bounds->overlap_at_1pct_ms);
    if (store_capabilities_of(cli->config.store)->clock == STORE_CLOCK_STEPS)
        print_bound("if the clock of the store is set or jumps", overlap_at_step_ms(cli, bounds));
}

/* In the order in which they stop. */
static void print_children(const struct cli *cli, const struct child_rule *rules)
{
    const struct run_file *file = cli->config.children;
    char text[DURATION_TEXT_MAX];

    heading(cli, "\nChildren, in the order in which they stop");
    for (size_t i = file->count; i-- > 0;) {
        int number =
            file->children[i].term_signal ? file->children[i].term_signal : cli->config.run.term_signal;
        const char *name = sigabbrev_np(number);

        printf("  %-22s  ", file->children[i].name);
        if (name)
            printf("SIG%s", name);
        else /* a real-time signal */
            printf("signal %d", number);
        printf(", and SIGKILL after %s\n", duration_exact(ms_from_ns(rules[i].grace), text));
    }
}

static json_t *children_json(const struct config *config, const struct child_rule *rules)
{
    json_t *list = json_array();

    for (size_t i = 0; config->children && i < config->children->count; i++) {
        const struct run_child *child = &config->children->children[i];
        json_t *json = json_object();

        json_put_text(json, "name", child->name);
        json_put_number(json, "term_signal",
                        child->term_signal ? child->term_signal : config->run.term_signal);
        json_put_number(json, "grace_ms", ms_from_ns(rules[i].grace));
        json_array_append_new(list, json);
    }
    return list;
}

/* Why the bounds of an election do not apply; NULL if they do. */
static const char *no_bounds_reason(const struct cli *cli, const struct store_capabilities *store)
{
    if (!cli->config.enabled)
        return "Election is switched off: this candidate leads at once, with epoch 0, whoever else does. No store is used, nobody takes over from it, and nothing keeps two from leading at once.";
    if (store->is_fixed)
        return "The leader is assigned: nobody else ever takes over, however long it is away, and two lead at once if two processes are given the same id or different assignments.";
    return NULL;
}

static json_t *settings_json(const struct config *config)
{
    json_t *json = json_object();

    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *setting = &settings_table[i];
        const void *at = (const char *)config + setting->offset;
        char text[64];

        if (!(setting->groups & OPTIONS_SETTINGS))
            continue;
        if (setting->kind == SETTING_DURATION) {
            snprintf(text, sizeof text, "%s_ms", setting->key);
            json_put_number(json, text, *(const gavel_ms *)at);
        } else if (setting->kind == SETTING_INT) {
            json_put_number(json, setting->key, *(const int *)at);
        } else if (setting->kind == SETTING_REAL) {
            json_put_real(json, setting->key, *(const double *)at);
        } else if (setting->kind == SETTING_BOOL) {
            json_put_bool(json, setting->key, *(const bool *)at);
        } else {
            json_put_text(json, setting->key, setting_text(setting, config, text, sizeof text));
        }
    }
    return json;
}

static json_t *bounds_json(const struct cli *cli, const struct findings *f)
{
    const struct gavel_settings *s = &cli->config.settings;
    const struct gavel_bounds *bounds = &f->bounds;
    json_t *json = json_object();

    json_put_number(json, "candidates", f->candidates);
    json_put_number(json, "available_ms", bounds->stopped_by_ms);
    json_put_number(json, "needed_ms", needed_ms(s, f));
    json_put_number(json, "renew_slack_ms", bounds->renew_slack_ms);
    json_put_number(json, "stop_begins_ms", bounds->stop_begins_ms);
    json_put_number(json, "kill_begins_ms", kill_begins_ms(s, bounds));
    json_put_number(json, "stopped_by_ms", bounds->stopped_by_ms);
    json_put_number(json, "takeover_after_ms", bounds->takeover_after_ms);
    json_put_number(json, "gap_resign_ms", bounds->gap_resign_ms);
    json_put_number(json, "gap_killed_ms", bounds->gap_killed_ms);
    json_put_number(json, "gap_loss_ms", bounds->gap_loss_ms);
    json_put_number(json, "gap_outage_ms", bounds->gap_outage_ms);
    json_put_number(json, "overlap_ms", bounds->overlap_ms);
    json_put_number(json, "overlap_at_1pct_ms", bounds->overlap_at_1pct_ms);
    json_put_number(json, "overlap_at_step_ms", overlap_at_step_ms(cli, bounds));
    return json;
}

json_t *check_json(const struct cli *cli, const struct findings *f)
{
    const struct config *config = &cli->config;
    json_t *json = json_object();

    json_put(json, "settings", settings_json(config));
    json_put(json, "bounds", f->no_bounds ? json_null() : bounds_json(cli, f));
    if (has_session(f))
        json_put(json, "session", check_session_json(&f->session));
    json_put_text_or_null(json, "no_bounds", f->no_bounds ? f->no_bounds : "");
    json_put(json, "children", children_json(config, f->rules));
    json_put(json, "store", store_facts_json(cli, f->store));
    json_put(json, "load",
             f->no_bounds
                 ? json_null()
                 : check_load_json(cli, f->store, f->candidates, f->session.keep_every_ms, &f->prices));
    json_put_bool(json, "enabled", config->enabled);
    return json;
}

void check_print(const struct cli *cli, const struct findings *f)
{
    print_settings(cli);
    if (f->no_bounds) {
        heading(cli, "\nGuarantees");
        fputs("  ", stdout);
        print_wrapped(stdout, output_columns(stdout), 2, 2, f->no_bounds);
    } else {
        if (has_session(f))
            check_session_print(cli, &f->session);
        print_budget(cli, f);
        print_bounds(cli, f);
    }
    if (cli->config.children)
        print_children(cli, f->rules);
    if (cli->config.enabled) {
        heading(cli, "\nStore");
        store_facts_print(cli, f->store);
    }
    if (!f->no_bounds)
        check_load_print(cli, f->store, f->candidates, f->session.keep_every_ms, &f->prices);
}

enum gavel_status check_find(const struct cli *cli, struct findings *f, struct gavel_error *error)
{
    const struct gavel_settings *s = &cli->config.settings;
    const struct run_file *file = cli->config.children;
    const struct run_sessions store = {.asked_ttl_ms = store_session_ttl_of(cli->config.store)}, *sessions;
    enum gavel_status status;

    f->no_bounds = no_bounds_reason(cli, f->store);
    f->session = (struct session_terms){0};
    sessions = f->store->has_sessions && !f->no_bounds ? &store : NULL;
    status = run_settings_check(s, sessions, error);
    if (status == GAVEL_OK)
        status = candidate_check_policy(s->policy, cli->config.enabled && f->store->has_sessions, error);
    if (status == GAVEL_OK && file)
        status = run_graces_share(file->children, file->count, s, sessions, f->rules, error);
    if (status == GAVEL_OK && sessions)
        status = check_session_terms(cli->config.store, s, &f->session, error);
    if (status != GAVEL_OK)
        return status;
    if (has_session(f))
        session_bounds(s, &f->session, &f->bounds);
    else
        gavel_settings_bounds(s, (size_t)f->candidates, &f->bounds);
    return GAVEL_OK;
}

int command_check(const struct cli *cli, int argc, char **argv)
{
    struct gavel_error error = {0};
    struct findings f = {.candidates = cli_flag_number(cli, "candidates", 3)};
    const char *given = cli_flag_given(cli, (const char *const[]){"candidates", "prices", NULL});

    (void)argc;
    (void)argv;
    if (cli->config.cluster && given)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--%s is for the settings of candidates, --cluster for nodes: give one of them",
                        given);
    if (cli->config.cluster)
        return cluster_check(cli);
    if (store_check_url(cli->config.store, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    f.store = store_capabilities_of(cli->config.store);
    if (f.candidates < 1 || f.candidates > CANDIDATES_MAX)
        return cli_fail(cli, GAVEL_ERR_INVALID, "--candidates: a group has from 1 to %d candidates",
                        CANDIDATES_MAX);
    if (load_prices_parse(cli_flag_text(cli, "prices"), &f.prices, &error) != GAVEL_OK ||
        check_find(cli, &f, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (cli->config.children && run_plan_check(cli, &error) != GAVEL_OK)
        return run_plan_fail(cli, &error);
    if (cli->config.json)
        json_print_line(check_json(cli, &f));
    else
        check_print(cli, &f);
    return cli_finish(cli, CLI_EXIT_OK);
}
