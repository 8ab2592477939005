/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel once: a command that succeeds at most once for a key, whoever runs it.
 *
 * A key is a group of its own. Who leads it runs the command; a success closes
 * the group for good, in the same write that gives the mandate up. So there
 * may be several attempts, one after the other and never two at a time, and
 * the record of one success. The release also leaves what came of the attempt
 * (base/outcome.h), in the same write; once_list.c shows it.
 */
#include "cli/run/once.h"
#include "base/error.h"
#include "base/outcome.h"
#include "cli/group/leadership.h"
#include "cli/run/run_plan.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

/* The group of the key, in *buffer, which has room for any. */
static enum gavel_status name_group(const char *key, char *buffer, size_t size, struct gavel_error *error)
{
    size_t longest = NAME_MAX_BYTES - strlen(ONCE_PREFIX);
    enum gavel_status status;

    if (!key)
        return error_set(error, GAVEL_ERR_INVALID,
                         "no key is given; name the work, such as --key nightly-2026-11-15");
    if (!*key)
        return error_set(error, GAVEL_ERR_INVALID, "the key is empty; give it 1 to %zu bytes", longest);
    status = name_check("key", key, error);
    if (status != GAVEL_OK)
        return status;
    if (strlen(key) > longest)
        return error_set(error, GAVEL_ERR_INVALID, "the key is longer than %zu bytes; choose a shorter one",
                         longest);
    (void)snprintf(buffer, size, ONCE_PREFIX "%s", key);
    return GAVEL_OK;
}

/* Whether this configuration lets a success be recorded. */
static enum gavel_status check_store(const struct config *config, struct gavel_error *error)
{
    const struct store_capabilities *capabilities = store_capabilities_of(config->store);

    if (!config->enabled)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "election is switched off, so a success could not be recorded; switch it on (enabled: true)");
    if (capabilities && (capabilities->is_fixed || !capabilities->is_shared))
        return error_set(
            error, GAVEL_ERR_STORE_UNSUPPORTED,
            "the store %.200s keeps nothing, so a success could not be recorded; use another store",
            config->store);
    return GAVEL_OK;
}

/*
 * Whether the key is done, so that nothing has to be started. Only a short
 * cut: whatever goes wrong here shows again, and is told, when taking part.
 */
static bool is_done(const struct cli *cli)
{
    struct onlooker onlooker = {0};
    struct leadership leadership;
    bool is_done = false;

    if (onlooker_open(cli, 0, 0, &onlooker, NULL) != GAVEL_OK)
        return false;
    if (leadership_read(&onlooker, cli->config.group, &leadership, NULL) == GAVEL_OK)
        is_done = leadership.state == LEADERSHIP_DONE;
    if (is_done)
        log_line(&cli->log, clock_wall_ms(), LOG_INFO, "already done", LOG_STR("group", cli->config.group),
                 LOG_STR("by", leadership.record.holder), LOG_U64("epoch", leadership.record.epoch), LOG_END);
    onlooker_close(&onlooker);
    return is_done;
}

static enum gavel_status reopen(const struct onlooker *onlooker, const char *group, struct gavel_error *error)
{
    struct store_request request = {.op = STORE_REOPEN, .group = group};
    struct store_reply reply = {0};
    struct leadership leadership;
    enum gavel_status status = leadership_read(onlooker, group, &leadership, error);

    if (status != GAVEL_OK)
        return status;
    if (leadership.state != LEADERSHIP_DONE)
        return error_set(error, GAVEL_ERR_NOT_FOUND, "\"%.100s\" is not done, so there is nothing to forget",
                         group + strlen(ONCE_PREFIX));
    request.expected_version = leadership.record.version;
    status = onlooker_call(onlooker, &request, &reply, error);
    store_reply_done(&reply);
    return status;
}

static int forget(const struct cli *cli)
{
    struct onlooker onlooker = {0};
    struct gavel_error error = {0};
    enum gavel_status status = onlooker_open(cli, 0, 0, &onlooker, &error);

    if (status == GAVEL_OK)
        status = reopen(&onlooker, cli->config.group, &error);
    onlooker_close(&onlooker);
    if (status != GAVEL_OK)
        return cli_fail(cli, status, "%s", error.message);
    log_line(&cli->log, clock_wall_ms(), LOG_INFO, "may be done again", LOG_STR("group", cli->config.group),
             LOG_END);
    return CLI_EXIT_OK;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    struct gavel_error error = {0};
    struct run_plan plan;
    int code;

    if (argc == 0)
        return cli_fail(cli, GAVEL_ERR_INVALID, "there is no command to run; name one after --");
    if (run_plan_make(cli, argc, argv, &plan, &error) != GAVEL_OK)
        return run_plan_fail(cli, &error);
    plan.is_once = true;
    plan.waits = !cli_flag_is_set(cli, "no-wait");
    plan.keep_s = cli_flag_duration(cli, "keep", OUTCOME_KEEP_S * 1000) / 1000;
    code = is_done(cli) ? CLI_EXIT_OK : runner_run(cli, &plan);
    run_plan_done(&plan);
    return code;
}

/* Flags that would have no effect are mistakes. */
static enum gavel_status check_flags(const struct cli *cli, int argc, struct gavel_error *error)
{
    bool lists = cli_flag_is_set(cli, "list");

    if (lists && (argc > 0 || cli_flag_is_set(cli, "key") || cli_flag_is_set(cli, "forget") ||
                  cli_flag_is_set(cli, "keep") || cli_flag_is_set(cli, "no-wait")))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "--list runs nothing and shows all keys; leave out the command, and narrow it with --prefix");
    if (!lists && cli_flag_is_set(cli, "prefix"))
        return error_set(error, GAVEL_ERR_INVALID, "--prefix is for --list");
    if (cli_flag_is_set(cli, "forget") && (cli_flag_is_set(cli, "keep") || cli_flag_is_set(cli, "no-wait")))
        return error_set(error, GAVEL_ERR_INVALID,
                         "--forget runs nothing; leave out --keep and --no-wait, which are for a run");
    if (cli_flag_duration(cli, "keep", 1000) < 1000)
        return error_set(error, GAVEL_ERR_INVALID, "--keep is shorter than 1s");
    return GAVEL_OK;
}

int command_once(const struct cli *cli, int argc, char **argv)
{
    const char *key = cli_flag_text(cli, "key");
    struct gavel_error error = {0};
    char group[NAME_MAX_BYTES + 1];
    struct cli own = *cli;

    if (check_flags(cli, argc, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (cli_flag_is_set(cli, "list"))
        return once_list(cli, cli_flag_text(cli, "prefix"));
    if (!key && cli_flag_is_set(cli, "forget") && argc == 1) { /* --forget KEY */
        key = argv[0];
        argc = 0;
    }
    if (name_group(key, group, sizeof group, &error) != GAVEL_OK ||
        check_store(&cli->config, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    own.config.group = group;
    /* One command is run once; that a file has children, or restarts what ended, is for `gavel run`. */
    own.config.children = NULL;
    own.config.run.on_exit = ON_EXIT_STOP;
    if (!cli_flag_is_set(cli, "forget"))
        return run(&own, argc, argv);
    if (argc > 0)
        return cli_fail(cli, GAVEL_ERR_INVALID, "--forget runs nothing; leave out the command");
    return forget(&own);
}
