/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pulse of the node, as its guard feels it: the consensus thread writes
 * the instant of each tick into shared memory. A node that has died is noticed
 * by wait(2); this is for one that hangs.
 *
 * For a service manager, the node is alive if it has ticked within the last second.
 * The guard kills it only if many looks in a row, some time apart, find no new
 * tick. So after the machine was suspended, or the guard itself was stopped, only
 * one look finds none. A node that was stopped by a signal or a debugger does not
 * hang.
 *
 * Pure, except for pulse_look(), which asks /proc.
 */
#ifndef DAEMON_GUARD_PULSE_H
#define DAEMON_GUARD_PULSE_H

#include "base/time.h"
#include "daemon/shared/shared_memory.h"
#include "guard/tree.h"

#include <stdbool.h>

struct pulse {
    gavel_ns every;   /* between two looks */
    gavel_ns look_at; /* the next one */
    gavel_ns felt;    /* the newest tick at the last look */
    int silent;       /* looks in a row without a newer one */
};

/* A node starts; without a tick for `limit`, it hangs. */
void pulse_begin(struct pulse *pulse, gavel_ns limit, gavel_ns now);

/* Whether the node has ticked within the last second, or has not begun to. */
bool pulse_is_fresh(const struct shared_memory *memory, gavel_ns now);

/* Looks if it is time to; true if the node hangs, and again if it still does after as long. */
bool pulse_look(struct pulse *pulse, const struct shared_memory *memory, struct tree *tree, pid_t pid,
                gavel_ns now);

#endif
