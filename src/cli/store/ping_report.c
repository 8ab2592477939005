/* SPDX-License-Identifier: Apache-2.0 */

/* What was measured, and which settings fit it. */
#include "cli/store/ping.h"

#include "cli/json_out.h"
#include "cli/output.h"
#include "cli/store/facts.h"
#include "config/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const op_names[PING_OPS] = {[PING_READ] = "read",
                                               [PING_CLAIM] = "claim",
                                               [PING_RENEW] = "renew",
                                               [PING_CAMPAIGN] = "campaign",
                                               [PING_RELEASE] = "release"};

static const struct {
    const char *key;
    double percent;
} columns[] = {{"p50_ms", 50}, {"p90_ms", 90}, {"p99_ms", 99}, {"max_ms", 100}};

#define COLUMNS (sizeof columns / sizeof columns[0])
#define TIME_TEXT_MAX 32

/* -1 if nothing was measured. */
static int64_t slowest_p99(struct ping_result *result)
{
    int64_t slowest = -1;

    for (size_t i = 0; i < PING_OPS; i++) {
        int64_t p99 = samples_percentile(&result->series[i], 99);

        if (result->series[i].count > 0 && p99 > slowest)
            slowest = p99;
    }
    return slowest;
}

bool ping_fits(struct ping_result *result, gavel_ms call_timeout_ms)
{
    int64_t slowest = slowest_p99(result);

    return slowest >= 0 && slowest <= ns_from_ms(call_timeout_ms) / PING_SAFETY_FACTOR;
}

/* Three digits that count: 0.213 ms, 21.3 ms, 2130 ms. */
static const char *time_text(int64_t ns, char buffer[static TIME_TEXT_MAX])
{
    double ms = (double)ns / NS_PER_MS;

    if (ns == PING_FAILED)
        (void)snprintf(buffer, TIME_TEXT_MAX, "failed");
    else if (ns < 0)
        (void)snprintf(buffer, TIME_TEXT_MAX, "-");
    else
        (void)snprintf(buffer, TIME_TEXT_MAX, "%.*f ms", ms < 10 ? 3 : ms < 100 ? 1 : 0, ms);
    return buffer;
}

static void print_latencies(const struct cli *cli, struct ping_result *result)
{
    static const char *const headings[] = {"  OPERATION", "P50",   "P90",    "P99",
                                           "MAX",         "CALLS", "FAILED", NULL};
    char text[TIME_TEXT_MAX];
    struct table table;

    table_init(&table, headings);
    for (size_t i = 0; i < PING_OPS; i++) {
        if (result->series[i].count == 0)
            continue;
        table_cell(&table, STYLE_PLAIN, "  %s", op_names[i]);
        for (size_t k = 0; k < COLUMNS; k++)
            table_cell(&table, STYLE_PLAIN, "%s",
                       time_text(samples_percentile(&result->series[i], columns[k].percent), text));
        table_cell(&table, STYLE_PLAIN, "%zu", result->series[i].count);
        table_cell(&table, result->failed[i] ? STYLE_RED : STYLE_PLAIN, "%zu", result->failed[i]);
    }
    table_print(&table, cli, stdout);
    table_done(&table);
}

/* The settings that are judged, if they are not simply those of their preset. */
static bool is_changed(const struct cli *cli)
{
    struct gavel_settings preset;

    return gavel_settings_preset(cli->config.preset, &preset) == GAVEL_OK &&
           preset.call_timeout_ms != cli->config.settings.call_timeout_ms;
}

static void add_preset(struct table *table, struct ping_result *result, const char *name, bool is_own,
                       gavel_ms call_timeout_ms, bool is_judged)
{
    int64_t slowest = slowest_p99(result);
    bool fits = ping_fits(result, call_timeout_ms);
    char duration[DURATION_TEXT_MAX];

    table_cell(table, is_judged ? STYLE_BOLD : STYLE_PLAIN, "%s %s", is_judged ? "*" : " ", name);
    table_cell(table, STYLE_PLAIN, "%s", is_own ? "yes" : "-");
    table_cell(table, STYLE_PLAIN, "%s", duration_exact(call_timeout_ms, duration));
    if (slowest <= 0 || slowest == PING_FAILED)
        table_cell(table, STYLE_PLAIN, "-");
    else
        table_cell(table, STYLE_PLAIN, "%.*f", slowest * 10 > ns_from_ms(call_timeout_ms) ? 1 : 0,
                   (double)ns_from_ms(call_timeout_ms) / (double)slowest);
    table_cell(table, fits ? STYLE_GREEN : STYLE_RED, "%s", fits ? "yes" : "no");
}

static void print_presets(const struct cli *cli, struct ping_result *result)
{
    static const char *const headings[] = {"  PRESET",      "OF THE STORE", "CALL TIME-OUT",
                                           "TIMES THE P99", "FITS",         NULL};
    const char *own = result->store->preset;
    struct table table;

    table_init(&table, headings);
    for (const char *const *name = gavel_preset_names; *name; name++) {
        struct gavel_settings settings;

        if (gavel_settings_preset(*name, &settings) != GAVEL_OK)
            continue; /* it is one of the list */
        add_preset(&table, result, *name, own && strcmp(*name, own) == 0, settings.call_timeout_ms,
                   strcmp(*name, cli->config.preset) == 0 && !is_changed(cli));
    }
    if (is_changed(cli))
        add_preset(&table, result, "yours", false, cli->config.settings.call_timeout_ms, true);
    table_print(&table, cli, stdout);
    table_done(&table);
}

/* The first preset that fits; NULL if none does. */
static const char *fitting_preset(struct ping_result *result)
{
    struct gavel_settings settings;

    for (const char *const *name = gavel_preset_names; *name; name++)
        if (gavel_settings_preset(*name, &settings) == GAVEL_OK &&
            ping_fits(result, settings.call_timeout_ms))
            return *name;
    return NULL;
}

static void print_verdict(const struct cli *cli, struct ping_result *result)
{
    bool fits = ping_fits(result, cli->config.settings.call_timeout_ms);
    const char *other = fitting_preset(result);

    printf("\n%s", style_begin(cli, fits ? STYLE_GREEN : STYLE_RED));
    if (slowest_p99(result) < 0)
        printf("Nothing was measured.");
    else if (fits)
        printf("The preset %s%s fits this store.", cli->config.preset,
               is_changed(cli) ? " with your call_timeout" : "");
    else if (other)
        printf(
            "The preset %s%s does not fit: the store is too slow for it. Use --preset %s, or a longer call_timeout and lease.",
            cli->config.preset, is_changed(cli) ? " with your call_timeout" : "", other);
    else
        printf("No preset fits: the store is too slow, or fails too often.");
    printf("%s\n", style_end(cli, fits ? STYLE_GREEN : STYLE_RED));
    if (result->only_reads)
        printf("Only reads were measured: %s.\n", result->only_reads);
    if (result->message[0])
        printf("The last call that failed: %s\n", result->message);
    if (result->signal_number)
        printf("It was ended early, after %zu rounds.\n", result->rounds);
}

static void print_text(const struct cli *cli, struct ping_result *result)
{
    char opened[TIME_TEXT_MAX], probed[TIME_TEXT_MAX], session[TIME_TEXT_MAX];

    printf("%sStore%s\n", style_begin(cli, STYLE_BOLD), style_end(cli, STYLE_BOLD));
    store_facts_print(cli, result->store);
    printf("  %-22s  %s\n", "opened in", time_text(result->open_took, opened));
    if (result->probe_took >= 0)
        printf("  %-22s  %s\n", "checked in", time_text(result->probe_took, probed));
    if (result->session_took >= 0)
        printf("  %-22s  %s\n", "session opened in", time_text(result->session_took, session));
    printf("\n%sLatency, over %zu rounds%s\n", style_begin(cli, STYLE_BOLD), result->rounds,
           style_end(cli, STYLE_BOLD));
    print_latencies(cli, result);
    printf("\n%sPresets%s: one fits if its call time-out is at least %d times the slowest p99\n",
           style_begin(cli, STYLE_BOLD), style_end(cli, STYLE_BOLD), PING_SAFETY_FACTOR);
    print_presets(cli, result);
    print_verdict(cli, result);
}

/* Milliseconds; null for what failed or was not measured. */
static void put_time(json_t *json, const char *key, int64_t ns)
{
    if (ns < 0 || ns == PING_FAILED)
        json_put(json, key, json_null());
    else
        json_put_real(json, key, (double)ns / NS_PER_MS);
}

static json_t *operations_json(struct ping_result *result)
{
    json_t *json = json_object();

    for (size_t i = 0; i < PING_OPS; i++) {
        json_t *operation;

        if (i == PING_CAMPAIGN && !result->store->has_sessions)
            continue; /* there is no such thing */
        operation = json_object();
        if (result->series[i].count == 0) {
            json_decref(operation);
            json_put(json, op_names[i], json_null());
            continue;
        }
        json_put_number(operation, "calls", (int64_t)result->series[i].count);
        json_put_number(operation, "failed", (int64_t)result->failed[i]);
        for (size_t k = 0; k < COLUMNS; k++)
            put_time(operation, columns[k].key, samples_percentile(&result->series[i], columns[k].percent));
        json_put(json, op_names[i], operation);
    }
    return json;
}

static json_t *presets_json(struct ping_result *result)
{
    const char *own = result->store->preset;
    json_t *list = json_array();

    for (const char *const *name = gavel_preset_names; *name; name++) {
        struct gavel_settings settings;
        json_t *json;

        if (gavel_settings_preset(*name, &settings) != GAVEL_OK)
            continue; /* it is one of the list */
        json = json_object();
        json_put_text(json, "name", *name);
        json_put_number(json, "call_timeout_ms", settings.call_timeout_ms);
        json_put_bool(json, "fits", ping_fits(result, settings.call_timeout_ms));
        json_put_bool(json, "is_own", own && strcmp(*name, own) == 0);
        json_array_append_new(list, json);
    }
    return list;
}

static void print_json(const struct cli *cli, struct ping_result *result)
{
    json_t *json = json_object();

    json_put(json, "store", store_facts_json(cli, result->store));
    put_time(json, "open_ms", result->open_took);
    put_time(json, "probe_ms", result->probe_took);
    if (result->store->has_sessions)
        put_time(json, "session_ms", result->session_took);
    json_put_number(json, "rounds", (int64_t)result->rounds);
    json_put_bool(json, "is_read_only", result->only_reads != NULL);
    json_put_bool(json, "is_interrupted", result->signal_number != 0);
    json_put(json, "operations", operations_json(result));
    json_put_text_or_null(json, "last_failure", result->message);
    put_time(json, "slowest_p99_ms", slowest_p99(result));
    json_put_number(json, "safety_factor", PING_SAFETY_FACTOR);
    json_put(json, "presets", presets_json(result));
    json_put_text(json, "preset", cli->config.preset);
    json_put_number(json, "call_timeout_ms", cli->config.settings.call_timeout_ms);
    json_put_bool(json, "fits", ping_fits(result, cli->config.settings.call_timeout_ms));
    json_print_line(json);
}

bool ping_report(const struct cli *cli, struct ping_result *result)
{
    if (cli->config.json)
        print_json(cli, result);
    else
        print_text(cli, result);
    return ping_fits(result, cli->config.settings.call_timeout_ms);
}
