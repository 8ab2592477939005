/* SPDX-License-Identifier: Apache-2.0 */

/* The stage of the quorum's stories: nodes, one clock, a network, disks, and commands that move them. */
#ifndef TRACE_QUORUM_H
#define TRACE_QUORUM_H

#include <stdio.h>

struct quorum;

/* Prints what happens to `out`. */
struct quorum *quorum_new(FILE *out);
void quorum_free(struct quorum *quorum);

/* Carries out one command of a script; a command that cannot be understood prints so, and thereby fails the
 * story. */
void quorum_command(struct quorum *quorum, const char *command);

#endif
