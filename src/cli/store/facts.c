/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/store/facts.h"

#include "cli/json_out.h"
#include "cli/output.h"

#include <stdio.h>

#define VALUE_BEGINS 26

const char *store_clock_name(enum store_clock clock)
{
    switch (clock) {
    case STORE_CLOCK_STEADY:
        return "steady";
    case STORE_CLOCK_STEPS:
        return "may step";
    case STORE_CLOCK_NONE:
        break;
    }
    return "none";
}

/* Whose clock says that a lease has run out, so that another may lead. */
static const char *timed_by(const struct cli *cli, const struct store_capabilities *store)
{
    if (store->clock == STORE_CLOCK_NONE)
        return "standby";
    if (store->clock == STORE_CLOCK_STEPS && !cli->config.settings.trust_store_clock)
        return "store and standby";
    return "store";
}

static const char *clock_text(const struct cli *cli, const struct store_capabilities *store)
{
    bool is_trusted = cli->config.settings.trust_store_clock;

    switch (store->clock) {
    case STORE_CLOCK_STEADY:
        return store->has_sessions ? "steady: the store says when a session has expired"
                                   : "steady: the store says when a lease has run out";
    case STORE_CLOCK_STEPS:
        return is_trusted
                   ? "may step, and is trusted (trust_store_clock): the store alone says when a lease has run out, so a step of its clock can make two lead at once"
                   : "may step: a lease has run out when the store says so and a standby has seen no renewal for as long on its own clock";
    case STORE_CLOCK_NONE:
        break;
    }
    return is_trusted
               ? "none, so there is nothing to trust (trust_store_clock): a lease has run out when a standby has seen no renewal for as long on its own clock"
               : "none: a lease has run out when a standby has seen no renewal for as long on its own clock";
}

static void line(const char *name, const char *value)
{
    printf("  %-22s  ", name);
    print_wrapped(stdout, output_columns(stdout), VALUE_BEGINS, VALUE_BEGINS, value);
}

void store_facts_print(const struct cli *cli, const struct store_capabilities *store)
{
    char caution[STORE_CAUTION_MAX];

    printf("  %-22s  %s\n", "url", cli->config.store); /* whole: people copy it */
    line("driver", store->name);
    line("clock", clock_text(cli, store));
    line("shared by processes", store->is_shared ? "yes" : "no");
    line("proof of death", store->sees_processes ? "yes, of processes on the same host" : "no");
    line("tells of changes", store->has_push ? "yes" : "no, it is polled");
    line("leader", store->is_fixed ? "assigned" : "elected");
    store_caution(cli->config.store, caution);
    if (*caution) {
        printf("  %s%-22s  ", style_begin(cli, STYLE_YELLOW), "warning");
        print_wrapped(stdout, output_columns(stdout), VALUE_BEGINS, VALUE_BEGINS, caution);
        fputs(style_end(cli, STYLE_YELLOW), stdout);
    }
    if (store->has_sessions)
        line("mandates", "granted by the store; one lasts as long as the session of its holder");
}

json_t *store_facts_json(const struct cli *cli, const struct store_capabilities *store)
{
    json_t *json = json_object();
    char caution[STORE_CAUTION_MAX];

    store_caution(cli->config.store, caution);
    json_put_text(json, "url", cli->config.store);
    json_put_text(json, "driver", store->name);
    json_put_text_or_null(json, "preset", store->preset ? store->preset : "");
    json_put_text(json, "clock", store_clock_name(store->clock));
    json_put_text(json, "lease_timed_by", timed_by(cli, store));
    json_put_bool(json, "is_shared", store->is_shared);
    json_put_bool(json, "is_fixed", store->is_fixed);
    json_put_bool(json, "sees_processes", store->sees_processes);
    json_put_bool(json, "has_push", store->has_push);
    json_put_text_or_null(json, "warning", caution);
    if (store->has_sessions)
        json_put_bool(json, "has_sessions", true);
    return json;
}
