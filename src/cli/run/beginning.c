/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run/beginning.h"

#include "cli/group/leadership.h"
#include "os/clock.h"
#include "store/store.h"

#include <string.h>

const char *beginning_store(const struct config *config)
{
    return config->enabled ? config->store : "memory:single-instance";
}

/* A group that another program leads is not taken from it: people should know why nothing happens. */
static void warn_of_foreigners(const struct cli *cli, const char *id)
{
    struct onlooker onlooker = {0};
    struct leadership leadership;

    /* Whatever fails here is told by the candidate itself. */
    if (onlooker_open(cli, 0, 0, &onlooker, NULL) == GAVEL_OK &&
        leadership_read(&onlooker, cli->config.group, &leadership, NULL) == GAVEL_OK && leadership.note[0])
        log_line(&cli->log, clock_wall_ms(), LOG_WARNING, "another program leads this group",
                 LOG_STR("group", cli->config.group), LOG_STR("candidate", id),
                 LOG_STR("reason", leadership.note), LOG_END);
    onlooker_close(&onlooker);
}

void beginning_log(const struct cli *cli, const char *id, const struct store_location *location)
{
    const struct config *config = &cli->config;
    const struct store_capabilities *store = store_capabilities_of(config->store);
    const struct log *log = &cli->log;
    const struct log_field group = LOG_STR("group", config->group), candidate = LOG_STR("candidate", id);
    char caution[STORE_CAUTION_MAX];

    if (!config->enabled) {
        log_line(log, clock_wall_ms(), LOG_INFO, "leads without an election, whoever else does", group,
                 candidate, LOG_END);
        return;
    }
    if (location->is_new)
        log_line(log, clock_wall_ms(), LOG_INFO,
                 location->has_directory ? "created the store" : "created the store and its directory", group,
                 candidate, LOG_STR("store", location->shown), LOG_END);
    if (store && !store->is_shared && !store->is_fixed)
        log_line(log, clock_wall_ms(), LOG_WARNING,
                 "no other process can see this store, so each is elected alone", group, candidate,
                 LOG_STR("store", location->shown), LOG_END);
    store_caution(config->store, caution);
    if (*caution)
        log_line(log, clock_wall_ms(), LOG_WARNING, caution, group, candidate,
                 LOG_STR("store", location->shown), LOG_END);
    log_line(log, clock_wall_ms(), LOG_INFO, "takes part", group, candidate,
             LOG_STR("store", location->shown), LOG_STR("preset", config->preset), LOG_END);
    if (strncmp(config->store, "s3:", strlen("s3:")) == 0)
        warn_of_foreigners(cli, id);
}
