/* SPDX-License-Identifier: Apache-2.0 */

/* The stage of the cluster's stories: nodes, one clock, a network, disks, and commands that move them. */
#ifndef TRACE_CLUSTER_H
#define TRACE_CLUSTER_H

#include <stdio.h>

struct cluster;

/* Prints what happens to `out`. */
struct cluster *cluster_new(FILE *out);
void cluster_free(struct cluster *cluster);

/*
 * Carries out one command of a script; a command that cannot be understood
 * prints an error, and thereby fails the story.
 */
void cluster_command(struct cluster *cluster, const char *command);

#endif
