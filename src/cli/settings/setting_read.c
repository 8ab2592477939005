/* SPDX-License-Identifier: Apache-2.0 */

/* From the text of one setting to its value, and back. */
#include "cli/settings/setting_values.h"
#include "config/duration.h"
#include "config/words.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Where the value of a setting lies; offsets come from the table, so the casts fit. */
static void *field(const struct setting *setting, struct config *config)
{
    return (char *)config + setting->offset;
}

static const void *field_const(const struct setting *setting, const struct config *config)
{
    return (const char *)config + setting->offset;
}

static const char *const color_words[] = {
    [COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never", NULL};
static const char *const contain_words[] = {
    [CONTAIN_AUTO] = "auto", [CONTAIN_CGROUP] = "cgroup", [CONTAIN_WALK] = "walk", NULL};

/* What makes sense beyond the kind of the value; the times and numbers of struct gavel_settings are checked
 * together, by gavel_settings_check(). */
#define LONGEST_MS (INT64_C(30) * 24 * 3600 * 1000)

static const struct {
    size_t offset;
    int64_t least;
    int64_t most;
} ranges[] = {
    {offsetof(struct config, cluster_timeout_ms), 1, LONGEST_MS},
    {offsetof(struct config, run.orphan_grace_ms), 0, LONGEST_MS},
    {offsetof(struct config, run.restart_limit), 0, RESTART_LIMIT_MAX},
    {offsetof(struct config, run.restart_window_ms), 1, LONGEST_MS},
    {offsetof(struct config, run.cool_down_ms), 100, LONGEST_MS},
    {offsetof(struct config, run.healthy_every_ms), 1, LONGEST_MS},
    {offsetof(struct config, run.healthy_timeout_ms), 1, LONGEST_MS},
    {offsetof(struct config, run.healthy_failures), 1, 1000},
    {offsetof(struct config, run.hook_timeout_ms), 1, LONGEST_MS},
};

static enum gavel_status check_range(const struct setting *setting, const struct config *config,
                                     struct gavel_error *error)
{
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const void *at = field_const(setting, config);
        int64_t value;

        if (ranges[i].offset != setting->offset)
            continue;
        value = setting->kind == SETTING_INT ? *(const int *)at : *(const gavel_ms *)at;
        if (value >= ranges[i].least && value <= ranges[i].most)
            continue;
        if (setting->kind == SETTING_INT)
            return error_set(error, GAVEL_ERR_INVALID, "%" PRId64 " is not from %" PRId64 " to %" PRId64,
                             value, ranges[i].least, ranges[i].most);
        return error_set(error, GAVEL_ERR_INVALID, "it must be from %" PRId64 " ms to 30 days",
                         ranges[i].least);
    }
    return GAVEL_OK;
}

static enum gavel_status read_kind(const struct setting *setting, const char *text, struct config *config,
                                   struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;
    int word = 0;

    switch (setting->kind) {
    case SETTING_TEXT:
        *(const char **)field(setting, config) = text;
        return GAVEL_OK;
    case SETTING_SWITCH:
    case SETTING_BOOL:
        return word_read_bool(text, field(setting, config), error);
    case SETTING_DURATION:
        return duration_parse(text, field(setting, config), error);
    case SETTING_INT:
        return word_read_int(text, field(setting, config), error);
    case SETTING_REAL:
        return word_read_real(text, field(setting, config), error);
    case SETTING_POLICY:
        if (gavel_policy_parse(text, field(setting, config)) != GAVEL_OK)
            return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is none of first, lexicographic, priority, balanced",
                             text);
        return GAVEL_OK;
    case SETTING_COLOR:
        status = word_read(color_words, "auto, always, never", text, &word, error);
        if (status == GAVEL_OK)
            *(enum color_mode *)field(setting, config) = (enum color_mode)word;
        return status;
    case SETTING_LOG_FORMAT:
        status = word_read(log_format_words, LOG_FORMAT_WORDS, text, &word, error);
        if (status == GAVEL_OK)
            *(enum log_format *)field(setting, config) = (enum log_format)word;
        return status;
    case SETTING_LOG_LEVEL:
        if (!log_level_parse(text, field(setting, config)))
            return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is none of debug, info, warning, error",
                             text);
        return GAVEL_OK;
    case SETTING_ON_EXIT:
        return on_exit_parse(text, field(setting, config), error);
    case SETTING_CONTAIN:
        status = word_read(contain_words, "auto, cgroup, walk", text, &word, error);
        if (status == GAVEL_OK)
            *(enum contain *)field(setting, config) = (enum contain)word;
        return status;
    case SETTING_SIGNAL:
        return signal_parse(text, field(setting, config), error);
    }
    return error_set(error, GAVEL_ERR_INVALID, "a setting of an unknown kind");
}

enum gavel_status setting_read(const struct setting *setting, const char *text, struct config *config,
                               struct gavel_error *error)
{
    enum gavel_status status = read_kind(setting, text, config, error);

    return status != GAVEL_OK ? status : check_range(setting, config, error);
}

const char *setting_text(const struct setting *setting, const struct config *config, char *buffer,
                         size_t size)
{
    const void *at = field_const(setting, config);
    char text[DURATION_TEXT_MAX];

    switch (setting->kind) {
    case SETTING_TEXT:
        snprintf(buffer, size, "%s", *(const char *const *)at ? *(const char *const *)at : "");
        break;
    case SETTING_SWITCH:
    case SETTING_BOOL:
        snprintf(buffer, size, "%s", *(const bool *)at ? "true" : "false");
        break;
    case SETTING_DURATION:
        snprintf(buffer, size, "%s", duration_exact(*(const gavel_ms *)at, text));
        break;
    case SETTING_INT:
        snprintf(buffer, size, "%d", *(const int *)at);
        break;
    case SETTING_REAL:
        snprintf(buffer, size, "%g", *(const double *)at);
        break;
    case SETTING_POLICY:
        snprintf(buffer, size, "%s", gavel_policy_name(*(const enum gavel_policy *)at));
        break;
    case SETTING_COLOR:
        snprintf(buffer, size, "%s", color_words[*(const enum color_mode *)at]);
        break;
    case SETTING_LOG_FORMAT:
        snprintf(buffer, size, "%s", log_format_words[*(const enum log_format *)at]);
        break;
    case SETTING_LOG_LEVEL:
        snprintf(buffer, size, "%s", log_level_name(*(const enum log_level *)at));
        break;
    case SETTING_ON_EXIT:
        snprintf(buffer, size, "%s", on_exit_name(*(const enum on_exit *)at));
        break;
    case SETTING_CONTAIN:
        snprintf(buffer, size, "%s", contain_words[*(const enum contain *)at]);
        break;
    case SETTING_SIGNAL:
        if (sigabbrev_np(*(const int *)at))
            snprintf(buffer, size, "%s", sigabbrev_np(*(const int *)at));
        else /* a real-time signal has no name */
            snprintf(buffer, size, "%d", *(const int *)at);
        break;
    }
    return buffer;
}
