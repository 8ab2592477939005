/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/program.h"

#include "base/error.h"
#include "cli/cli.h"
#include "cli/companion.h"
#include "cli/help.h"
#include "cli/settings/args.h"
#include "cli/settings/environment.h"
#include "cli/settings/setting_values.h"
#include "cli/settings/yaml_file.h"
#include "os/signals.h"
#include "os/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NO_COLOR is not more than a default: whoever asks for colours by a flag gets them. */
static bool wants_color(const struct config *config, int fd)
{
    return config->color == COLOR_AUTO ? terminal_has_color(fd) : config->color == COLOR_ALWAYS;
}

/* `gavel store ping URL` and `migrate URL` are short for --store URL. */
static enum gavel_status take_place(const struct args *args, struct setting_values *values,
                                    struct gavel_error *error)
{
    if (!args->command || args->command->run != command_store || args->count != 2 ||
        (strcmp(args->items[0], "ping") != 0 && strcmp(args->items[0], "migrate") != 0))
        return GAVEL_OK;
    if (values->items[setting_by_flag("store") - settings_table].source == SOURCE_FLAG)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the store is given twice, by --store and after %s: give it once", args->items[0]);
    setting_values_note(values, setting_by_flag("store"), SOURCE_FLAG, args->items[1], 0);
    return GAVEL_OK;
}

/* Puts flags, environment and file together into cli->config. */
static enum gavel_status configure(struct cli *cli, struct setting_values *values, struct gavel_error *error)
{
    unsigned groups = (cli->command ? cli->command->options : 0) | OPTIONS_COMMON;
    enum gavel_status status = GAVEL_OK;
    const char *file;

    setting_values_from_environment(values, groups);
    file = setting_values_text(values, "config");
    if (file)
        status = yaml_file_load(file, values, error);
    if (status == GAVEL_OK)
        status = setting_values_resolve(values, groups, &cli->config, error);
    if (status != GAVEL_OK)
        return status;
    cli->color = wants_color(&cli->config, STDOUT_FILENO);
    cli->log = terminal_log(STDERR_FILENO, cli->config.log_level, cli->config.log_format);
    cli->log.has_color = wants_color(&cli->config, STDERR_FILENO);
    if (cli->command && cli->command->options) /* the others have nothing that a variable could set */
        environment_warn(&cli->log, environ);
    return GAVEL_OK;
}

static int run(struct cli *cli, const struct args *args, struct setting_values *values)
{
    struct gavel_error error = {0};

    cli->config.json = setting_values_text(values, "json") != NULL; /* so that a failure below is JSON, too */
    if (args->wants_help) {
        cli->color = wants_color(&cli->config, STDOUT_FILENO);
        if (cli->command)
            help_command(cli, cli->command, stdout);
        else
            help_program(cli, stdout);
        return cli_finish(cli, CLI_EXIT_OK);
    }
    if (args->wants_version)
        return command_version(cli, 0, NULL);
    if (!cli->command) {
        help_program(cli, stderr);
        return CLI_EXIT_USAGE;
    }
    if (take_place(args, values, &error) != GAVEL_OK || configure(cli, values, &error) != GAVEL_OK) {
        int code = cli_fail(cli, error.status, "%s", error.message);

        return code == CLI_EXIT_FAILURE && error.status == GAVEL_ERR_IO ? CLI_EXIT_USAGE : code;
    }
    return cli->command->run(cli, args->count, args->items);
}

/*
 * A program that was started with stdin, stdout or stderr closed would get
 * their numbers for its sockets and files, and print into them. /dev/null for
 * reading takes their places, so that printing fails as it should.
 */
static void fill_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int program_start(const struct cli *cli, const struct command *command, char **argv)
{
    char name[32], path[PATH_MAX];

    (void)snprintf(name, sizeof name, "gavel-%s", command->name);
    if (!companion_find(name, path))
        return cli_fail(
            cli, GAVEL_ERR_NOT_FOUND,
            "there is no %s in " LIBEXEC_DIRECTORY ", nor beside this program; install all of gavel", name);
    if (cli->ignored_sigpipe == false)
        (void)signal(SIGPIPE, SIG_DFL);
    (void)execv(path, argv);
    return cli_fail(cli, GAVEL_ERR_IO, "cannot start %s: %s", path, strerror(errno));
}

int program_main(int argc, char **argv)
{
    struct cli cli = {.program = argc > 0 ? argv[0] : "gavel"};
    struct setting_values values = {0};
    struct gavel_error error = {0};
    enum gavel_status status;
    struct args args;
    int code;

    signals_begin(0);
    fill_standard_descriptors();
    cli.ignored_sigpipe = signal(SIGPIPE, SIG_IGN) ==
                          SIG_IGN; /* a reader that goes away is an error of write(2), not our death */
    status = args_parse(argc, argv, &values, &args, &error);
    cli.command = args.command;
    if (status != GAVEL_OK) {
        cli.config.json = setting_values_text(&values, "json") != NULL;
        code = cli_fail(&cli, status, "%s", error.message);
    } else if (args.command && !args.command->run) {
        code = program_start(&cli, args.command, argv);
    } else {
        memcpy(cli.flag_texts, args.flag_texts, sizeof cli.flag_texts);
        code = run(&cli, &args, &values);
    }
    setting_values_done(&values);
    args_done(&args);
    return code;
}
