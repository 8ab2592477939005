/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every candidate registers once a heartbeat. The leader renews as often, and
 * lists the others once a candidate time-out. A standby looks once an election
 * interval, and lists once a heartbeat. To each of these the jitter is added,
 * half of it on average.
 *
 * Where the store grants mandates to sessions there are only keep-alives: three
 * in the time to live, one for all groups of a process.
 */
#include "cli/check/check_load.h"

#include "cli/check/check_cost.h"
#include "cli/json_out.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

#define MS_PER_MINUTE 60000.0

/* Calls in a minute. */
struct load {
    double renewals;
    double heartbeats;
    double looks;
    double listings;
    double keep_alives;
    double timeouts; /* no calls: candidate time-outs that pass, of all candidates together */
};

/*
 * What a call comes to on a server: statements of SQL, or requests. A batch of calls may travel together;
 * they are counted one by one all the same.
 */
static const struct server {
    const char *driver;
    const char *unit;
    double of_renewal;
    double of_heartbeat;
    double of_look;
    double of_listing;
    double of_timeout; /* once a candidate time-out, of each candidate */
} servers[] = {
    {"mysql", "statements", 2, 1, 1, 1, 0}, /* a renewal is an UPDATE, and the row read back */
    {"etcd", "requests", 1, 1, 1, 1, 1},    /* registrations hang on a lease of etcd, which is kept alive */
};

static double per_minute(const struct gavel_settings *s, gavel_ms every_ms)
{
    return MS_PER_MINUTE / ((double)every_ms + (double)s->heartbeat_jitter_ms / 2);
}

static struct load load_of(const struct gavel_settings *s, int64_t candidates, gavel_ms keep_every_ms)
{
    double standbys = (double)(candidates - 1);

    if (keep_every_ms > 0)
        return (struct load){.keep_alives = MS_PER_MINUTE / (double)keep_every_ms * (double)candidates};
    return (struct load){
        .renewals = per_minute(s, s->heartbeat_ms),
        .heartbeats = per_minute(s, s->heartbeat_ms) * (double)candidates,
        .looks = per_minute(s, s->election_interval_ms) * standbys,
        .listings = per_minute(s, s->candidate_timeout_ms) + per_minute(s, s->heartbeat_ms) * standbys,
        .timeouts = MS_PER_MINUTE / (double)s->candidate_timeout_ms * (double)candidates,
    };
}

static double calls_of(const struct load *load)
{
    return load->renewals + load->heartbeats + load->looks + load->listings + load->keep_alives;
}

/* What one minute comes to on the server of this driver; -1 if it has none, or is counted otherwise. */
static double on_server(const struct load *load, const struct store_capabilities *store, const char *unit)
{
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++)
        if (strcmp(servers[i].driver, store->name) == 0 && strcmp(servers[i].unit, unit) == 0)
            return load->renewals * servers[i].of_renewal + load->heartbeats * servers[i].of_heartbeat +
                   load->looks * servers[i].of_look + load->listings * servers[i].of_listing +
                   load->timeouts * servers[i].of_timeout;
    return -1;
}

static void print_line(const char *name, double figure, const char *unit)
{
    printf("  %-22s  %.*f %s\n", name, figure < 10 ? 1 : 0, figure, unit);
}

static void print_on_server(const struct load *load, const struct store_capabilities *store, const char *unit)
{
    double figure = on_server(load, store, unit);

    if (figure < 0)
        return;
    printf("  %-22s  %.0f %s a minute\n", "on the server", figure, unit);
}

static void print_calls(const struct load *load)
{
    if (load->keep_alives > 0) {
        print_line("keep-alives", load->keep_alives, "a minute, for any number of groups");
        return;
    }
    print_line("renewals", load->renewals, "a minute");
    print_line("registrations", load->heartbeats, "a minute");
    print_line("looks", load->looks, "a minute");
    print_line("listings", load->listings, "a minute");
    print_line("together", calls_of(load), "a minute");
}

void check_load_print(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                      gavel_ms keep_every_ms, const struct load_prices *prices)
{
    struct load load = load_of(&cli->config.settings, candidates, keep_every_ms);

    printf("%s\nCalls to the store while nothing happens, with 1 leader and %lld standbys%s\n",
           style_begin(cli, STYLE_BOLD), (long long)candidates - 1, style_end(cli, STYLE_BOLD));
    print_calls(&load);
    print_on_server(&load, store, "statements");
    print_on_server(&load, store, "requests");
    check_cost_print(cli, store, candidates, prices);
}

static void put_on_server(json_t *json, const char *key, double figure)
{
    if (figure < 0)
        json_put(json, key, json_null());
    else
        json_put_real(json, key, figure);
}

json_t *check_load_json(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                        gavel_ms keep_every_ms, const struct load_prices *prices)
{
    struct load load = load_of(&cli->config.settings, candidates, keep_every_ms);
    json_t *json = json_object();

    json_put_number(json, "candidates", candidates);
    json_put_real(json, "renewals_per_minute", load.renewals);
    json_put_real(json, "registrations_per_minute", load.heartbeats);
    json_put_real(json, "looks_per_minute", load.looks);
    json_put_real(json, "listings_per_minute", load.listings);
    if (load.keep_alives > 0)
        json_put_real(json, "keep_alives_per_minute", load.keep_alives);
    json_put_real(json, "calls_per_minute", calls_of(&load));
    put_on_server(json, "statements_per_minute", on_server(&load, store, "statements"));
    put_on_server(json, "requests_per_minute", on_server(&load, store, "requests"));
    json_put(json, "s3", check_cost_json(cli, store, candidates, prices));
    return json;
}
