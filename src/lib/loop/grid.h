/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process with many groups would wake up for each of them. Beyond so many,
 * what merely comes round (the next renewal, heartbeat or listing) is put off
 * to a coarse grid, so that those due at about the same time share a wake-up
 * and a transaction. It is put off by a tenth of a heartbeat at most, and
 * never past the end of the mandate or the instant of a claim.
 */
#ifndef LIB_LOOP_GRID_H
#define LIB_LOOP_GRID_H

#include "core/candidate/candidate.h"

/* Groups that a process may have before its wake-ups are put together. */
#define GRID_ABOVE 50

/* When to feed the machine its next tick, in a process with so many groups; NEVER if none is wanted. */
gavel_ns grid_wake_at(const struct candidate *machine, size_t groups);

#endif
