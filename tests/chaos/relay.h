/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The APIs of all nodes on the loopback of the test, whatever happens to their
 * links: for `gavel check`, which asks all of them at once.
 */
#ifndef CHAOS_RELAY_H
#define CHAOS_RELAY_H

#include "cluster.h"

/* Runs `gavel check` on all nodes of the cluster. Its exit code, or -1; what it printed is in the buffer. */
int relay_check(const struct cluster *cluster, char *buffer, size_t size);

#endif
