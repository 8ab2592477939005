/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/settings/environment.h"

#include "cli/settings/settings_table.h"
#include "config/suggest.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "GAVEL_"
#define NAME_MAX_LENGTH 64

/* What `gavel run` tells its commands besides settings; a gavel below one of them finds it there. */
#define EPOCH_VARIABLE "GAVEL_EPOCH"

/* What the drivers of stores read themselves: users and passwords are no settings. */
static const char *const of_stores[] = {"GAVEL_MYSQL_USER", "GAVEL_MYSQL_PASSWORD", "GAVEL_MYSQL_OPTIONS",
                                        "GAVEL_ETCD_USER", "GAVEL_ETCD_PASSWORD"};

static bool is_ours(const char *name)
{
    for (size_t i = 0; i < settings_count; i++)
        if (settings_table[i].env && strcmp(settings_table[i].env, name) == 0)
            return true;
    for (const struct other_name *other = other_names; other->of; other++)
        if (other->env && strcmp(other->env, name) == 0)
            return true;
    for (size_t i = 0; i < sizeof of_stores / sizeof of_stores[0]; i++)
        if (strcmp(of_stores[i], name) == 0)
            return true;
    return strcmp(name, EPOCH_VARIABLE) == 0;
}

const char *environment_meant(const char *name)
{
    const char *rest = name + strlen(PREFIX);
    const struct setting *setting;
    struct suggestion suggestion;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || is_ours(name))
        return NULL;
    setting = setting_meant(rest);
    if (setting && setting->env)
        return setting->env;
    suggestion_init(&suggestion, rest); /* without the prefix, which would make everything look close */
    for (size_t i = 0; i < settings_count; i++)
        if (settings_table[i].env)
            suggestion_offer(&suggestion, settings_table[i].env + strlen(PREFIX));
    return suggestion.best ? suggestion.best - strlen(PREFIX) : NULL; /* the whole name it is the end of */
}

void environment_warn(const struct log *log, char *const *variables)
{
    for (; *variables; variables++) {
        size_t length = strcspn(*variables, "=");
        char name[NAME_MAX_LENGTH + 1], message[256];
        const char *meant;

        if (strncmp(*variables, PREFIX, strlen(PREFIX)) != 0 || length >= sizeof name)
            continue;
        memcpy(name, *variables, length);
        name[length] = '\0';
        meant = environment_meant(name);
        if (meant) {
            (void)snprintf(message, sizeof message, "there is no variable %s; did you mean %s?", name, meant);
            log_line(log, clock_wall_ms(), LOG_WARNING, message, LOG_STR("variable", name), LOG_END);
        } else if (!is_ours(name)) {
            log_line(log, clock_wall_ms(), LOG_DEBUG, "a variable with our prefix that is not a setting",
                     LOG_STR("variable", name), LOG_END);
        }
    }
}
