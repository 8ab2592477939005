/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The elector of `gavel run` and `gavel once`: takes part in the election and
 * tells its guard what to run.
 *
 *   library's thread ── on_elected, on_demoted ──► guard ──► the command
 *   main thread: signals, health, the guard's reports, sd_notify, log
 */
#ifndef CLI_RUN_RUNNER_H
#define CLI_RUN_RUNNER_H

#include "cli/cli.h"
#include "config/arena.h"
#include "guard/spec.h"

/* Made from the command line and the configuration by run_plan.c; everything lives until run_plan_done(). */
struct run_plan {
    struct guard_spec spec;
    const char *healthy; /* a command for sh -c; NULL: always healthy */
    gavel_ms healthy_every_ms;
    gavel_ms healthy_timeout_ms;
    int healthy_failures;  /* this many in a row make it unhealthy */
    gavel_ms cool_down_ms; /* not eligible for this long after too many restarts */
    bool has_prefix;       /* output of the children line by line, with their names */
    bool is_once;          /* gavel once: success closes the group for good */
    int64_t keep_s;        /* gavel once: how long the record of a success must stay */
    bool waits;            /* gavel once: stand by while another runs it */
    const char *id;        /* of the candidate; never NULL */
    struct arena arena;    /* holds what the others point to */
};

/* Runs until it is over; returns the exit code of the program. */
int runner_run(const struct cli *cli, struct run_plan *plan);

#endif
