/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/help.h"

#include "cli/program.h"

#include "base/error.h"
#include "cli/output.h"
#include "cli/settings/args.h"
#include "cli/settings/settings_table.h"
#include "store/store.h"

#include <gavel/gavel.h>

#include <string.h>

#define NAME_COLUMNS 26
#define TEXT_BEGINS (NAME_COLUMNS + 4)

static void heading(const struct cli *cli, FILE *file, const char *text)
{
    fprintf(file, "\n%s%s%s\n", style_begin(cli, STYLE_BOLD), text, style_end(cli, STYLE_BOLD));
}

/* One option; a name that is too long for its column gets a line of its own. */
static void option_line(FILE *file, char letter, const char *name, bool is_negatable, const char *argument,
                        const char *help)
{
    char text[96];
    int length = 0;

    if (letter)
        length = snprintf(text, sizeof text, "-%c, ", letter);
    else
        length = snprintf(text, sizeof text, "    ");
    snprintf(text + length, sizeof text - (size_t)length, "--%s%s%s%s", is_negatable ? "[no-]" : "", name,
             argument ? " " : "", argument ? argument : "");
    if (strlen(text) > NAME_COLUMNS)
        fprintf(file, "  %s\n%*s", text, TEXT_BEGINS, "");
    else
        fprintf(file, "  %-*s  ", NAME_COLUMNS, text);
    print_wrapped(file, output_columns(file), TEXT_BEGINS, TEXT_BEGINS, help);
}

/* The options of the table that belong to `groups`. */
static void options_of(FILE *file, unsigned groups)
{
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *setting = &settings_table[i];

        if (setting->groups & groups)
            option_line(file, setting->letter, setting->flag, setting->kind == SETTING_BOOL,
                        setting->argument, setting->help);
    }
}

/* Those of the set. */
static void exit_codes(const struct cli *cli, FILE *file, const char *title, unsigned exits)
{
    heading(cli, file, title);
#define CLI_EXIT_LINE(name, code, text)                                                                      \
    if (exits & EXITS(name)) {                                                                               \
        fprintf(file, "  %-2d  ", code);                                                                     \
        print_wrapped(file, output_columns(file), 6, 6, text);                                               \
    }
    CLI_EXIT_MAP(CLI_EXIT_LINE)
#undef CLI_EXIT_LINE
}

/* The form of a URL in one column, what the store is in the next; a long form gets a line of its own. */
static void stores(const struct cli *cli, FILE *file)
{
    heading(cli, file, "Stores");
    for (const struct store_driver *const *driver = store_drivers; *driver; driver++) {
        const char *summary = (*driver)->summary, *gap = strstr(summary, "  ");
        size_t length = gap ? (size_t)(gap - summary) : strlen(summary);
        char form[96];

        (void)snprintf(form, sizeof form, "%.*s", (int)length, summary);
        if (text_columns(form) > NAME_COLUMNS)
            fprintf(file, "  %s\n%*s", form, TEXT_BEGINS, "");
        else
            fprintf(file, "  %s%*s", form, (int)(NAME_COLUMNS + 2 - text_columns(form)), "");
        print_wrapped(file, output_columns(file), TEXT_BEGINS, TEXT_BEGINS,
                      gap ? gap + strspn(gap, " ") : "");
    }
    fputs("  ", file);
    print_wrapped(file, output_columns(file), 2, 2,
                  "Options: gavel-stores(7). Examples: `gavel store list`.");
}

static void common_options(const struct cli *cli, FILE *file)
{
    heading(cli, file, "Options of every command");
    options_of(file, OPTIONS_COMMON);
    option_line(file, 'h', "help", false, NULL, "show this help");
}

/* Commands that still work and are not listed. */
static void older_names(FILE *file, size_t width)
{
    const struct command *first = commands;
    char text[256];
    int length;

    while (first->name && !first->older_name_of)
        first++;
    if (!first->name)
        return;
    length = snprintf(text, sizeof text, "Older names of %s, which still work:", first->older_name_of);
    for (const struct command *command = first; command->name && length < (int)sizeof text; command++)
        if (command->older_name_of)
            length += snprintf(text + length, sizeof text - (size_t)length, "%s %s",
                               command == first ? "" : ",", command->name);
    fputs("  ", file);
    print_wrapped(file, width, 2, 2, text);
}

void help_program(const struct cli *cli, FILE *file)
{
    size_t width = output_columns(file);

    fprintf(file, "Usage: gavel COMMAND [options]\n\n");
    print_wrapped(
        file, width, 0, 0,
        "Makes exactly one of many processes the leader, notices when it dies, and passes the gavel on.");
    heading(cli, file, "Commands");
    for (const struct command *command = commands; command->name; command++) {
        if (command->older_name_of)
            continue;
        fprintf(file, "  %-12s  ", command->name);
        print_wrapped(file, width, 16, 16, command->summary);
    }
    older_names(file, width);
    heading(cli, file, "Options of the commands that look at a store or take part");
    options_of(file, OPTIONS_STORE);
    heading(cli, file, "Options of the commands that look at a cluster of gaveld");
    options_of(file, OPTIONS_CLUSTER);
    common_options(cli, file);
    option_line(file, 'V', "version", false, NULL, "print the version");
    stores(cli, file);
    exit_codes(cli, file, "Exit codes", ~0u);
    fputc('\n', file);
    print_wrapped(
        file, width, 0, 0,
        "Flags beat the environment (GAVEL_STORE for --store, and so on), which beats the file of --config, which beats the preset. For more, see `gavel COMMAND --help` and gavel(1).");
}

void help_command(const struct cli *cli, const struct command *command, FILE *file)
{
    fprintf(file, "Usage: gavel %s [options]%s%s\n\n", command->name, *command->arguments ? " " : "",
            command->arguments);
    print_wrapped(file, output_columns(file), 0, 0, command->help);
    if (command->flags && command->flags[0].name) {
        heading(cli, file, "Options of this command");
        for (const struct flag *flag = command->flags; flag->name; flag++)
            if (flag->help)
                option_line(file, 0, flag->name, false, flag->argument, flag->help);
    }
    if (command->options & (OPTIONS_WORK | OPTIONS_RUN)) {
        heading(cli, file, "How the command is run");
        options_of(file, command->options & (OPTIONS_WORK | OPTIONS_RUN));
    }
    if (command->options & (OPTIONS_STORE | OPTIONS_STORE_ALL | OPTIONS_CANDIDATE)) {
        heading(cli, file,
                command->options & OPTIONS_CANDIDATE ? "Who takes part, and where" : "What to look at");
        options_of(file, command->options & (OPTIONS_STORE | OPTIONS_STORE_ALL | OPTIONS_CANDIDATE));
    }
    if (command->options & OPTIONS_CLUSTER) {
        heading(cli, file,
                command->options & (OPTIONS_STORE | OPTIONS_STORE_ALL) ? "Or a cluster of gaveld"
                                                                       : "Which cluster");
        if (command->options & OPTIONS_NODES)
            option_line(
                file, 's', "store", false, "URL",
                "the cluster by the URL of a store on it, gavel://…; its nodes say where their API is");
        if (command->options & OPTIONS_GROUP && !(command->options & OPTIONS_STORE))
            option_line(file, 'g', "group", false, "NAME",
                        "a group of the cluster; without it, the nodes of the cluster");
        options_of(file, OPTIONS_CLUSTER);
    }
    if (command->options & (OPTIONS_LISTING | OPTIONS_SETTINGS | OPTIONS_CALLS)) {
        heading(cli, file, "Settings");
        if (command->options & OPTIONS_SETTINGS) {
            fputs("  ", file);
            print_wrapped(file, output_columns(file), 2, 2,
                          "The preset sets the defaults of all others; `gavel check` prints them.");
        }
        options_of(file, command->options & (OPTIONS_LISTING | OPTIONS_SETTINGS | OPTIONS_CALLS));
        fputs("  ", file);
        print_wrapped(file, output_columns(file), 2, 2,
                      "A DURATION is written with a unit: 500ms, 2s, 1m30s or 1h.");
    }
    common_options(cli, file);
    exit_codes(cli, file,
               command->options & OPTIONS_WORK ? "Exit codes of gavel itself; otherwise that of the command"
                                               : "Exit codes",
               EXITS_ALWAYS | command->exits);
}

int command_help(const struct cli *cli, int argc, char **argv)
{
    struct gavel_error error = {0};
    static char option[] = "--help";
    const struct command *command;

    if (argc == 0) {
        help_program(cli, stdout);
        return cli_finish(cli, CLI_EXIT_OK);
    }
    command = command_find(argv[0]);
    if (!command) {
        enum gavel_status status = command_unknown(argv[0], &error);

        return cli_fail(cli, status, "%s", error.message);
    }
    if (!command->run)
        return program_start(cli, command,
                             (char *[]){(char *)(uintptr_t)cli->program, argv[0], option, NULL});
    help_command(cli, command, stdout);
    return cli_finish(cli, CLI_EXIT_OK);
}

int command_version(const struct cli *cli, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (cli->config.json)
        printf("{\"version\":\"%s\"}\n", gavel_version());
    else
        printf("gavel %s\n", gavel_version());
    return cli_finish(cli, CLI_EXIT_OK);
}
