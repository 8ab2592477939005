/* SPDX-License-Identifier: Apache-2.0 */

/* From the text of one setting to its value. */
#include "base/error.h"
#include "config/duration.h"
#include "config/words.h"
#include "daemon/config/draft.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BYTES_LEAST (UINT64_C(1) << 20)
#define BYTES_MOST (UINT64_C(1) << 44)
#define ENTRIES_LEAST 10
#define ENTRIES_MOST 100000000

static const struct {
    const char *unit;
    int shift;
} units[] = {{"", 0},     {"B", 0},  {"K", 10},  {"KB", 10},  {"KiB", 10}, {"M", 20},  {"MB", 20},
             {"MiB", 20}, {"G", 30}, {"GB", 30}, {"GiB", 30}, {"T", 40},   {"TB", 40}, {"TiB", 40}};

static enum gavel_status read_bytes(const char *text, uint64_t *ret_bytes, struct gavel_error *error)
{
    size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits + strspn(text + digits, " ");
    uint64_t number = digits > 0 && digits <= 15 ? strtoull(text, NULL, 10) : 0;

    for (size_t i = 0; digits > 0 && digits <= 15 && i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(units[i].unit, unit) != 0)
            continue;
        if (number > BYTES_MOST >> units[i].shift || number << units[i].shift < BYTES_LEAST)
            break;
        *ret_bytes = number << units[i].shift;
        return GAVEL_OK;
    }
    return error_set(error, GAVEL_ERR_INVALID,
                     "\"%.60s\" is not a size from 1MiB to 16TiB; write it as 512MiB or 2GiB", text);
}

static enum gavel_status read_count(const char *text, uint32_t *ret_count, struct gavel_error *error)
{
    int number;

    if (word_read_int(text, &number, error) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    if (number < ENTRIES_LEAST || number > ENTRIES_MOST)
        return error_set(error, GAVEL_ERR_INVALID, "%d is not from %d to %d", number, ENTRIES_LEAST,
                         ENTRIES_MOST);
    *ret_count = (uint32_t)number;
    return GAVEL_OK;
}

enum gavel_status config_priority_read(const char *text, uint8_t *ret_priority, struct gavel_error *error)
{
    int number;

    if (word_read_int(text, &number, error) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    if (number < 0 || number > UINT8_MAX)
        return error_set(error, GAVEL_ERR_INVALID, "%d is not from 0 to %d", number, UINT8_MAX);
    *ret_priority = (uint8_t)number;
    return GAVEL_OK;
}

static enum gavel_status read_name(const char *text, char ret_name[PEER_NAME_MAX + 1],
                                   struct gavel_error *error)
{
    if (!peer_name_is_good(text))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "\"%.80s\" is not a valid name; use 1 to %d letters, digits, '.', '-' and '_', the first a letter or a digit",
            text, PEER_NAME_MAX);
    (void)snprintf(ret_name, PEER_NAME_MAX + 1, "%s", text); /* a good one fits */
    return GAVEL_OK;
}

/* What is relative in the file is meant from where the file is, whoever starts gaveld from wherever. */
static enum gavel_status read_path(struct config_draft *draft, const struct config_setting *setting,
                                   const char *text, char ret_path[PATH_MAX], struct gavel_error *error)
{
    bool is_from_file = draft->origins[setting - config_settings].source == CONFIG_FILE && text[0] != '/';
    const char *slash = is_from_file ? strrchr(draft->config.file, '/') : NULL;
    size_t directory_length = slash ? (size_t)(slash - draft->config.file) + 1 : 0;

    if (!*text)
        return error_set(error, GAVEL_ERR_INVALID, "it is empty; give a path or remove it");
    if (directory_length + strlen(text) >= PATH_MAX)
        return error_set(error, GAVEL_ERR_INVALID, "the path is longer than the system allows");
    memcpy(ret_path, draft->config.file, directory_length);
    memcpy(ret_path + directory_length, text, strlen(text) + 1);
    return GAVEL_OK;
}

/* The unit may be in the name of the setting: …_ms. */
static enum gavel_status read_time(const char *text, bool is_named_ms, gavel_ns *ret_time,
                                   struct gavel_error *error)
{
    gavel_ms ms;

    if (is_named_ms ? duration_parse_ms(text, &ms, error) : duration_parse(text, &ms, error))
        return GAVEL_ERR_INVALID;
    if (ms < 1 || ms > 3600 * 1000)
        return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is not from 1 ms to an hour", text);
    *ret_time = ns_from_ms(ms);
    return GAVEL_OK;
}

static enum gavel_status read_retention(const char *text, gavel_ns *ret_time, struct gavel_error *error)
{
    gavel_ms ms = 0;

    if (strcasecmp(text, "never") != 0 && duration_parse(text, &ms, error) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    if (strcasecmp(text, "never") != 0 && ms < 1000)
        return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is shorter than 1s; to keep all, say never",
                         text);
    *ret_time = ns_from_ms(ms);
    return GAVEL_OK;
}

static enum gavel_status read_word(const struct config_setting *setting, const char *text, void *at,
                                   struct gavel_error *error)
{
    int word = 0;

    if (setting->kind == CONFIG_LEVEL)
        return log_level_parse(text, at)
                   ? GAVEL_OK
                   : error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is none of debug, info, warning, error",
                               text);
    if (word_read(log_format_words, LOG_FORMAT_WORDS, text, &word, error) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    *(enum log_format *)at = (enum log_format)word;
    return GAVEL_OK;
}

enum gavel_status config_value_read(struct config_draft *draft, const struct config_setting *setting,
                                    const char *text, struct gavel_error *error)
{
    void *at = (char *)draft + setting->offset; /* offsets come from the table, so the types fit */
    gavel_ns time = 0;

    switch (setting->kind) {
    case CONFIG_NAME:
        return read_name(text, at, error);
    case CONFIG_ADDRESS:
        return config_address_read(text, CONFIG_PEER_PORT, at, error);
    case CONFIG_API_ADDRESS:
        return config_address_read(text, CONFIG_API_PORT, at, error);
    case CONFIG_CLIENTS_ADDRESS:
        return config_address_read(text, CONFIG_CLIENTS_PORT, at, error);
    case CONFIG_PATH:
        return read_path(draft, setting, text, at, error);
    case CONFIG_BOOL:
        return word_read_bool(text, at, error);
    case CONFIG_TIME:
        return read_time(text, true, at, error);
    case CONFIG_GRACE:
        if (read_time(text, false, &time, error) != GAVEL_OK)
            return GAVEL_ERR_INVALID;
        *(gavel_ms *)at = ms_from_ns(time);
        return GAVEL_OK;
    case CONFIG_RETENTION:
        return read_retention(text, at, error);
    case CONFIG_BYTES:
        return read_bytes(text, at, error);
    case CONFIG_COUNT:
        return read_count(text, at, error);
    case CONFIG_PRIORITY:
        return config_priority_read(text, at, error);
    case CONFIG_LEVEL:
    case CONFIG_FORMAT:
        return read_word(setting, text, at, error);
    }
    return error_set(error, GAVEL_ERR_INVALID, "a setting of an unknown kind");
}
