/* SPDX-License-Identifier: Apache-2.0 */

/* From the section `leader_commands` to the instructions for the guard of its children. */
#include "base/error.h"
#include "config/run_spec.h"
#include "daemon/commands/leader_commands.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* So many ends of children in so long are too many to go on with here; another node may do better. */
#define RESTART_LIMIT 3
#define RESTART_WINDOW (5 * NS_PER_S)

/* Children of a service have no input, also one that is alone. */
static enum gavel_status close_input(struct guard_spec *spec, struct gavel_error *error)
{
    if (spec->rules.child_count != 1)
        return GAVEL_OK;
    spec->children[0].stdin_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return spec->children[0].stdin_fd >= 0
               ? GAVEL_OK
               : error_set(error, GAVEL_ERR_IO, "cannot open /dev/null: %s", strerror(errno));
}

enum gavel_status leader_commands_plan_make(const struct daemon_config *config,
                                            struct leader_commands_plan *ret_plan, struct gavel_error *error)
{
    const struct gavel_settings settings = {.stop_grace_ms = config->stop_grace_ms};
    const struct run_spec_base base = {
        .file = config->file,
        .environment = environ,
        .group = config->cluster,
        .candidate = config->node,
        .term_signal = SIGTERM,
        .on_exit = ON_EXIT_RESTART,
        .settings = &settings,
    };
    struct guard_spec *spec = &ret_plan->spec;
    enum gavel_status status;

    *ret_plan = (struct leader_commands_plan){0};
    spec->rules.restart_limit = RESTART_LIMIT;
    spec->rules.restart_window = RESTART_WINDOW;
    spec->stop_grace = ns_from_ms(config->stop_grace_ms);
    spec->orphan_grace = 0; /* fail-over waits for them */
    spec->contain = CONTAIN_AUTO;
    (void)snprintf(spec->epoch, sizeof spec->epoch, "GAVEL_EPOCH=0"); /* it fits */
    (void)pthread_sigmask(SIG_SETMASK, NULL, &spec->signal_mask);     /* reading it cannot fail */
    (void)sigdelset(&spec->signal_mask,
                    SIGTERM); /* that the node holds back while it starts is its own affair */
    (void)sigdelset(&spec->signal_mask, SIGINT);
    (void)sigdelset(&spec->signal_mask, SIGHUP);
    status =
        run_spec_add(&ret_plan->arena, spec, &base, config->children.children, config->children.count, error);
    if (status == GAVEL_OK)
        status = close_input(spec, error);
    if (status != GAVEL_OK)
        leader_commands_plan_done(ret_plan);
    return status;
}

void leader_commands_plan_done(struct leader_commands_plan *plan)
{
    run_spec_done(&plan->spec);
    if (plan->spec.rules.child_count == 1 && plan->spec.children[0].stdin_fd > STDERR_FILENO)
        (void)close(plan->spec.children[0].stdin_fd); /* only read from */
    arena_done(&plan->arena);
    *plan = (struct leader_commands_plan){0};
}
