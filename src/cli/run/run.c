/* SPDX-License-Identifier: Apache-2.0 */

/* gavel run: a command, or several, in exactly one of many places. */
#include "cli/run/run_plan.h"

int command_run(const struct cli *cli, int argc, char **argv)
{
    struct gavel_error error = {0};
    struct run_plan plan;
    int code;

    if (run_plan_make(cli, argc, argv, &plan, &error) != GAVEL_OK)
        return run_plan_fail(cli, &error);
    code = runner_run(cli, &plan);
    run_plan_done(&plan);
    return code;
}
