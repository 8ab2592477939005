/* SPDX-License-Identifier: Apache-2.0 */

/* From the text of one setting to its value, and back. */
#include "cli/duration.h"
#include "cli/setting_values.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Where the value of a setting lies; offsets come from the table, so the casts fit. */
static void *place(const struct setting *setting, struct config *config)
{
    return (char *)config + setting->offset;
}

static const void *place_const(const struct setting *setting, const struct config *config)
{
    return (const char *)config + setting->offset;
}

/* The position of text in a list of words that ends with NULL; -1 if it is not there. */
static int word_index(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

static enum gavel_status read_bool(const char *text, bool *ret_value, struct gavel_error *error)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1", NULL};

    for (int i = 0; words[i]; i++)
        if (strcasecmp(words[i], text) == 0) {
            *ret_value = i % 2;
            return GAVEL_OK;
        }
    return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is neither true nor false", text);
}

static enum gavel_status read_int(const char *text, int *ret_value, struct gavel_error *error)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end || text[0] == ' ')
        return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is not a whole number", text);
    if (errno || value < INT32_MIN || value > INT32_MAX)
        return error_set(error, GAVEL_ERR_INVALID, "%.60s is too large a number", text);
    *ret_value = (int)value;
    return GAVEL_OK;
}

static enum gavel_status read_real(const char *text, double *ret_value, struct gavel_error *error)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || text[0] == ' ' || !isfinite(value))
        return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is not a number", text);
    *ret_value = value;
    return GAVEL_OK;
}

/* A word of a list whose position is the value. */
static enum gavel_status read_word(const char *const *words, const char *choices, const char *text,
                                   int *ret_value, struct gavel_error *error)
{
    int i = word_index(words, text);

    if (i < 0)
        return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is none of %s", text, choices);
    *ret_value = i;
    return GAVEL_OK;
}

static const char *const color_words[] = {
    [COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never", NULL};
static const char *const format_words[] = {[LOG_LOGFMT] = "logfmt", [LOG_JSON] = "json", NULL};

enum gavel_status setting_read(const struct setting *setting, const char *text, struct config *config,
                               struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;
    int word = 0;

    switch (setting->kind) {
    case SETTING_TEXT:
        *(const char **)place(setting, config) = text;
        return GAVEL_OK;
    case SETTING_SWITCH:
    case SETTING_BOOL:
        return read_bool(text, place(setting, config), error);
    case SETTING_DURATION:
        return duration_parse(text, place(setting, config), error);
    case SETTING_INT:
        return read_int(text, place(setting, config), error);
    case SETTING_REAL:
        return read_real(text, place(setting, config), error);
    case SETTING_POLICY:
        if (gavel_policy_parse(text, place(setting, config)))
            return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is none of first, lexicographic, priority",
                             text);
        return GAVEL_OK;
    case SETTING_COLOR:
        status = read_word(color_words, "auto, always, never", text, &word, error);
        if (!status)
            *(enum color_mode *)place(setting, config) = (enum color_mode)word;
        return status;
    case SETTING_LOG_FORMAT:
        status = read_word(format_words, "logfmt, json", text, &word, error);
        if (!status)
            *(enum log_format *)place(setting, config) = (enum log_format)word;
        return status;
    case SETTING_LOG_LEVEL:
        if (!log_level_parse(text, place(setting, config)))
            return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is none of debug, info, warning, error",
                             text);
        return GAVEL_OK;
    }
    return error_set(error, GAVEL_ERR_INVALID, "a setting of an unknown kind");
}

const char *setting_text(const struct setting *setting, const struct config *config, char *buffer,
                         size_t size)
{
    const void *at = place_const(setting, config);
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
        snprintf(buffer, size, "%s", format_words[*(const enum log_format *)at]);
        break;
    case SETTING_LOG_LEVEL:
        snprintf(buffer, size, "%s", log_level_name(*(const enum log_level *)at));
        break;
    }
    return buffer;
}
