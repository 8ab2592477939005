/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Single-instance mode (enabled = false): no election and no store. The
 * candidate leads with epoch 0 from joining to leaving, so that a program runs
 * the same code with and without an election. Loop only.
 */
#ifndef LIB_SINGLE_H
#define LIB_SINGLE_H

struct gavel_candidate;

void single_start(struct gavel_candidate *candidate);
void single_stop(struct gavel_candidate *candidate);

#endif
