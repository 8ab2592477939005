/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run_plan.h"

#include "base/error.h"
#include "cli/candidate_id.h"
#include "cli/place.h"
#include "config/program.h"
#include "config/run_environment.h"
#include "config/run_file.h"
#include "config/run_grace.h"
#include "config/run_user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* Puts where the child stands before what is wrong with it. */
static enum gavel_status blame(struct making *making, const struct run_child *child,
                               const struct gavel_error *cause)
{
    if (child->line)
        return error_set(making->error, cause->status, "%.150s:%d: %.60s: %s", making->cli->config.file,
                         child->line, child->name, cause->message);
    return error_set(making->error, cause->status, "%s", cause->message);
}

/* A command for sh -c. */
static enum gavel_status find_shell(struct making *making, const char *text,
                                    struct guard_command *ret_command)
{
    struct arena *arena = &making->plan->arena;
    char **argv = arena_take(arena, 4 * sizeof(*argv));

    if (!argv)
        return no_memory(making);
    argv[0] = arena_text(arena, "/bin/sh");
    argv[1] = arena_text(arena, "-c");
    argv[2] = arena_text(arena, "%s", text);
    if (!argv[0] || !argv[1] || !argv[2])
        return no_memory(making);
    return program_find(arena, argv, NULL, NULL, ret_command, making->error);
}

/* The whole path of the folder that a child runs in, since it is entered from elsewhere. */
static enum gavel_status find_directory(struct making *making, const char *given, const char **ret_directory,
                                        struct gavel_error *error)
{
    char here[PATH_MAX] = "";
    struct stat stat_of;

    if (stat(given, &stat_of))
        return error_set(error, GAVEL_ERR_INVALID, "the directory %.200s cannot be used: %s", given,
                         strerror(errno));
    if (!S_ISDIR(stat_of.st_mode))
        return error_set(error, GAVEL_ERR_INVALID, "the directory %.200s cannot be used: it is a file",
                         given);
    if (given[0] != '/' && !getcwd(here, sizeof(here)))
        return error_set(error, GAVEL_ERR_INVALID,
                         "the directory %.200s cannot be used: where gavel was started has no path (%s)",
                         given, strerror(errno));
    *ret_directory = arena_text(&making->plan->arena, "%s%s%s", here, here[0] ? "/" : "", given);
    return *ret_directory ? GAVEL_OK : error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
}

/* More than the system takes at once would be refused when the child is started, and not before. */
static enum gavel_status check_size(const struct guard_child *child, struct gavel_error *error)
{
    char *const *const lists[] = {child->command.argv, child->environment};
    long most = sysconf(_SC_ARG_MAX);
    size_t total = 4096; /* what the system puts beside them */

    for (size_t i = 0; i < 2; i++)
        for (char *const *text = lists[i]; *text; text++) {
            size_t length = strlen(*text) + 1;

            if (length > 32 * (size_t)sysconf(_SC_PAGESIZE))
                return error_set(
                    error, GAVEL_ERR_INVALID,
                    "an argument or a variable of %zu bytes is more than the system takes (%.40s…)", length,
                    *text);
            total += length + sizeof(*text);
        }
    if (most > 0 && total > (size_t)most)
        return error_set(error, GAVEL_ERR_INVALID,
                         "its arguments and variables are %zu bytes, and the system takes %ld at most", total,
                         most);
    return GAVEL_OK;
}

static enum gavel_status find_child(struct making *making, const struct run_child *from,
                                    struct guard_child *child, struct gavel_error *error)
{
    struct run_environment parts = {.from = environ,
                                    .store = making->store,
                                    .group = making->cli->config.group,
                                    .candidate = making->plan->id,
                                    .epoch = making->plan->spec.epoch,
                                    .own = from->environment};
    struct arena *arena = &making->plan->arena;
    enum gavel_status status = GAVEL_OK;
    const char *search;

    if (from->directory)
        status = find_directory(making, from->directory, &child->directory, error);
    if (!status && from->user)
        status = run_user_find(arena, from->user, child, &parts.user, error);
    if (!status)
        status = run_environment_make(arena, &parts, &child->environment, error);
    if (status)
        return status;
    search = run_environment_value(child->environment, "PATH");
    status = program_find(arena, from->command, child->directory, search, &child->command, error);
    if (!status && from->ready == READY_BY_COMMAND)
        status = program_find(arena, from->ready_command, child->directory, search, &child->ready, error);
    return status ? status : check_size(child, error);
}

static enum gavel_status plan_child(struct making *making, size_t position, const struct run_child *from)
{
    const struct run_config *config = &making->cli->config.run;
    struct guard_child *child = &making->plan->spec.children[position];
    struct child_rule *rule = &making->plan->spec.rules.children[position];
    bool has_choice = making->cli->command->options & OPTIONS_RUN; /* `gavel once` ends with its command */
    struct gavel_error cause = {0};

    *child = (struct guard_child){.term_signal = from->term_signal ? from->term_signal : config->term_signal,
                                  .ready_fd = from->ready == READY_BY_FD ? from->ready_fd : -1,
                                  .stdin_fd = -1,
                                  .stdout_fd = -1,
                                  .stderr_fd = -1};
    child->name = arena_text(&making->plan->arena, "%s", from->name);
    if (!child->name)
        return no_memory(making);
    rule->on_exit = from->has_on_exit ? from->on_exit : config->on_exit;
    rule->on_exit = has_choice ? rule->on_exit : ON_EXIT_STOP;
    rule->ready = from->ready;
    rule->ready_timeout = ns_from_ms(from->ready_timeout_ms);
    return find_child(making, from, child, &cause) ? blame(making, from, &cause) : GAVEL_OK;
}

/* Several children cannot share one input. */
static enum gavel_status close_inputs(struct making *making)
{
    struct guard_spec *spec = &making->plan->spec;
    int fd;

    if (spec->rules.child_count < 2)
        return GAVEL_OK;
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(making->error, GAVEL_ERR_STATE, "cannot open /dev/null: %s", strerror(errno));
    for (size_t i = 0; i < spec->rules.child_count; i++)
        spec->children[i].stdin_fd = fd;
    return GAVEL_OK;
}

static enum gavel_status plan_children(struct making *making, const struct run_child *children, size_t count)
{
    struct guard_spec *spec = &making->plan->spec;
    enum gavel_status status = GAVEL_OK;

    spec->rules.child_count = count;
    for (size_t i = 0; i < count && !status; i++)
        status = plan_child(making, i, &children[i]);
    if (!status)
        status = run_graces_share(children, count, &making->cli->config.settings, spec->rules.children,
                                  making->error);
    return status ? status : close_inputs(making);
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
    if (!status && spec->rules.has_on_demoted)
        status = find_shell(making, config->on_demoted, &spec->on_demoted);
    return status;
}

static enum gavel_status plan_itself(struct making *making)
{
    const struct config *config = &making->cli->config;
    struct run_plan *plan = making->plan;
    char id[NAME_MAX_BYTES + 1];
    struct place place;

    candidate_id_choose(config, id);
    place_look(config->store, &place); /* a command may run in another folder than gavel */
    plan->id = arena_text(&plan->arena, "%s", id);
    making->store = arena_text(&plan->arena, "%s", place.shown);
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
    (void)snprintf(plan->spec.epoch, sizeof(plan->spec.epoch), "GAVEL_EPOCH=0");
    (void)pthread_sigmask(SIG_SETMASK, NULL, &plan->spec.signal_mask); /* reading it cannot fail */
    if (!config->enabled && (plan->healthy || config->run.on_exit == ON_EXIT_RESIGN))
        return error_set(making->error, GAVEL_ERR_INVALID,
                         "without an election there is nobody to hand over to; leave --healthy and --on-exit "
                         "resign out, or --no-election");
    return run_settings_check(&config->settings, making->error);
}

/* Exactly one of the two must say what is to be run. */
static enum gavel_status check_source(const struct cli *cli, int argc, struct gavel_error *error)
{
    const struct run_file *file = cli->config.children;

    if (argc > 0 && file)
        return error_set(error, GAVEL_ERR_INVALID,
                         "there is a command on the command line, and %.200s has children, too; leave one of "
                         "them out",
                         cli->config.file);
    if (argc > 0 || (file && cli->command->options & OPTIONS_RUN))
        return GAVEL_OK;
    if (!(cli->command->options & OPTIONS_RUN))
        return error_set(error, GAVEL_ERR_INVALID,
                         "there is no command to run; write it behind the options: -- COMMAND");
    return error_set(
        error, GAVEL_ERR_INVALID,
        "there is no command to run; write it behind the options (gavel run -- COMMAND), or list "
        "children in a file (gavel run -f FILE), see gavel.yaml(5)");
}

enum gavel_status run_plan_make(const struct cli *cli, int argc, char **argv, struct run_plan *ret_plan,
                                struct gavel_error *error)
{
    struct making making = {.cli = cli, .plan = ret_plan, .error = error};
    const struct run_file *file = cli->config.children;
    enum gavel_status status;

    *ret_plan = (struct run_plan){0};
    status = check_source(cli, argc, error);
    if (!status)
        status = plan_itself(&making);
    if (!status)
        status = argc > 0 ? plan_command(&making, argv) : plan_children(&making, file->children, file->count);
    if (!status)
        status = plan_hooks(&making);
    if (status)
        run_plan_done(ret_plan);
    return status;
}

void run_plan_done(struct run_plan *plan)
{
    if (plan->spec.rules.child_count > 1 && plan->spec.children[0].stdin_fd > STDERR_FILENO)
        close(plan->spec.children[0].stdin_fd); /* all share it */
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
