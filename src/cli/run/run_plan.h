/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the command line and the configuration to what the guard is told:
 * programs are looked up, users resolved, environments put together, graces
 * divided. Whatever is wrong with any of it is told here, before this
 * candidate takes part in anything.
 */
#ifndef CLI_RUN_RUN_PLAN_H
#define CLI_RUN_RUN_PLAN_H

#include "cli/run/runner.h"

/* As shells tell of a command that they cannot run. */
#define RUN_EXIT_NOT_EXECUTABLE 126
#define RUN_EXIT_NOT_FOUND 127

/*
 * argc and argv are the command of the user, ending with NULL; argc 0 if the
 * children are in the file. They are borrowed, as is what cli->config holds.
 * For `gavel once` the caller has set the group in cli->config, and sets
 * is_once and waits in the plan afterwards.
 *
 * ERR_NOT_FOUND and ERR_IO tell of programs that are not there or cannot be
 * executed; ERR_BUDGET of times that do not add up; ERR_INVALID of all else
 * that is wrong with what was asked for. See run_plan_fail().
 *
 * *ret_plan has pointers into itself and must not be moved. After a failure
 * it is empty; otherwise it is to be given to run_plan_done().
 */
GAVEL_CHECKED enum gavel_status run_plan_make(const struct cli *cli, int argc, char **argv,
                                              struct run_plan *ret_plan, struct gavel_error *error);

/* Gives everything back. Safe on a zeroed struct. */
void run_plan_done(struct run_plan *plan);

/* Says why there is no plan, and returns the exit code: 127, 126, or the one of the status. */
int run_plan_fail(const struct cli *cli, const struct gavel_error *error);

#endif
