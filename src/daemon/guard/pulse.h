/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pulse of the node, as its guard feels it: the consensus thread writes
 * the instant of each tick into the page. A node that has died is noticed by
 * wait(2); this is for one that hangs.
 *
 * For a service manager it is alive if it has ticked within the last second.
 * To be killed it has to be found without a new tick at many looks in a row,
 * with time between them: then a machine that was suspended, or a guard that
 * was stopped itself, finds no difference after one look and goes on. A node
 * that somebody has stopped, by a signal or a debugger, does not hang.
 *
 * Pure, but for pulse_look(), which asks /proc.
 */
#ifndef DAEMON_GUARD_PULSE_H
#define DAEMON_GUARD_PULSE_H

#include "base/time.h"
#include "daemon/shared/node_page.h"
#include "guard/tree.h"

#include <stdbool.h>

struct pulse {
    gavel_ns every;   /* between two looks */
    gavel_ns look_at; /* the next one */
    gavel_ns felt;    /* the tick that was the newest at the last look */
    int silent;       /* looks in a row that found no newer one */
};

/* A node starts; without a tick for so long, it hangs. */
void pulse_begin(struct pulse *pulse, gavel_ns limit, gavel_ns now);

/* Whether the node has ticked within the last second, or has not begun to. */
bool pulse_is_fresh(const struct node_page *page, gavel_ns now);

/* Looks if it is time to; true if the node hangs, and again if it still does after as long. */
bool pulse_look(struct pulse *pulse, const struct node_page *page, struct tree *tree, pid_t pid,
                gavel_ns now);

#endif
