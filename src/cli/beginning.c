/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/beginning.h"

#include "os/clock.h"
#include "store/store.h"

const char *beginning_store(const struct config *config)
{
    return config->enabled ? config->store : "memory:single-instance";
}

void beginning_log(const struct cli *cli, const char *id, const struct place *place)
{
    const struct config *config = &cli->config;
    const struct store_capabilities *store = store_capabilities_of(config->store);
    const struct log *log = &cli->log;
    const struct log_field group = LOG_STR("group", config->group), candidate = LOG_STR("candidate", id);

    if (!config->enabled) {
        log_line(log, clock_wall_ms(), LOG_INFO, "leads without an election, whoever else does", group,
                 candidate, LOG_END);
        return;
    }
    if (place->is_new)
        log_line(log, clock_wall_ms(), LOG_INFO,
                 place->has_folder ? "created the store" : "created the store and its folder", group,
                 candidate, LOG_STR("store", place->shown), LOG_END);
    if (store && !store->is_shared && !store->is_fixed)
        log_line(log, clock_wall_ms(), LOG_WARNING,
                 "no other process can see this store, so each is elected alone", group, candidate,
                 LOG_STR("store", place->shown), LOG_END);
    log_line(log, clock_wall_ms(), LOG_INFO, "takes part", group, candidate, LOG_STR("store", place->shown),
             LOG_STR("preset", config->preset), LOG_END);
}
