/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/settings/args.h"

#include "base/assert.h"
#include "base/error.h"
#include "config/duration.h"
#include "config/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_NAME_MAX 64

/* Where the walk over argv stands. */
struct cursor {
    int argc;
    char **argv;
    int at;
    struct setting_values *values;
    struct args *args;
    struct gavel_error *error;
};

const struct command *command_find(const char *name)
{
    for (const struct command *command = commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

enum gavel_status command_unknown(const char *name, struct gavel_error *error)
{
    struct suggestion suggestion;

    suggestion_init(&suggestion, name);
    for (const struct command *command = commands; command->name; command++)
        if (!command->older_name_of)
            suggestion_offer(&suggestion, command->name);
    if (suggestion.best)
        return error_set(error, GAVEL_ERR_INVALID, "there is no command \"%.60s\"; did you mean \"%s\"?",
                         name, suggestion.best);
    return error_set(error, GAVEL_ERR_INVALID, "there is no command \"%.60s\"; `gavel help` lists them",
                     name);
}

static enum gavel_status unknown_option(const struct cursor *cursor, const char *name)
{
    const struct command *command = cursor->args->command;
    struct suggestion suggestion;

    suggestion_init(&suggestion, name);
    for (size_t i = 0; i < settings_count; i++)
        if (!command || settings_table[i].groups & (command->options | OPTIONS_COMMON))
            suggestion_offer(&suggestion, settings_table[i].flag);
    for (const struct flag *flag = command ? command->flags : NULL; flag && flag->name; flag++)
        if (flag->help)
            suggestion_offer(&suggestion, flag->name);
    suggestion_offer(&suggestion, "help");
    if (suggestion.best)
        return error_set(cursor->error, GAVEL_ERR_INVALID, "there is no option --%.60s; did you mean --%s?",
                         name, suggestion.best);
    return error_set(cursor->error, GAVEL_ERR_INVALID,
                     "there is no option --%.60s; `gavel %s%s--help` lists them", name,
                     command ? command->name : "", command ? " " : "");
}

/* The value of an option: behind its "=", or the next word. */
static enum gavel_status take_value(struct cursor *cursor, const char *name, const char *attached,
                                    const char **ret_value)
{
    if (attached) {
        *ret_value = attached;
        return GAVEL_OK;
    }
    if (cursor->at + 1 >= cursor->argc)
        return error_set(cursor->error, GAVEL_ERR_INVALID, "%s needs a value", name);
    if (strcmp(cursor->argv[cursor->at + 1], "--") == 0) /* or a group is called so, and nobody notices */
        return error_set(cursor->error, GAVEL_ERR_INVALID, "%s needs a value, and -- ends the options", name);
    *ret_value = cursor->argv[++cursor->at];
    return GAVEL_OK;
}

/* Whether the next word could be the value of an option that may do without one. */
static bool follows_value(const struct cursor *cursor)
{
    return cursor->at + 1 < cursor->argc && cursor->argv[cursor->at + 1][0] != '-';
}

static enum gavel_status take_setting(struct cursor *cursor, const struct setting *setting, bool is_negated,
                                      const char *attached)
{
    char name[OPTION_NAME_MAX];
    const char *value = is_negated ? "false" : "true";
    enum gavel_status status;

    snprintf(name, sizeof name, "--%s", setting->flag);
    if (is_negated && attached)
        return error_set(cursor->error, GAVEL_ERR_INVALID, "--no-%s takes no value", setting->flag);
    if (strcmp(setting->flag, "cluster") == 0 && !attached && !follows_value(cursor)) {
        cursor->values->wants_cluster = true;
        return GAVEL_OK;
    }
    if (setting_takes_value(setting)) {
        status = take_value(cursor, name, attached, &value);
        if (status != GAVEL_OK)
            return status;
    } else if (attached) {
        value = attached;
    }
    if (!*value && setting_needs_words(setting))
        return error_set(cursor->error, GAVEL_ERR_INVALID, "%s is empty; give it a value, or leave it out",
                         name);
    setting_values_note(cursor->values, setting, SOURCE_FLAG, value, 0);
    return GAVEL_OK;
}

static enum gavel_status check_flag(const struct cursor *cursor, const struct flag *flag, const char *value)
{
    struct gavel_error cause = {0};
    gavel_ms ms;

    if ((flag->kind == FLAG_DURATION || flag->kind == FLAG_PACE) &&
        duration_parse(value, &ms, &cause) != GAVEL_OK)
        return error_set(cursor->error, GAVEL_ERR_INVALID, "--%s: %s", flag->name, cause.message);
    if ((flag->kind == FLAG_TEXT && !*value) || (flag->kind == FLAG_LIST && !value[strspn(value, ", ")]))
        return error_set(cursor->error, GAVEL_ERR_INVALID, "--%s is empty; give it a value, or leave it out",
                         flag->name);
    if (flag->kind == FLAG_NUMBER &&
        (!*value || strlen(value) > 9 || strspn(value, "0123456789") != strlen(value)))
        return error_set(cursor->error, GAVEL_ERR_INVALID,
                         "--%s: \"%.60s\" is not a number from 0 to 999999999", flag->name, value);
    return GAVEL_OK;
}

/* Likewise, where that is a number. */
static bool follows_number(const struct cursor *cursor)
{
    return cursor->at + 1 < cursor->argc && isdigit((unsigned char)cursor->argv[cursor->at + 1][0]);
}

/* One more value of a list. */
static enum gavel_status join(const struct cursor *cursor, size_t position, const char *value)
{
    char *longer = NULL;

    if (asprintf(&longer, "%s,%s", cursor->args->flag_texts[position], value) < 0)
        return error_set(cursor->error, GAVEL_ERR_NO_MEMORY, "out of memory");
    free(cursor->args->lists[position]);
    cursor->args->flag_texts[position] = cursor->args->lists[position] = longer;
    return GAVEL_OK;
}

static enum gavel_status take_flag(struct cursor *cursor, const struct flag *flag, const char *attached)
{
    size_t position = (size_t)(flag - cursor->args->command->flags);
    char name[OPTION_NAME_MAX];
    const char *value = "true";
    enum gavel_status status;

    ASSERT(position < CLI_FLAGS_MAX);
    snprintf(name, sizeof name, "--%s", flag->name);
    if (flag->kind == FLAG_SWITCH && attached)
        return error_set(cursor->error, GAVEL_ERR_INVALID, "%s takes no value", name);
    if (flag->kind == FLAG_PACE && !attached && !follows_number(cursor)) {
        value = "";
    } else if (flag->kind != FLAG_SWITCH) {
        status = take_value(cursor, name, attached, &value);
        if (status == GAVEL_OK)
            status = check_flag(cursor, flag, value);
        if (status != GAVEL_OK)
            return status;
    }
    if (flag->kind == FLAG_LIST && cursor->args->flag_texts[position])
        return join(cursor, position, value);
    cursor->args->flag_texts[position] = value;
    return GAVEL_OK;
}

static const struct flag *flag_find(const struct command *command, const char *name)
{
    for (const struct flag *flag = command ? command->flags : NULL; flag && flag->name; flag++)
        if (strcmp(flag->name, name) == 0)
            return flag;
    return NULL;
}

static enum gavel_status take_long(struct cursor *cursor, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    const struct setting *setting;
    const struct flag *flag;
    char name[OPTION_NAME_MAX];

    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
    if (strcmp(name, "help") == 0 || strcmp(name, "version") == 0) {
        *(name[0] == 'h' ? &cursor->args->wants_help : &cursor->args->wants_version) = true;
        return GAVEL_OK;
    }
    flag = flag_find(cursor->args->command, name);
    if (flag)
        return take_flag(cursor, flag, equals ? equals + 1 : NULL);
    setting = setting_by_flag(name);
    if (setting)
        return take_setting(cursor, setting, false, equals ? equals + 1 : NULL);
    setting = strncmp(name, "no-", 3) == 0 ? setting_by_flag(name + 3) : NULL;
    if (setting && setting->kind == SETTING_BOOL)
        return take_setting(cursor, setting, true, equals ? equals + 1 : NULL);
    return unknown_option(cursor, name);
}

static enum gavel_status take_short(struct cursor *cursor, const char *text)
{
    const struct setting *setting;

    if (strcmp(text, "h") == 0 || strcmp(text, "V") == 0) {
        *(text[0] == 'h' ? &cursor->args->wants_help : &cursor->args->wants_version) = true;
        return GAVEL_OK;
    }
    setting = setting_by_letter(text[0]);
    if (!setting)
        return error_set(cursor->error, GAVEL_ERR_INVALID, "there is no option -%.60s; --help lists them",
                         text);
    return take_setting(cursor, setting, false, text[1] ? text + 1 : NULL);
}

/* Whether its first word ends our options: what follows belongs to the user's command. */
static bool takes_command(const struct command *command)
{
    return command && command->arguments_max == ARGUMENTS_COMMAND;
}

/* A word that is no option: the command if there is none yet, else one of its arguments. */
static enum gavel_status take_word(struct cursor *cursor)
{
    struct args *args = cursor->args;
    char *word = cursor->argv[cursor->at];

    if (!args->command) {
        args->command = command_find(word);
        return args->command ? GAVEL_OK : command_unknown(word, cursor->error);
    }
    if (!takes_command(args->command) && args->count >= args->command->arguments_max && !args->wants_help)
        return error_set(cursor->error, GAVEL_ERR_INVALID, "\"%.60s\" is one argument too many; %s", word,
                         args->command->arguments_max ? "--help says which it takes" : "it takes none");
    args->items[args->count++] = word;
    return GAVEL_OK;
}

/* Options before the command could not be judged at once. */
static enum gavel_status check_groups(const struct cursor *cursor)
{
    const struct command *command = cursor->args->command;

    if (command && cursor->values->wants_cluster && !(command->options & OPTIONS_CLUSTER))
        return error_set(cursor->error, GAVEL_ERR_INVALID, "--cluster is not an option of this command");
    for (size_t i = 0; command && i < settings_count; i++)
        if (cursor->values->items[i].source == SOURCE_FLAG &&
            !(settings_table[i].groups & (command->options | OPTIONS_COMMON)))
            return error_set(cursor->error, GAVEL_ERR_INVALID, "--%s is not an option of this command",
                             settings_table[i].flag);
    return GAVEL_OK;
}

/* Whether it was given on the command line. */
static bool is_given(const struct cursor *cursor, const char *name)
{
    const struct flag *flag = flag_find(cursor->args->command, name);
    const struct setting *setting = flag ? NULL : setting_by_flag(name);

    ASSERT(flag || setting);
    return flag ? cursor->args->flag_texts[flag - cursor->args->command->flags] != NULL
                : cursor->values->items[setting - settings_table].source == SOURCE_FLAG;
}

/* Whether the word is one of those, which are separated by spaces. */
static bool is_among(const char *words, const char *word)
{
    size_t length = strlen(word), span;

    for (; *words; words += span + (words[span] == ' ')) {
        span = strcspn(words, " ");
        if (span == length && strncmp(words, word, span) == 0)
            return true;
    }
    return false;
}

/* Options that the action has no use for are mistakes: whoever gives them expects something. */
static enum gavel_status check_uses(const struct cursor *cursor)
{
    const struct command *command = cursor->args->command;
    const char *action = cursor->args->count > 0 ? cursor->args->items[0] : NULL;

    for (const struct flag_use *use = command && action ? command->uses : NULL; use && use->flag; use++) {
        if (!is_given(cursor, use->flag) || is_among(use->actions, action))
            continue;
        if (!strchr(use->actions, ' '))
            return error_set(cursor->error, GAVEL_ERR_INVALID, "--%s is only for `gavel %s %s`", use->flag,
                             command->name, use->actions);
        return error_set(cursor->error, GAVEL_ERR_INVALID, "--%s is only for these actions of `gavel %s`: %s",
                         use->flag, command->name, use->actions);
    }
    return GAVEL_OK;
}

enum gavel_status args_parse(int argc, char **argv, struct setting_values *values, struct args *args,
                             struct gavel_error *error)
{
    struct cursor cursor = {.argc = argc, .argv = argv, .values = values, .args = args, .error = error};
    enum gavel_status status = GAVEL_OK;
    bool has_ended = false;

    *args = (struct args){.items = argv + 1}; /* never ahead of the cursor, since each word is moved down */
    for (cursor.at = 1; cursor.at < argc && status == GAVEL_OK; cursor.at++) {
        const char *word = argv[cursor.at];

        if (has_ended || word[0] != '-' || !word[1]) {
            has_ended = has_ended || takes_command(args->command);
            status = take_word(&cursor);
        } else if (strcmp(word, "--") == 0) {
            has_ended = true;
        } else if (word[1] == '-') {
            status = take_long(&cursor, word + 2);
        } else {
            status = take_short(&cursor, word + 1);
        }
        if (args->command && !args->command->run)
            return status; /* it reads the command line itself, which is still as it was */
    }
    if (argc > 0)
        args->items[args->count] = NULL; /* what a command line of the user's ends with, as argv did */
    if (status == GAVEL_OK)
        status = check_groups(&cursor);
    return status == GAVEL_OK && !args->wants_help ? check_uses(&cursor) : status;
}

void args_done(struct args *args)
{
    for (size_t i = 0; i < CLI_FLAGS_MAX; i++)
        free(args->lists[i]);
    *args = (struct args){0};
}
