/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes the guard's specification from the command line and the configuration:
 * looks up programs, resolves users, builds environments and divides graces.
 * Any error is reported here, before this candidate takes part in anything.
 */
#ifndef CLI_RUN_RUN_PLAN_H
#define CLI_RUN_RUN_PLAN_H

#include "cli/run/runner.h"
#include "config/run_grace.h"

/* As shells report a command that they cannot run. */
#define RUN_EXIT_NOT_EXECUTABLE 126
#define RUN_EXIT_NOT_FOUND 127

/*
 * argc and argv are the user's command, ending with NULL; argc is 0 if the
 * children are in the file. They are borrowed, as is what cli->config holds.
 * For `gavel once` the caller has set the group in cli->config, and sets
 * is_once and waits in the plan afterwards.
 *
 * ERR_NOT_FOUND and ERR_IO: a program does not exist or cannot be executed;
 * ERR_BUDGET: the times do not add up; ERR_INVALID: anything else is wrong with
 * the request. See run_plan_fail().
 *
 * *ret_plan has pointers into itself and must not be moved. After a failure it
 * is empty; otherwise the caller frees it with run_plan_done().
 */
GAVEL_CHECKED enum gavel_status run_plan_make(const struct cli *cli, int argc, char **argv,
                                              struct run_plan *ret_plan, struct gavel_error *error);

/* What run_plan_make() would find wrong with the children of the file, of which there are some; starts
 * nothing. */
GAVEL_CHECKED enum gavel_status run_plan_check(const struct cli *cli, struct gavel_error *error);

/* What the store of the configuration makes of its lease; NULL without sessions or an election. */
const struct run_sessions *run_plan_sessions(const struct config *config, struct run_sessions *buffer);

/* Frees everything. Safe on a zeroed struct. */
void run_plan_done(struct run_plan *plan);

/* Says why there is no plan, and returns the exit code: 127, 126, or the one of the status. */
int run_plan_fail(const struct cli *cli, const struct gavel_error *error);

#endif
