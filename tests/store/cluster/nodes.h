/* SPDX-License-Identifier: Apache-2.0 */

/* Real clusters for the tests: three gaveld on loopback, in a directory of their own. */
#ifndef TESTS_STORE_CLUSTER_NODES_H
#define TESTS_STORE_CLUSTER_NODES_H

#include <stddef.h>
#include <sys/types.h>

#define TEST_NODES 3

struct test_cluster {
    char directory[100];
    char url[400];          /* gavel://…, a socket of this host and TCP */
    pid_t pids[TEST_NODES]; /* of the guards; 0: ended */
    int lock_fd;            /* of its ports; -1: none */
};

/* Starts one and does not wait for it; the test fails if that is not possible. GAVELD names the program. */
void test_cluster_start(struct test_cluster *cluster);

/* Kills a node with its guard, and waits until the guard is gone. */
void test_cluster_kill(struct test_cluster *cluster, int node);

/* Starts a node that was killed, and does not wait for it. */
void test_cluster_restart(struct test_cluster *cluster, int node);

/* Stops a node and its guard where they are, and lets them go on. */
void test_cluster_freeze(struct test_cluster *cluster, int node);
void test_cluster_thaw(struct test_cluster *cluster, int node);

/* Kills all that runs, and removes the directory. Safe on a zeroed struct. */
void test_cluster_stop(struct test_cluster *cluster);

#endif
