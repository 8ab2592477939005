/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fail-overs that take long, many at a time. A trial of a lock that expires
 * after ten seconds or a minute mostly waits, so each contender runs in several
 * independent elections at once, with a few processes each.
 *
 *   start ──▶ one says that it leads ── random pause ── signal ──▶ another says so
 *               ▲                                                    │ a trial
 *               └──────────── the victim is replaced ◀───────────────┘
 *
 * A contender is a shell command that takes part as ID in the election KEY,
 * both in its environment, and prints a line when it leads. The time counts
 * when that line arrives here.
 */
#ifndef BENCH_STORES_PARALLEL_H
#define BENCH_STORES_PARALLEL_H

#include "bench/props/rig.h"

#define PARALLEL_CONTENDERS_MAX 12
#define PARALLEL_TRIAL_MEMBERS 3

struct parallel_contender {
    const char *command; /* borrowed */
    const char *store;   /* STORE of its environment, borrowed; NULL: none */
};

struct parallel_plan {
    struct parallel_contender contenders[PARALLEL_CONTENDERS_MAX];
    size_t contender_count;
    size_t parallel;       /* of each contender */
    size_t trials;         /* of each contender, over all of its parallel */
    int signal;            /* SIGKILL or SIGSTOP, to the process that leads */
    gavel_ns settle_least; /* pause before the signal: at least, */
    gavel_ns settle_most;  /* and at most */
    gavel_ns limit;        /* a trial that takes longer has failed */
    const char *program;   /* PROGRAM of the environment: this one */
};

/*
 * A member_run(); user is the plan. Leaves one MARK_RESULT for each trial, with
 * the contender's place as epoch and nanoseconds as value; one with the value
 * PARALLEL_FAILED if a trial took too long or a process ended by itself.
 */
#define PARALLEL_FAILED (-1)
int parallel_run(const struct member_context *context, void *user);

/* Where what the contenders say on stderr goes, all in one file. */
void parallel_log(const struct rig *rig, char ret_path[RIG_DIRECTORY_MAX + 32]);

#endif
