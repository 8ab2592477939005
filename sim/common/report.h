/* SPDX-License-Identifier: Apache-2.0 */

/* Reports runs to people: in one line, or as a failure that can be analysed. */
#ifndef SIM_COMMON_REPORT_H
#define SIM_COMMON_REPORT_H

#include "sim/common/simulator.h"

/* ", 12 elections, 3 claims, …" */
void report_counts(const struct simulator *simulator, const uint64_t counts[COUNTS_MAX]);

/* A run that broke nothing. */
void report_success(const struct simulator *simulator, const struct run_options *options,
                    const struct run_result *result);

/* Runs the seed again; prints what it breaks, the commands that replay and shorten it, and the end of its
 * story. */
void report_failure(const struct simulator *simulator, void *memory, const struct run_options *options);

/*
 * Switches off one kind of fault after the other, makes every size smaller and
 * shortens the run, as long as the same invariant breaks; *options is then the
 * smallest run found. False if the options break nothing.
 */
bool report_minimize(const struct simulator *simulator, void *memory, struct run_options *options);

#endif
