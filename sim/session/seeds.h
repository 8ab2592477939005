/* SPDX-License-Identifier: Apache-2.0 */

/* Many runs of the hall: shared out to processes, counted, and how fast they are. */
#ifndef SIM_SESSION_SEEDS_H
#define SIM_SESSION_SEEDS_H

#include "sim/session/run.h"

/* Returns how many failed; wants_all: one more if something was never seen. */
uint64_t hall_seeds_run(const struct hall_options *options, uint64_t count, unsigned jobs, bool wants_all);
void hall_seeds_bench(const struct hall_options *options, gavel_ns length);

#endif
