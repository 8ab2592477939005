/* SPDX-License-Identifier: Apache-2.0 */

/* Real clusters for the tests: three gaveld on loopback, in a directory of their own. */
#ifndef TESTS_STORE_CLUSTER_NODES_H
#define TESTS_STORE_CLUSTER_NODES_H

#include <stddef.h>
#include <sys/types.h>

#define TEST_NODES 3
#define TEST_CLUSTER_API 10 /* from first_port on: where nodes are asked by HTTP */

struct test_cluster {
    char directory[100];
    char url[400];          /* gavel://…, a socket of this host and TCP */
    pid_t pids[TEST_NODES]; /* of the guards; 0: ended */
    int first_port;
    int lock_fd; /* of its ports; -1: none */
};

/* Starts one and does not wait for it; the test fails if that is not possible. GAVELD names the program. */
void test_cluster_start(struct test_cluster *cluster);

/* Kills a node with its guard, and waits until both are gone. */
void test_cluster_kill(struct test_cluster *cluster, int node);

/* Starts a node that was killed, and does not wait for it. */
void test_cluster_restart(struct test_cluster *cluster, int node);

/* Stops a node and its guard where they are, and lets them go on. */
void test_cluster_freeze(struct test_cluster *cluster, int node);
void test_cluster_thaw(struct test_cluster *cluster, int node);

/* The processes that the guard of a node has started; the count. */
size_t test_cluster_processes(const struct test_cluster *cluster, int node, pid_t *ret_pids, size_t most);

/* ---- nodes_ask.c ---- */

/*
 * The HTTP code of a request to the API of a node, 0 without an answer; *ret_body has the answer's first
 * bytes as text. The body may be NULL.
 */
int test_cluster_ask(const struct test_cluster *cluster, int node, const char *method, const char *path,
                     const char *body, size_t body_size, char *ret_body, size_t room);

/* Waits until one of the nodes that run says that it leads the cluster. */
int test_cluster_leader(const struct test_cluster *cluster);

/* What the processes of a node take of the memory. */
size_t test_cluster_mib(const struct test_cluster *cluster, int node);

/* Kills all that runs, and removes the directory. Safe on a zeroed struct. */
void test_cluster_stop(struct test_cluster *cluster);

#endif
