/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Push: a store that tells of changes. To the candidates of a group it is the
 * same as a ring of the doorbell, "look now", and like it only a hint: they
 * look by themselves from time to time in any case.
 */
#ifndef LIB_PUSH_H
#define LIB_PUSH_H

#include <gavel/status.h>

struct gavel;
struct gavel_candidate;

/* Adds the store's descriptor to the loop if it has one. ERR_IO. */
GAVEL_CHECKED enum gavel_status push_open(struct gavel *gavel);

/* From now on this candidate is told of its group, or no more. Each may be called again. Loop only. */
void push_join(struct gavel_candidate *candidate);
void push_leave(struct gavel_candidate *candidate);

#endif
