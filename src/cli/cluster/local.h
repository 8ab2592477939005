/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cluster of gaveld on loopback, for `gavel cluster demo`, the benchmark and
 * tests: nodes n1, n2, … in a temporary directory, on free ports, bootstrapped
 * together.
 *
 *     directory/n1.yaml   what the node is told
 *     directory/n1.log    what it says
 *     directory/n1/       its data
 *
 * The process started for a node is its guard, a child of ours. It dies when we
 * do, however that happens, and its node with it. Nothing is restarted here: a
 * guard restarts its node process, but nothing restarts a guard except
 * local_cluster_start_node().
 *
 * For one thread only: a guard dies with the thread that started it.
 */
#ifndef CLI_CLUSTER_LOCAL_H
#define CLI_CLUSTER_LOCAL_H

#include "os/clock.h"

#include <gavel/status.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LOCAL_NODES_MAX 9
#define LOCAL_DIRECTORY_MAX 512
#define LOCAL_URLS_MAX (LOCAL_NODES_MAX * 24)

/* Zeroed, it means the defaults. Everything is borrowed for the duration of the call. */
struct local_options {
    const char *gaveld;    /* the program; NULL: found by local_cluster_program() */
    const char *cluster;   /* its name; NULL: "local" */
    const char *base;      /* where the temporary directory is made; NULL: TMPDIR, or /tmp */
    const char *extra;     /* more YAML for every node, whole lines; NULL: none */
    const char *log_level; /* NULL: info */
    bool serves_clients;   /* programs can take part in elections, over TCP and a Unix socket */
};

struct local_node {
    char name[8];
    pid_t guard;          /* 0: not running */
    int pidfd;            /* of the guard; readable when it has ended. -1: not running */
    uint16_t port;        /* for peers */
    uint16_t api_port;    /* for HTTP */
    uint16_t client_port; /* for clients; 0: not served */
    char url[32];         /* http://127.0.0.1:… */
    char directory[LOCAL_DIRECTORY_MAX + 16];
    char log[LOCAL_DIRECTORY_MAX + 16];
    char config[LOCAL_DIRECTORY_MAX + 16];
    char socket[LOCAL_DIRECTORY_MAX + 16]; /* for clients; "": not served */
};

struct local_cluster {
    char gaveld[PATH_MAX];
    char name[64];
    char directory[LOCAL_DIRECTORY_MAX];
    size_t count;
    struct local_node nodes[LOCAL_NODES_MAX];
    /* Sockets that are bound to the ports and do not listen: nobody else is given the port of a node that is
     * down. */
    int reserved[3 * LOCAL_NODES_MAX];
    size_t reserved_count;
};

/*
 * Where gaveld is: beside this program, where the build puts it, or in PATH.
 * ERR_NOT_FOUND; *error says what to do.
 */
GAVEL_CHECKED enum gavel_status local_cluster_program(char ret_path[static PATH_MAX],
                                                      struct gavel_error *error);

/*
 * Makes the directory and starts the nodes; returns at once, when nobody leads
 * yet. After a failure nothing is left of it.
 */
GAVEL_CHECKED enum gavel_status local_cluster_start(size_t count, const struct local_options *options,
                                                    struct local_cluster *ret_cluster,
                                                    struct gavel_error *error);

/* The node at that position, from 0; asserted to exist. */
const struct local_node *local_cluster_node(const struct local_cluster *cluster, size_t position);

/* "http://127.0.0.1:…,…": what --cluster and GAVEL_CLUSTER take. Returns buffer. */
const char *local_cluster_urls(const struct local_cluster *cluster, char buffer[static LOCAL_URLS_MAX]);

/* Starts the guard of a node that has ended or was ended, with the directory as it is. ERR_STATE: it runs. */
GAVEL_CHECKED enum gavel_status local_cluster_start_node(struct local_cluster *cluster, size_t position,
                                                         struct gavel_error *error);

/* Sends a signal to the guard. SIGTERM is passed on to its node; SIGKILL kills both. ERR_STATE: not
 * running. */
GAVEL_CHECKED enum gavel_status local_cluster_signal(const struct local_cluster *cluster, size_t position,
                                                     int number);

/*
 * Waits until a guard has ended and reaps it; *ret_status (may be NULL) is as
 * from waitpid(2). ERR_TIMEOUT, ERR_STATE.
 */
GAVEL_CHECKED enum gavel_status local_cluster_await_end(struct local_cluster *cluster, size_t position,
                                                        gavel_ns until, int *ret_status);

/* SIGTERM for all, SIGKILL for those that are still there after a few seconds, and the directory is removed.
 * Safe on a zeroed one. */
void local_cluster_stop(struct local_cluster *cluster);

#endif
