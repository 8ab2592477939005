/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/config/flags.h"

#include "base/error.h"
#include "config/suggest.h"
#include "daemon/config/settings.h"
#include "daemon/exit_codes.h"

#include <stdlib.h>
#include <string.h>

/* Those that are no settings. */
static const struct {
    const char *flag;
    const char *text;
    const char *help;
} others[] = {
    {"--config", "-c, --config FILE", "read this file, see gaveld.yaml(5)"},
    {"--check-config", "--check-config",
     "check the configuration and print what follows from it; start nothing"},
    {"--join", "--join",
     "with an empty data directory: wait until the cluster adds this node (gavel member add)"},
    {"--force-new-cluster", "--force-new-cluster",
     "the cluster is lost for good: turn this node's data into a new cluster of one, and end"},
    {"--yes", "--yes", "with --force-new-cluster: do not ask"},
    {"--accept-copy", "--accept-copy",
     "accept a data directory that was copied; nothing has run on the original since"},
    {"--no-guard", "--no-guard", "run the node alone, without obituaries and restarts; for a debugger"},
    {"--version", "--version", "print the version"},
    {"--help", "-h, --help", "show this help"},
};
#define OTHERS (sizeof others / sizeof *others)

#define COLUMNS 80
#define HELP_COLUMN 32 /* where what a flag does begins */

/* A flag and what it does, in lines that fit a terminal. */
static void print_flag(FILE *out, const char *flag, const char *help)
{
    int room = COLUMNS - HELP_COLUMN;

    (void)fprintf(out, "  %-*s", HELP_COLUMN - 2, flag);
    while ((int)strlen(help) > room) {
        int end = room;

        while (end > 0 && help[end] != ' ')
            end--;
        if (end == 0) /* one long word */
            end = room;
        (void)fprintf(out, "%.*s\n%*s", end, help, HELP_COLUMN, "");
        help += end + (help[end] == ' ');
    }
    (void)fprintf(out, "%s\n", help);
}

static void print_settings(FILE *out)
{
    for (size_t i = 0; i < CONFIG_SETTINGS_COUNT; i++) {
        const struct config_setting *setting = &config_settings[i];
        char flag[CONFIG_FLAG_MAX], left[80];

        (void)config_setting_flag(setting, flag);
        if (setting->argument)
            (void)snprintf(left, sizeof left, "%s %s", flag, setting->argument);
        else
            (void)snprintf(left, sizeof left, "--[no-]%s", flag + 2);
        print_flag(out, left, setting->help);
    }
}

void flags_print_help(FILE *out)
{
    (void)fputs("Usage: gaveld --config FILE [--bootstrap | --join] [SETTING…]\n\n"
                "One node of a cluster that elects a leader, notices when it dies, and elects\n"
                "another.\n\n",
                out);
    for (size_t i = 0; i < OTHERS; i++)
        print_flag(out, others[i].text, others[i].help);
    (void)fputs("\nSettings: flags beat the environment (GAVELD_LOG_LEVEL and so on), which beats\n"
                "the file.\n",
                out);
    print_settings(out);
    (void)fputs("\nExit codes:\n", out);
    for (size_t i = 0; i < exit_code_count; i++)
        (void)fprintf(out, "  %3d  %s\n", exit_codes[i].code, exit_codes[i].text);
    (void)fputs("\nFirst start of each node of a new cluster:\n"
                "  gaveld --config gaveld.yaml --bootstrap\n"
                "First start of a node that joins a running cluster (then run gavel member add):\n"
                "  gaveld --config gaveld.yaml --join\n"
                "Every later start:\n"
                "  gaveld --config gaveld.yaml\n",
                out);
}

static enum gavel_status unknown(const char *word, size_t length, struct gavel_error *error)
{
    char typed[CONFIG_FLAG_MAX], flags[CONFIG_SETTINGS_COUNT][CONFIG_FLAG_MAX];
    struct suggestion suggestion;

    (void)snprintf(typed, sizeof typed, "%.*s", (int)length, word); /* a longer one is like none of ours */
    suggestion_init(&suggestion, typed);
    for (size_t i = 0; i < OTHERS; i++)
        suggestion_offer(&suggestion, others[i].flag);
    for (size_t i = 0; i < CONFIG_SETTINGS_COUNT; i++)
        suggestion_offer(&suggestion, config_setting_flag(&config_settings[i], flags[i]));
    if (suggestion.best)
        return error_set(error, GAVEL_ERR_INVALID, "there is no %.60s; did you mean %s?", typed,
                         suggestion.best);
    return error_set(error, GAVEL_ERR_INVALID, "there is no %.60s; gaveld --help lists what there is", typed);
}

/* A flag that is no setting; false if it is none. */
static bool take_other(const char *word, struct flags *flags)
{
    if (strcmp(word, "--check-config") == 0)
        flags->mode = FLAGS_CHECK;
    else if (strcmp(word, "--force-new-cluster") == 0)
        flags->input.forces = true;
    else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        flags->mode = FLAGS_HELP;
    else if (strcmp(word, "--version") == 0)
        flags->mode = FLAGS_VERSION;
    else if (strcmp(word, "--join") == 0)
        flags->input.joins = true;
    else if (strcmp(word, "--yes") == 0)
        flags->input.is_confirmed = true;
    else if (strcmp(word, "--accept-copy") == 0)
        flags->input.accepts_copy = true;
    else if (strcmp(word, "--no-guard") == 0)
        flags->has_no_guard = true;
    else
        return false;
    return true;
}

/* The setting that a word is the flag of; *ret_is_no for --no-…. */
static const struct config_setting *find_setting(const char *word, size_t length, bool *ret_is_no)
{
    const struct config_setting *setting;
    char name[CONFIG_FLAG_MAX];

    if (length < 3 || length >= sizeof name || strncmp(word, "--", 2) != 0)
        return NULL;
    (void)snprintf(name, sizeof name, "%.*s", (int)length - 2, word + 2); /* it fits */
    setting = config_setting_by_name(name);
    *ret_is_no = false;
    if (!setting && strncmp(name, "no-", 3) == 0) {
        setting = config_setting_by_name(name + 3);
        *ret_is_no = true;
        if (setting && setting->argument)
            setting = NULL;
    }
    return setting;
}

/* The word at *at, and the next one if it is its value. */
static enum gavel_status take_word(char **argv, int *at, struct flags *flags, struct gavel_error *error)
{
    const char *word = argv[*at];
    size_t length = strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : NULL;
    bool is_file = strcmp(word, "-c") == 0 || (length == 8 && strncmp(word, "--config", 8) == 0);
    bool is_no = false;
    const struct config_setting *setting = find_setting(word, length, &is_no);

    if (word[0] != '-')
        return error_set(
            error, GAVEL_ERR_INVALID,
            "\"%.60s\" is no flag; gaveld --help lists them, and the file is given by --config %.60s", word,
            word);
    if (take_other(word, flags))
        return GAVEL_OK;
    if (!setting && !is_file)
        return unknown(word, length, error);
    if (setting && !setting->argument && !value)
        value = is_no ? "false" : "true";
    else if (is_no)
        return error_set(error, GAVEL_ERR_INVALID, "%.60s takes no value", word);
    if (!value)
        value = argv[*at + 1] ? argv[++*at] : NULL;
    if (!value)
        return error_set(error, GAVEL_ERR_INVALID, "%.60s needs a value", word);
    if (is_file) {
        flags->input.file = value;
        return GAVEL_OK;
    }
    if (flags->input.flag_count == CONFIG_FLAGS_MAX)
        return error_set(error, GAVEL_ERR_INVALID, "there are more than %d flags", CONFIG_FLAGS_MAX);
    flags->input.flags[flags->input.flag_count].setting = setting;
    flags->input.flags[flags->input.flag_count++].text = value;
    return GAVEL_OK;
}

enum gavel_status flags_read(int argc, char **argv, char *const *environment, struct flags *ret_flags,
                             struct gavel_error *error)
{
    struct flags flags = {.input.environment = environment};
    const char *file = getenv("GAVELD_CONFIG");
    enum gavel_status status = GAVEL_OK;

    flags.input.file = file && *file ? file : NULL;
    for (int i = 1; i < argc && status == GAVEL_OK; i++)
        status = take_word(argv, &i, &flags, error);
    if (status != GAVEL_OK)
        return status;
    if (flags.input.forces && flags.mode == FLAGS_RUN)
        flags.mode = FLAGS_FORCE;
    if (flags.input.forces && flags.input.joins)
        return error_set(error, GAVEL_ERR_INVALID, "--force-new-cluster and --join exclude each other");
    if (flags.input.is_confirmed && !flags.input.forces)
        return error_set(error, GAVEL_ERR_INVALID, "--yes is for --force-new-cluster only");
    *ret_flags = flags;
    return GAVEL_OK;
}
