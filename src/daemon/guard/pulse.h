/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pulse of the node, by which its guard notices that it hangs. The consensus
 * thread writes the instant of each tick into the page. (A node that has died is
 * noticed by wait(2).)
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
#include "daemon/shared/node_page.h"
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

/* Whether the node has ticked within the last second, or has not ticked yet. */
bool pulse_is_fresh(const struct node_page *page, gavel_ns now);

/* Looks if it is due. True if the node hangs, and again after the same time if it still does. */
bool pulse_look(struct pulse *pulse, const struct node_page *page, struct tree *tree, pid_t pid,
                gavel_ns now);

#endif
