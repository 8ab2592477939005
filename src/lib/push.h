/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Push: a store that reports changes. To the candidates of a group this is like
 * a ring of the doorbell, "look now", and likewise only a hint: they look from
 * time to time in any case. A store with sessions shows by itself all groups
 * that its session takes part in: session.h.
 */
#ifndef LIB_PUSH_H
#define LIB_PUSH_H

#include <gavel/status.h>

struct gavel;
struct gavel_candidate;

/* Adds the store's descriptor to the loop if it has one. ERR_IO. */
GAVEL_CHECKED enum gavel_status push_open(struct gavel *gavel);

/*
 * Starts or stops telling this candidate of changes of its group. Each may be
 * called repeatedly. Loop only.
 */
void push_join(struct gavel_candidate *candidate);
void push_leave(struct gavel_candidate *candidate);

#endif
