/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A member of a rig that takes part in the election with libgavel, as any
 * program would, and records what happens to it.
 */
#ifndef BENCH_PROPS_PARTICIPANT_H
#define BENCH_PROPS_PARTICIPANT_H

#include "bench/props/rig.h"

/* A member_run(); user is the URL of the store, or NULL: that of the rig. */
int participant_run(const struct member_context *context, void *user);

#endif
