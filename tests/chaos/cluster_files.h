/* SPDX-License-Identifier: Apache-2.0 */

/* Certificates and configurations of a cluster, as an operator makes them. */
#ifndef CHAOS_CLUSTER_FILES_H
#define CHAOS_CLUSTER_FILES_H

#include "cluster.h"

/* Where the HTTP API of a node listens, on loopback of its namespace. */
#define CLUSTER_API_PORT(node) (7501 + (node))

/* Ends the test if that fails. */
void cluster_write_files(struct cluster *cluster);

#endif
