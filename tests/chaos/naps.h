/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether the machine itself slept: a process that wants to run every two
 * milliseconds, ahead of everything else where that is permitted, and records
 * when it could not. A virtual machine that was stopped for a second is not the
 * nodes' fault. A node that keeps others from running is at fault and not
 * excused: the watcher runs ahead of it.
 */
#ifndef CHAOS_NAPS_H
#define CHAOS_NAPS_H

#include <sys/types.h>

struct naps {
    pid_t pid;
    struct naps_shared *shared; /* with it */
};

/* Writes a deed `msg=slept at_ns= until_ns=` for each nap to that file. */
void naps_start(struct naps *naps, const char *path);
void naps_stop(struct naps *naps);

/* How many there were so far. */
int naps_count(const struct naps *naps);

#endif
