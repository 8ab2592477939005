/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process with many groups would wake up for each of them. Above GRID_ABOVE
 * groups, routine work (the next renewal, heartbeat or listing) is postponed to
 * a coarse grid, so that tasks due at about the same time share a wake-up and a
 * transaction. The delay is at most a tenth of a heartbeat, and never goes past
 * the end of the mandate or the instant of a claim.
 */
#ifndef LIB_LOOP_GRID_H
#define LIB_LOOP_GRID_H

#include "core/candidate/candidate.h"

/* Groups that a process may have before its wake-ups are combined. */
#define GRID_ABOVE 50

/* When to feed the machine its next tick, in a process with `groups` groups; NEVER if none is wanted. */
gavel_ns grid_wake_at(const struct candidate *machine, size_t groups);

#endif
