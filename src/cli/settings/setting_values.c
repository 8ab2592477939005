/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/settings/setting_values.h"

#include "base/error.h"
#include "base/record.h"
#include "cli/settings/store_location.h"
#include "store/store.h"

#include <gavel/gavel.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER_TIMEOUT_MS 2000

void setting_values_done(struct setting_values *values)
{
    for (size_t i = 0; i < SETTINGS_MAX; i++)
        free(values->file_texts[i]);
    run_file_done(&values->children);
    *values = (struct setting_values){0};
}

void setting_values_note(struct setting_values *values, const struct setting *setting,
                         enum value_source source, const char *text, int line)
{
    struct setting_value *value = &values->items[setting - settings_table];

    if (value->source != SOURCE_NONE && value->source < source)
        return;
    *value = (struct setting_value){.source = source, .text = text, .line = line};
}

void setting_values_from_environment(struct setting_values *values, unsigned groups)
{
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *setting = &settings_table[i];
        const char *text = setting->env && setting->groups & groups ? getenv(setting->env) : NULL;

        if (text && *text)
            setting_values_note(values, setting, SOURCE_ENVIRONMENT, text, 0);
    }
    for (const struct other_name *other = other_names; other->of; other++) {
        const struct setting *setting = setting_by_flag(other->of);
        const char *text = other->env && setting->groups & groups ? getenv(other->env) : NULL;

        if (text && *text && values->items[setting - settings_table].source != SOURCE_ENVIRONMENT)
            setting_values_note(values, setting, SOURCE_ENVIRONMENT, text, 0);
    }
}

const char *setting_values_text(const struct setting_values *values, const char *flag)
{
    return values->items[setting_by_flag(flag) - settings_table].text;
}

static enum value_source source_of(const struct setting_values *values, const char *flag)
{
    return values->items[setting_by_flag(flag) - settings_table].source;
}

/* Puts where the value stands before what is wrong with it. */
static enum gavel_status blame(const struct setting_values *values, const struct setting *setting,
                               const struct gavel_error *cause, struct gavel_error *error)
{
    const struct setting_value *value = &values->items[setting - settings_table];

    switch (value->source) {
    case SOURCE_FLAG:
        return error_set(error, GAVEL_ERR_INVALID, "--%s: %s", setting->flag, cause->message);
    case SOURCE_ENVIRONMENT:
        return error_set(error, GAVEL_ERR_INVALID, "%s: %s", setting->env, cause->message);
    case SOURCE_FILE:
        return error_set(error, GAVEL_ERR_INVALID, "%s:%d: %s: %s", values->file, value->line, setting->key,
                         cause->message);
    case SOURCE_NONE:
        break;
    }
    return error_set(error, cause->status, "%s", cause->message);
}

static enum gavel_status check_name(const struct setting_values *values, const char *flag, const char *what,
                                    const char *name, struct gavel_error *error)
{
    struct gavel_error cause = {0};

    if (!name || name_check(what, name, &cause) == GAVEL_OK)
        return GAVEL_OK;
    return blame(values, setting_by_flag(flag), &cause, error);
}

/* The store and the preset that the values name, or what stands in for them. */
static enum gavel_status resolve_base(const struct setting_values *values, unsigned groups,
                                      struct config *config, struct gavel_error *error)
{
    const struct store_capabilities *capabilities;
    struct gavel_error cause = {0};

    if (!config->store && groups & (OPTIONS_STORE | OPTIONS_STORE_ALL)) {
        if (gavel_default_store(config->default_store, sizeof config->default_store) != GAVEL_OK)
            return error_set(
                error, GAVEL_ERR_INVALID,
                "there is no default store, since neither XDG_STATE_HOME nor HOME is set to a usable directory, and the password database has no home of this user; name one with --store");
        config->store = config->default_store;
    }
    if (config->store && !*config->store) {
        cause = (struct gavel_error){GAVEL_ERR_INVALID,
                                     "the store is empty; name one, such as /var/lib/gavel/gavel.db"};
        return blame(values, setting_by_flag("store"), &cause, error);
    }
    if (config->store && store_location_is_bare_word(config->store)) {
        cause.status = GAVEL_ERR_INVALID;
        snprintf(cause.message, sizeof cause.message,
                 "there is no kind of store \"%.60s\"; for a file of that name write ./%.60s or sqlite:%.60s",
                 config->store, config->store, config->store);
        return blame(values, setting_by_flag("store"), &cause, error);
    }
    /* The driver of a cluster has no place for one, and says so. */
    if (config->store && store_location_has_password(config->store) &&
        strncmp(config->store, "gavel:", strlen("gavel:")) != 0) {
        cause = (struct gavel_error){
            GAVEL_ERR_INVALID,
            "a password must not be in the URL of a store, which process lists and logs show; gavel-stores(7) says where to put it"};
        return blame(values, setting_by_flag("store"), &cause, error);
    }
    if (!config->preset) {
        capabilities = config->store ? store_capabilities_of(config->store) : NULL;
        config->preset = capabilities && capabilities->preset ? capabilities->preset : "local";
    }
    if (gavel_settings_preset(config->preset, &config->settings) != GAVEL_OK) {
        cause.status = GAVEL_ERR_INVALID;
        snprintf(
            cause.message, sizeof cause.message,
            "there is no preset \"%.60s\"; there are local, cluster, database, coordinator, object-store and frugal",
            config->preset);
        return blame(values, setting_by_flag("preset"), &cause, error);
    }
    return GAVEL_OK;
}

/* Reads the values of one kind: texts first, since the preset must be known before what changes it. */
static enum gavel_status read_values(const struct setting_values *values, unsigned groups, bool texts,
                                     struct config *config, struct gavel_error *error)
{
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *setting = &settings_table[i];
        const struct setting_value *value = &values->items[i];
        struct gavel_error cause = {0};

        if (value->source == SOURCE_NONE || (setting->kind == SETTING_TEXT) != texts)
            continue;
        if (value->source != SOURCE_FILE && !(setting->groups & groups))
            continue;
        if (setting_read(setting, value->text, config, &cause) != GAVEL_OK)
            return blame(values, setting, &cause, error);
    }
    return GAVEL_OK;
}

/* The rank of a value: 1 for a flag; the more, the less it has to say. */
static int rank_of(const struct setting_values *values, const struct setting *setting)
{
    enum value_source source = values->items[setting - settings_table].source;

    return source == SOURCE_NONE ? SOURCE_FILE + 1 : (int)source;
}

/* What speaks for a store most: any option that only has a meaning there; NULL if there is none. */
static const struct setting *most_for_store(const struct setting_values *values, unsigned groups)
{
    const struct setting *most = NULL;

    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *setting = &settings_table[i];

        if (setting->groups & OPTIONS_GROUP && groups & OPTIONS_GROUP)
            continue; /* a cluster has groups, too */
        if (setting->groups & groups && !(setting->groups & (OPTIONS_COMMON | OPTIONS_CLUSTER)) &&
            values->items[i].source != SOURCE_NONE &&
            (!most || rank_of(values, setting) < rank_of(values, most)))
            most = setting;
    }
    return most;
}

/* The cluster of a store that is one; NULL if none is named that is. */
static const char *cluster_of_store(const struct config *config)
{
    return config->store && strncmp(config->store, "gavel://", strlen("gavel://")) == 0 ? config->store
                                                                                        : NULL;
}

/* The cluster of a command that only a cluster has, or of --cluster without a value: that of the store counts
 * where it stands closer to the command line. */
static enum gavel_status choose_nodes(const struct setting_values *values, unsigned groups,
                                      struct config *config, struct gavel_error *error)
{
    int rank = rank_of(values, setting_by_flag("store"));

    if (cluster_of_store(config)) {
        if (!config->cluster || rank < rank_of(values, setting_by_flag("cluster")))
            config->cluster = config->store;
    } else if (rank == SOURCE_FLAG) {
        return error_set(
            error, GAVEL_ERR_INVALID,
            "--store: \"%.100s\" is not a cluster of gaveld, which this needs: gavel://HOST:PORT,…",
            config->store);
    } else if (!(groups & (OPTIONS_STORE | OPTIONS_STORE_ALL)) && rank == SOURCE_ENVIRONMENT) {
        config->store = NULL; /* meant for other commands */
    }
    if (!config->cluster && values->wants_cluster)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "--cluster names no cluster; give it HOST:PORT,…, or set GAVEL_CLUSTER or a GAVEL_STORE that is gavel://…");
    return GAVEL_OK;
}

/*
 * A store or a cluster: some commands can look at either. Whichever was named
 * closer to the command line is meant; of two in the same place, the cluster.
 * A file of settings that is named on the command line is meant to be checked.
 */
static enum gavel_status choose_cluster(const struct setting_values *values, unsigned groups,
                                        struct config *config, struct gavel_error *error)
{
    const struct setting *store = most_for_store(values, groups);
    int rank = rank_of(values, setting_by_flag("cluster"));
    bool is_for_both = groups & (OPTIONS_STORE | OPTIONS_STORE_ALL);

    if ((rank == SOURCE_FLAG || (values->wants_cluster && store != setting_by_flag("store"))) && store &&
        rank_of(values, store) == SOURCE_FLAG)
        return error_set(error, GAVEL_ERR_INVALID,
                         "--cluster is for a cluster of gaveld, --%s for a store: give one of them",
                         store->flag);
    if (!is_for_both || values->wants_cluster)
        return choose_nodes(values, groups, config, error);
    if (config->cluster && ((store && rank_of(values, store) < rank) ||
                            (groups & OPTIONS_SETTINGS && rank == SOURCE_ENVIRONMENT &&
                             rank_of(values, setting_by_flag("config")) == SOURCE_FLAG)))
        config->cluster = NULL;
    return GAVEL_OK;
}

/* Flags that say how to reach nodes, where the command looks at a store, would be ignored. */
static enum gavel_status check_for_nodes(const struct setting_values *values, unsigned groups,
                                         const struct config *config, struct gavel_error *error)
{
    bool is_store = groups & (OPTIONS_STORE | OPTIONS_STORE_ALL) && !config->cluster;

    for (size_t i = 0; is_store && i < settings_count; i++)
        if (settings_table[i].groups == OPTIONS_CLUSTER && values->items[i].source == SOURCE_FLAG)
            return error_set(
                error, GAVEL_ERR_INVALID,
                "--%s is for the nodes of a cluster, and --cluster does not name one; a store has such options in its URL, see gavel-stores(7)",
                settings_table[i].flag);
    return GAVEL_OK;
}

static const struct run_config run_defaults = {.on_exit = ON_EXIT_STOP,
                                               .term_signal = SIGTERM,
                                               .restart_limit = 3,
                                               .restart_window_ms = 5000,
                                               .cool_down_ms = 10000,
                                               .healthy_every_ms = 5000,
                                               .healthy_timeout_ms = 2000,
                                               .healthy_failures = 2,
                                               .hook_timeout_ms = 10000,
                                               .contain = CONTAIN_AUTO};

enum gavel_status setting_values_resolve(const struct setting_values *values, unsigned groups,
                                         struct config *ret_config, struct gavel_error *error)
{
    enum gavel_status status;

    *ret_config = (struct config){.file = "",
                                  .group = "default",
                                  .enabled = true,
                                  .eligible = true,
                                  .log_format = LOG_AUTO,
                                  .log_level = LOG_INFO,
                                  .cluster_timeout_ms = CLUSTER_TIMEOUT_MS,
                                  .run = run_defaults};
    if (values->children.count > 0) {
        ret_config->children = &values->children;
        ret_config->run.on_exit = ON_EXIT_RESTART;
    }
    ret_config->has_group = source_of(values, "group") == SOURCE_FLAG;
    ret_config->is_store_given =
        source_of(values, "store") == SOURCE_FLAG ||
        (source_of(values, "store") == SOURCE_FILE && source_of(values, "config") == SOURCE_FLAG);
    ret_config->is_cluster_given = source_of(values, "cluster") == SOURCE_FLAG;
    ret_config->wants_cluster = values->wants_cluster;
    status = read_values(values, groups, true, ret_config, error);
    if (status == GAVEL_OK && groups & OPTIONS_CLUSTER)
        status = choose_cluster(values, groups, ret_config, error);
    if (status == GAVEL_OK && groups & OPTIONS_CLUSTER)
        status = check_for_nodes(values, groups, ret_config, error);
    if (status == GAVEL_OK)
        status = resolve_base(values, groups, ret_config, error);
    if (status == GAVEL_OK)
        status = read_values(values, groups, false, ret_config, error);
    if (status == GAVEL_OK)
        status = check_name(values, "group", "group name", ret_config->group, error);
    if (status == GAVEL_OK)
        status = check_name(values, "id", "candidate id", ret_config->candidate, error);
    return status;
}
