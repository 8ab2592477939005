/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every candidate registers once a heartbeat. The leader renews as often, and
 * lists the others once a candidate time-out. A standby looks once an election
 * interval, and lists once a heartbeat. To each of these the jitter is added,
 * half of it on average.
 */
#include "cli/check_load.h"

#include "cli/check_cost.h"
#include "cli/json_out.h"
#include "cli/output.h"

#include <stdio.h>

#define MS_PER_MINUTE 60000.0

/* Calls in a minute. */
struct load {
    double renewals;
    double heartbeats;
    double looks;
    double listings;
};

static double per_minute(const struct gavel_settings *s, gavel_ms every_ms)
{
    return MS_PER_MINUTE / ((double)every_ms + (double)s->heartbeat_jitter_ms / 2);
}

static struct load load_of(const struct gavel_settings *s, int64_t candidates)
{
    double standbys = (double)(candidates - 1);

    return (struct load){
        .renewals = per_minute(s, s->heartbeat_ms),
        .heartbeats = per_minute(s, s->heartbeat_ms) * (double)candidates,
        .looks = per_minute(s, s->election_interval_ms) * standbys,
        .listings = per_minute(s, s->candidate_timeout_ms) + per_minute(s, s->heartbeat_ms) * standbys,
    };
}

static double calls_of(const struct load *load)
{
    return load->renewals + load->heartbeats + load->looks + load->listings;
}

static void print_line(const char *name, double figure, const char *unit)
{
    printf("  %-22s  %.*f %s\n", name, figure < 10 ? 1 : 0, figure, unit);
}

static void print_calls(const struct load *load)
{
    print_line("renewals", load->renewals, "a minute");
    print_line("registrations", load->heartbeats, "a minute");
    print_line("looks", load->looks, "a minute");
    print_line("listings", load->listings, "a minute");
    print_line("together", calls_of(load), "a minute");
}

void check_load_print(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                      const struct load_prices *prices)
{
    struct load load = load_of(&cli->config.settings, candidates);

    printf("%s\nCalls to the store while nothing happens, with 1 leader and %lld standbys%s\n",
           style_begin(cli, STYLE_BOLD), (long long)candidates - 1, style_end(cli, STYLE_BOLD));
    print_calls(&load);
    check_cost_print(cli, store, candidates, prices);
}

json_t *check_load_json(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                        const struct load_prices *prices)
{
    struct load load = load_of(&cli->config.settings, candidates);
    json_t *json = json_object();

    json_put_number(json, "candidates", candidates);
    json_put_real(json, "renewals_per_minute", load.renewals);
    json_put_real(json, "registrations_per_minute", load.heartbeats);
    json_put_real(json, "looks_per_minute", load.looks);
    json_put_real(json, "listings_per_minute", load.listings);
    json_put_real(json, "calls_per_minute", calls_of(&load));
    json_put(json, "s3", check_cost_json(cli, store, candidates, prices));
    return json;
}
