/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What goes wrong, and when. The network injects faults of single messages;
 * this file has those that last: outages, cuts, pauses, crashes, steps of the
 * store's clock, false doorbells, twins, and operators who give random
 * commands. Then comes the quiet phase, in which all of it ends and a leader
 * has to appear.
 */
#ifndef SIM_CANDIDATE_FAULTS_H
#define SIM_CANDIDATE_FAULTS_H

struct world;

/* Plans the first fault, and the end of all faults. */
void faults_begin(struct world *world);

/* A FAULT event: one thing goes wrong, and the next is planned. */
void faults_take(struct world *world);

/* The QUIET event. */
void faults_end(struct world *world);

#endif
