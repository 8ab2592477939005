/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The health of a candidate, as reported by a command: exit code 0 means
 * "good". An unhealthy candidate does not claim, and a leader that turns
 * unhealthy hands over.
 *
 *     tick ─► start ──── ends in time ───► good, or one more failure
 *              │
 *              └─ takes too long ─► SIGKILL to its process group, one more failure
 *
 * The candidate is not good before the first success. After that, only
 * failures_max failures in a row turn it bad, and one success turns it good
 * again.
 *
 * For the main thread of a program that reaps its children itself. Time is
 * passed in.
 */
#ifndef CLI_RUN_HEALTH_H
#define CLI_RUN_HEALTH_H

#include "base/time.h"

#include <stdbool.h>
#include <sys/types.h>

struct health {
    const char *command; /* borrowed; NULL: always good */
    gavel_ns every;
    gavel_ns timeout;
    int failures_max;
    int failures; /* in a row */
    bool is_good;
    bool was_killed;   /* the check under way: its failure has been counted */
    pid_t pid;         /* of the check under way, and its process group; 0: none */
    gavel_ns start_at; /* when the next check is due */
    gavel_ns limit_at; /* when the check under way has taken too long */
    char reason[160];
};

/* The first check is due at once. `failures` is at least 1. The command is borrowed; NULL: always good. */
void health_init(struct health *health, const char *command, gavel_ms every, gavel_ms timeout, int failures);

/* When the next health_tick() is due; NEVER without a command. */
gavel_ns health_wake_at(const struct health *health);

/*
 * Starts the check if it is due and none is under way; kills one that takes too
 * long. A check runs under /bin/sh -c in a process group of its own, with
 * nothing to read, its output on stderr, and no signal blocked.
 */
void health_tick(struct health *health, gavel_ns now);

/* Whether that process, which has been reaped, was the check; status as from waitpid(2). */
bool health_reaped(struct health *health, pid_t pid, int status, gavel_ns now);

bool health_is_good(const struct health *health);

/*
 * Why the last check failed, such as "exit code 1", "took longer than 2 s" or
 * "killed by signal 9"; "no check has ended yet", or "" after a success.
 */
const char *health_reason(const struct health *health);

/* Kills a check under way when the program ends; it still has to be reaped. */
void health_done(struct health *health);

#endif
