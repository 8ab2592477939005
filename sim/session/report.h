/* SPDX-License-Identifier: Apache-2.0 */

/* A failure in words that somebody can work with, and the search for a shorter one. */
#ifndef SIM_SESSION_REPORT_H
#define SIM_SESSION_REPORT_H

#include "sim/session/run.h"

/* Runs the seed again and tells what is broken, how to replay it, and the end of its story. */
void hall_report_failure(struct hall *hall, const struct hall_options *options);

/* Takes faults, programs and time away while the same is broken; false: nothing is. */
bool hall_report_minimize(struct hall *hall, struct hall_options *options);

#endif
