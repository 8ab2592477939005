/* SPDX-License-Identifier: Apache-2.0 */

#include "config/run_spec.h"

#include "base/error.h"
#include "config/program.h"
#include "config/run_environment.h"
#include "config/run_grace.h"
#include "config/run_user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is needed on the way. */
struct making {
    struct arena *arena;
    struct guard_spec *spec;
    const struct run_spec_base *base;
    struct gavel_error *error;
};

/* Puts where the child stands before what is wrong with it. */
static enum gavel_status blame(struct making *making, const struct run_child *child,
                               const struct gavel_error *cause)
{
    if (child->line)
        return error_set(making->error, cause->status, "%.150s:%d: %.60s: %s", making->base->file,
                         child->line, child->name, cause->message);
    return error_set(making->error, cause->status, "%s", cause->message);
}

/* The whole path of the directory that a child runs in, since it is entered from elsewhere. */
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
    if (given[0] != '/' && !getcwd(here, sizeof here))
        return error_set(error, GAVEL_ERR_INVALID,
                         "the directory %.200s cannot be used: where gavel was started has no path (%s)",
                         given, strerror(errno));
    *ret_directory = arena_text(making->arena, "%s%s%s", here, here[0] ? "/" : "", given);
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
            total += length + sizeof *text;
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
    struct run_environment parts = {.from = making->base->environment,
                                    .store = making->base->store,
                                    .group = making->base->group,
                                    .candidate = making->base->candidate,
                                    .epoch = making->spec->epoch,
                                    .own = from->environment};
    enum gavel_status status = GAVEL_OK;
    const char *search;

    if (from->directory)
        status = find_directory(making, from->directory, &child->directory, error);
    if (status == GAVEL_OK && from->user)
        status = run_user_find(making->arena, from->user, child, &parts.user, error);
    if (status == GAVEL_OK)
        status = run_environment_make(making->arena, &parts, &child->environment, error);
    if (status != GAVEL_OK)
        return status;
    search = run_environment_value(child->environment, "PATH");
    status = program_find(making->arena, from->command, child->directory, search, &child->command, error);
    if (status == GAVEL_OK && from->ready == READY_BY_COMMAND)
        status =
            program_find(making->arena, from->ready_command, child->directory, search, &child->ready, error);
    return status != GAVEL_OK ? status : check_size(child, error);
}

static enum gavel_status add_child(struct making *making, size_t position, const struct run_child *from)
{
    const struct run_spec_base *base = making->base;
    struct guard_child *child = &making->spec->children[position];
    struct child_rule *rule = &making->spec->rules.children[position];
    struct gavel_error cause = {0};

    *child = (struct guard_child){.term_signal = from->term_signal ? from->term_signal : base->term_signal,
                                  .ready_fd = from->ready == READY_BY_FD ? from->ready_fd : -1,
                                  .stdin_fd = -1,
                                  .stdout_fd = -1,
                                  .stderr_fd = -1};
    child->name = arena_text(making->arena, "%s", from->name);
    if (!child->name)
        return error_set(making->error, GAVEL_ERR_NO_MEMORY, "out of memory");
    rule->on_exit = from->has_on_exit ? from->on_exit : base->on_exit;
    rule->on_exit = base->stops_with_any ? ON_EXIT_STOP : rule->on_exit;
    rule->ready = from->ready;
    rule->ready_timeout = ns_from_ms(from->ready_timeout_ms);
    return find_child(making, from, child, &cause) != GAVEL_OK ? blame(making, from, &cause) : GAVEL_OK;
}

/* Several children cannot share one input. */
static enum gavel_status close_inputs(struct making *making)
{
    struct guard_spec *spec = making->spec;
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

enum gavel_status run_spec_add(struct arena *arena, struct guard_spec *spec, const struct run_spec_base *base,
                               const struct run_child *children, size_t count, struct gavel_error *error)
{
    struct making making = {.arena = arena, .spec = spec, .base = base, .error = error};
    enum gavel_status status = GAVEL_OK;

    spec->rules.child_count = count;
    for (size_t i = 0; i < count && status == GAVEL_OK; i++)
        status = add_child(&making, i, &children[i]);
    if (status == GAVEL_OK)
        status =
            run_graces_share(children, count, base->settings, base->sessions, spec->rules.children, error);
    return status != GAVEL_OK ? status : close_inputs(&making);
}

void run_spec_done(struct guard_spec *spec)
{
    if (spec->rules.child_count > 1 && spec->children[0].stdin_fd > STDERR_FILENO)
        (void)close(spec->children[0].stdin_fd); /* all share it; only read from */
}
