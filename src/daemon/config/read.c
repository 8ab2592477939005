/* SPDX-License-Identifier: Apache-2.0 */

/* Combines a configuration from its sources. */
#include "daemon/config/read.h"

#include "base/error.h"
#include "config/suggest.h"
#include "daemon/config/draft.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE_PREFIX "GAVELD_"
#define VARIABLE_MAX 64

/* Of the command line, not of the table: which file to read. */
#define VARIABLE_OF_FILE "GAVELD_CONFIG"

static const char *variable_of(const struct config_setting *setting, char buffer[VARIABLE_MAX])
{
    (void)snprintf(buffer, VARIABLE_MAX, VARIABLE_PREFIX "%s", setting->name); /* the longest fits */
    for (char *at = buffer; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    return buffer;
}

const char *config_origin(const struct config_draft *draft, enum config_id id, char buffer[CONFIG_ORIGIN_MAX])
{
    const struct config_setting *setting = &config_settings[id];
    char name[VARIABLE_MAX];

    switch (draft->origins[id].source) {
    case CONFIG_FILE:
        (void)snprintf(buffer, CONFIG_ORIGIN_MAX, "%.200s:%d: %s", draft->config.file,
                       draft->origins[id].line, setting->key);
        break;
    case CONFIG_ENVIRONMENT:
        (void)snprintf(buffer, CONFIG_ORIGIN_MAX, "%s", variable_of(setting, name));
        break;
    case CONFIG_FLAG:
        (void)snprintf(buffer, CONFIG_ORIGIN_MAX, "%s", config_setting_flag(setting, name));
        break;
    case CONFIG_DEFAULT:
        (void)snprintf(buffer, CONFIG_ORIGIN_MAX, "%s%s%s", setting->section, *setting->section ? "." : "",
                       setting->key);
        break;
    }
    return buffer;
}

enum gavel_status config_wrong(struct config_draft *draft, enum config_id id, const char *format, ...)
{
    char message[400], origin[CONFIG_ORIGIN_MAX];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(message, sizeof message, format, list); /* cut if too long */
    va_end(list);
    return error_set(draft->error, GAVEL_ERR_INVALID, "%s: %s", config_origin(draft, id, origin), message);
}

enum gavel_status config_wrong_line(struct config_draft *draft, int line, const char *format, ...)
{
    char message[400];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(message, sizeof message, format, list); /* cut if too long */
    va_end(list);
    return error_set(draft->error, GAVEL_ERR_INVALID, "%.200s:%d: %s", draft->config.file, line, message);
}

void config_warn(struct config_draft *draft, const char *format, ...)
{
    struct config_warnings *warnings = draft->warnings;
    va_list list;

    if (warnings->count == CONFIG_WARNINGS_MAX)
        return;
    va_start(list, format);
    (void)vsnprintf(warnings->texts[warnings->count++], sizeof warnings->texts[0], format,
                    list); /* cut if too long */
    va_end(list);
}

/* A value from above the file. */
static enum gavel_status take(struct config_draft *draft, const struct config_setting *setting,
                              enum config_source source, const char *text)
{
    enum config_id id = (enum config_id)(setting - config_settings);
    struct gavel_error cause = {0};

    draft->origins[id].source = source;
    draft->origins[id].line = 0;
    return config_value_read(draft, setting, text, &cause) != GAVEL_OK
               ? config_wrong(draft, id, "%s", cause.message)
               : GAVEL_OK;
}

static enum gavel_status unknown_variable(struct config_draft *draft, const char *name, int length)
{
    char lower[VARIABLE_MAX] = "", meant[VARIABLE_MAX];
    struct suggestion suggestion;

    (void)snprintf(lower, sizeof lower, "%.*s", length - (int)strlen(VARIABLE_PREFIX),
                   name + strlen(VARIABLE_PREFIX)); /* a longer one is like none of ours */
    for (char *at = lower; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    suggestion_init(&suggestion, lower);
    for (size_t i = 0; i < CONFIG_SETTINGS_COUNT; i++)
        suggestion_offer(&suggestion, config_settings[i].name);
    if (!suggestion.best)
        return error_set(draft->error, GAVEL_ERR_INVALID,
                         "the environment has %.*s, which sets nothing; gaveld(8) lists the variables",
                         length < VARIABLE_MAX ? length : VARIABLE_MAX, name);
    return error_set(draft->error, GAVEL_ERR_INVALID,
                     "the environment has %.*s, which sets nothing; did you mean %s?", length, name,
                     variable_of(config_setting_by_name(suggestion.best), meant));
}

/* An empty variable counts as not set. */
static enum gavel_status take_variable(struct config_draft *draft, const char *variable)
{
    const struct config_setting *setting;
    size_t length = strcspn(variable, "=");
    char name[VARIABLE_MAX] = "";

    if (strncmp(variable, VARIABLE_PREFIX, strlen(VARIABLE_PREFIX)) != 0 || !variable[length] ||
        !variable[length + 1])
        return GAVEL_OK;
    if (length < sizeof name)
        (void)snprintf(name, sizeof name, "%.*s", (int)length, variable); /* it fits */
    if (strcmp(name, VARIABLE_OF_FILE) == 0)
        return GAVEL_OK;
    setting = *name ? config_setting_by_name(name + strlen(VARIABLE_PREFIX)) : NULL;
    if (!setting)
        return unknown_variable(draft, variable, (int)length);
    return take(draft, setting, CONFIG_ENVIRONMENT, variable + length + 1);
}

static void set_defaults(struct config_draft *draft)
{
    struct daemon_config *config = &draft->config;

    raft_settings_default(&config->raft);
    config->raft.transfer_timeout = 30 * NS_PER_S;
    config->data_bytes_max = UINT64_C(1) << 30;
    config->has_api_tls = true;
    config->auto_failover = true;
    config->snapshot_entries = 10000;
    config->snapshot_bytes = 64u << 20;
    config->group_retention = 24 * 3600 * NS_PER_S;
    config->realtime = true;
    config->log_level = LOG_INFO;
    config->log_format = LOG_AUTO;
    config->stop_grace_ms = 500;
}

static enum gavel_status choose_start(struct config_draft *draft, const struct config_input *input)
{
    struct daemon_config *config = &draft->config;

    /* The file may say bootstrap for good: it matters only to an empty directory, as --join does. */
    if (input->joins && draft->bootstraps && draft->origins[CONFIG_OF_BOOTSTRAP].source != CONFIG_FILE)
        return config_wrong(draft, CONFIG_OF_BOOTSTRAP,
                            "--join is given, too; a node either begins a cluster or joins one");
    config->is_confirmed = input->is_confirmed;
    config->accepts_copy = input->accepts_copy;
    config->start = draft->bootstraps ? START_BOOTSTRAP : START_AGAIN;
    if (input->joins)
        config->start = START_JOIN;
    if (input->forces)
        config->start = START_FORCE;
    return GAVEL_OK;
}

static enum gavel_status gather(struct config_draft *draft, const struct config_input *input)
{
    enum gavel_status status = GAVEL_OK;

    set_defaults(draft);
    if (input->file)
        status = config_file_read(draft, input->file);
    for (char *const *variable = input->environment; variable && *variable && status == GAVEL_OK; variable++)
        status = take_variable(draft, *variable);
    for (size_t i = 0; i < input->flag_count && status == GAVEL_OK; i++)
        status = take(draft, input->flags[i].setting, CONFIG_FLAG, input->flags[i].text);
    return status != GAVEL_OK ? status : choose_start(draft, input);
}

enum gavel_status config_read(const struct config_input *input, struct daemon_config *ret_config,
                              struct config_warnings *ret_warnings, struct gavel_error *error)
{
    struct gavel_error own = {0};
    struct config_draft *draft = calloc(1, sizeof *draft);
    enum gavel_status status;

    if (!draft)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    ret_warnings->count = 0;
    draft->warnings = ret_warnings;
    draft->error = error ? error : &own; /* so that there is one to look at */
    status = gather(draft, input);
    if (status == GAVEL_OK)
        status = config_fill_in(draft);
    if (status == GAVEL_OK)
        status = config_check(draft);
    if (status == GAVEL_OK)
        *ret_config = draft->config;
    else
        config_done(&draft->config);
    free(draft);
    return status;
}

void config_done(struct daemon_config *config) { run_file_done(&config->children); }
