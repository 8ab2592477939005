/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run/run_plan.h"

#include "base/error.h"
#include "cli/run/candidate_id.h"
#include "cli/settings/store_location.h"
#include "config/program.h"
#include "config/run_file.h"
#include "config/run_spec.h"
#include "store/store.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* What is needed on the way. */
struct making {
    const struct cli *cli;
    struct run_plan *plan;
    const char *store; /* as the commands get to know it */
    struct gavel_error *error;
};

static enum gavel_status no_memory(struct making *making)
{
    return error_set(making->error, GAVEL_ERR_NO_MEMORY, "out of memory");
}

/* A command for sh -c. */
static enum gavel_status find_shell(struct making *making, const char *text,
                                    struct guard_command *ret_command)
{
    struct arena *arena = &making->plan->arena;
    char **argv = arena_take(arena, 4 * sizeof *argv);

    if (!argv)
        return no_memory(making);
    argv[0] = arena_text(arena, "/bin/sh");
    argv[1] = arena_text(arena, "-c");
    argv[2] = arena_text(arena, "%s", text);
    if (!argv[0] || !argv[1] || !argv[2])
        return no_memory(making);
    return program_find(arena, argv, NULL, NULL, ret_command, making->error);
}

const struct run_sessions *run_plan_sessions(const struct config *config, struct run_sessions *buffer)
{
    const struct store_capabilities *store = config->enabled ? store_capabilities_of(config->store) : NULL;

    buffer->asked_ttl_ms = store_session_ttl_of(config->store);
    return store && store->has_sessions ? buffer : NULL;
}

static enum gavel_status plan_children(struct making *making, const struct run_child *children, size_t count)
{
    const struct config *config = &making->cli->config;
    struct run_sessions sessions;
    const struct run_spec_base base = {
        .file = config->file,
        .environment = environ,
        .store = making->store,
        .group = config->group,
        .candidate = making->plan->id,
        .term_signal = config->run.term_signal,
        .on_exit = config->run.on_exit,
        .stops_with_any = !(making->cli->command->options & OPTIONS_RUN), /* `gavel once` */
        .settings = &config->settings,
        .sessions = run_plan_sessions(config, &sessions),
    };

    return run_spec_add(&making->plan->arena, &making->plan->spec, &base, children, count, making->error);
}

/* The one child that is on the command line. */
static enum gavel_status plan_command(struct making *making, char **argv)
{
    struct run_child child = {.command = argv, .grace_ms = -1};

    child.name = run_child_default_name(&making->plan->arena, argv);
    return child.name ? plan_children(making, &child, 1) : no_memory(making);
}

static enum gavel_status plan_hooks(struct making *making)
{
    const struct run_config *config = &making->cli->config.run;
    struct guard_spec *spec = &making->plan->spec;
    enum gavel_status status = GAVEL_OK;

    spec->rules.has_on_elected = config->on_elected && *config->on_elected;
    spec->rules.has_on_demoted = config->on_demoted && *config->on_demoted;
    spec->rules.hook_timeout = ns_from_ms(config->hook_timeout_ms);
    if (spec->rules.has_on_elected)
        status = find_shell(making, config->on_elected, &spec->on_elected);
    if (status == GAVEL_OK && spec->rules.has_on_demoted)
        status = find_shell(making, config->on_demoted, &spec->on_demoted);
    return status;
}

static enum gavel_status plan_itself(struct making *making)
{
    const struct config *config = &making->cli->config;
    struct run_plan *plan = making->plan;
    char id[NAME_MAX_BYTES + 1];
    struct store_location location;
    struct run_sessions sessions;

    candidate_id_choose(config, id);
    store_location_look(config->store, &location); /* a command may run in another directory than gavel */
    plan->id = arena_text(&plan->arena, "%s", id);
    making->store = arena_text(&plan->arena, "%s", location.shown);
    if (!plan->id || !making->store)
        return no_memory(making);
    plan->healthy = config->run.healthy && *config->run.healthy ? config->run.healthy : NULL;
    plan->healthy_every_ms = config->run.healthy_every_ms;
    plan->healthy_timeout_ms = config->run.healthy_timeout_ms;
    plan->healthy_failures = config->run.healthy_failures;
    plan->cool_down_ms = config->run.cool_down_ms;
    plan->has_prefix = config->run.prefix && making->cli->command->options & OPTIONS_RUN;
    plan->spec.rules.restart_limit = config->run.restart_limit;
    plan->spec.rules.restart_window = ns_from_ms(config->run.restart_window_ms);
    plan->spec.orphan_grace = ns_from_ms(config->run.orphan_grace_ms);
    plan->spec.stop_grace = ns_from_ms(config->settings.stop_grace_ms);
    plan->spec.contain = config->run.contain;
    plan->spec.is_single = !config->enabled;
    plan->spec.ignores_sigpipe = making->cli->ignored_sigpipe;
    (void)snprintf(plan->spec.epoch, sizeof plan->spec.epoch, "GAVEL_EPOCH=0");
    (void)pthread_sigmask(SIG_SETMASK, NULL, &plan->spec.signal_mask); /* reading it cannot fail */
    if (!config->enabled && (plan->healthy || config->run.on_exit == ON_EXIT_RESIGN))
        return error_set(
            making->error, GAVEL_ERR_INVALID,
            "without an election there is nobody to hand over to; leave --healthy and --on-exit resign out, or --no-election");
    return run_settings_check(&config->settings, run_plan_sessions(config, &sessions), making->error);
}

/* Exactly one of the two must say what is to be run. */
static enum gavel_status check_source(const struct cli *cli, int argc, struct gavel_error *error)
{
    const struct run_file *file = cli->config.children;

    if (argc > 0 && file)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "there is a command on the command line, and %.200s has children, too; leave one of them out",
            cli->config.file);
    if (argc > 0 || (file && cli->command->options & OPTIONS_RUN))
        return GAVEL_OK;
    if (!(cli->command->options & OPTIONS_RUN))
        return error_set(error, GAVEL_ERR_INVALID,
                         "there is no command to run; write it after the options: -- COMMAND");
    return error_set(
        error, GAVEL_ERR_INVALID,
        "there is no command to run; write it after the options (gavel run -- COMMAND), or list children in a file (gavel run -f FILE), see gavel.yaml(5)");
}

enum gavel_status run_plan_make(const struct cli *cli, int argc, char **argv, struct run_plan *ret_plan,
                                struct gavel_error *error)
{
    struct making making = {.cli = cli, .plan = ret_plan, .error = error};
    const struct run_file *file = cli->config.children;
    enum gavel_status status;

    *ret_plan = (struct run_plan){0};
    status = check_source(cli, argc, error);
    if (status == GAVEL_OK)
        status = plan_itself(&making);
    if (status == GAVEL_OK)
        status = argc > 0 ? plan_command(&making, argv) : plan_children(&making, file->children, file->count);
    if (status == GAVEL_OK)
        status = plan_hooks(&making);
    if (status != GAVEL_OK)
        run_plan_done(ret_plan);
    return status;
}

enum gavel_status run_plan_check(const struct cli *cli, struct gavel_error *error)
{
    struct run_plan plan = {0};
    struct making making = {.cli = cli, .plan = &plan, .error = error};
    const struct run_file *file = cli->config.children;
    enum gavel_status status = plan_itself(&making);

    if (status == GAVEL_OK)
        status = plan_children(&making, file->children, file->count);
    if (status == GAVEL_OK)
        status = plan_hooks(&making);
    run_plan_done(&plan);
    return status;
}

void run_plan_done(struct run_plan *plan)
{
    run_spec_done(&plan->spec);
    arena_done(&plan->arena);
    *plan = (struct run_plan){0};
}

int run_plan_fail(const struct cli *cli, const struct gavel_error *error)
{
    int code = cli_fail(cli, error->status, "%s", error->message);

    if (error->status == GAVEL_ERR_NOT_FOUND)
        return RUN_EXIT_NOT_FOUND;
    return error->status == GAVEL_ERR_IO ? RUN_EXIT_NOT_EXECUTABLE : code;
}
