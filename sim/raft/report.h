/* SPDX-License-Identifier: Apache-2.0 */

/* Telling people about a failure: the seed, the commit, the one command that replays it, and a short story.
 */
#ifndef SIM_RAFT_REPORT_H
#define SIM_RAFT_REPORT_H

#include "sim/raft/run.h"

/* Runs the failing options once more with a story and prints all of it on stdout. */
void quorum_report_failure(struct quorum *quorum, const struct run_options *options);

/*
 * Switches off one kind of fault after the other, takes nodes away and
 * shortens the run, as long as the same invariant still breaks; *options is
 * then the smallest run found. False if the options do not fail at all.
 */
bool quorum_report_minimize(struct quorum *quorum, struct run_options *options);

#endif
