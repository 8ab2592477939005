/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything that can be set from outside, after flags, environment, YAML
 * file and preset have been put together (settings_table.h says how).
 */
#ifndef CLI_SETTINGS_CONFIG_H
#define CLI_SETTINGS_CONFIG_H

#include "base/log.h"
#include "core/supervisor/supervisor.h"
#include "guard/tree.h"

#include <gavel/settings.h>

#include <limits.h>
#include <stdbool.h>

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct run_file;

/* How `gavel run` and `gavel once` run a command. */
struct run_config {
    enum on_exit on_exit; /* for children that do not set it themselves */
    int term_signal;      /* likewise */
    gavel_ms orphan_grace_ms;
    int restart_limit;
    gavel_ms restart_window_ms;
    gavel_ms cool_down_ms;
    const char *healthy; /* commands for sh -c; NULL or "": none */
    const char *on_elected;
    const char *on_demoted;
    gavel_ms healthy_every_ms;
    gavel_ms healthy_timeout_ms;
    int healthy_failures;
    gavel_ms hook_timeout_ms;
    bool prefix;
    enum contain contain;
};

/* Strings are borrowed from argv, the environment or the struct setting_values; they live as long as the
 * program. */
struct config {
    const char *file;      /* the YAML file that was read, "" if none */
    const char *store;     /* URL; never NULL where the command uses a store */
    const char *group;     /* never NULL */
    bool has_group;        /* --group was given: on a cluster, one of its groups is meant, not its nodes */
    const char *candidate; /* id; NULL: the library's choice */
    const char *cluster;   /* URLs of the nodes of a cluster; NULL: a store is meant */
    bool is_store_given;   /* by --store, or in a file that --config names; for cli/hint.h, as the next two */
    bool is_cluster_given; /* by --cluster with a value */
    bool wants_cluster;    /* by --cluster without one */
    const char *cluster_ca;
    const char *cluster_revoked;
    const char *token_file;
    gavel_ms cluster_timeout_ms;
    const char *preset;   /* the one that the settings start from */
    const char *doorbell; /* as in struct gavel_options */
    bool enabled;
    bool eligible;
    int priority;
    struct gavel_settings settings;
    struct run_config run;
    const struct run_file *children; /* of the file, for `gavel run`; NULL if it has none */
    bool json;
    enum color_mode color;
    enum log_format log_format;
    enum log_level log_level;
    char default_store[PATH_MAX + 16]; /* holds `store` when none is named */
};

#endif
