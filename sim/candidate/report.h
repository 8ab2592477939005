/* SPDX-License-Identifier: Apache-2.0 */

/* Telling people about a failure: the seed, the commit, the one command that replays it, and a short story.
 */
#ifndef SIM_CANDIDATE_REPORT_H
#define SIM_CANDIDATE_REPORT_H

#include "sim/candidate/run.h"

/* Runs the failing options once more with a story and prints all of it on stdout. */
void report_failure(struct world *world, const struct run_options *options);

/*
 * Switches off one kind of fault after the other, takes candidates away and
 * shortens the run, as long as the same invariant still breaks; *options is
 * then the smallest run found. False if the options do not fail at all.
 */
bool report_minimize(struct world *world, struct run_options *options);

#endif
