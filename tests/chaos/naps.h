/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether the machine itself slept: on each processor a process that wants to
 * run every two milliseconds, ahead of everything else where that is permitted,
 * and records when it could not. A virtual machine that was stopped for a second
 * is not the nodes' fault, nor is one whose host stopped a single processor, with
 * the nodes that were on it. A node that keeps others from running is at fault
 * and not excused: the watchers run ahead of it.
 */
#ifndef CHAOS_NAPS_H
#define CHAOS_NAPS_H

#include <sys/types.h>

#define NAPS_PROCESSORS_MAX 64 /* those beyond are not watched */

struct naps {
    size_t count;
    pid_t pids[NAPS_PROCESSORS_MAX];
    struct naps_shared *shared; /* with them */
};

/* Writes a deed `msg=slept processor= at_ns= until_ns=` for each nap to that file. */
void naps_start(struct naps *naps, const char *path);
void naps_stop(struct naps *naps);

/* How many there were so far. */
int naps_count(const struct naps *naps);

#endif
