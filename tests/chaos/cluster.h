/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The nodes of a test: real gaveld processes in the namespaces of a network,
 * with TLS between them, and what is done to them. Each deed that the referee
 * has to know is recorded when it is done.
 *
 * Nodes are numbered from 0 and named n1, n2, …; sets of them are bits.
 */
#ifndef CHAOS_CLUSTER_H
#define CHAOS_CLUSTER_H

#include "ask.h"
#include "naps.h"
#include "net.h"

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#define CLUSTER_MAX NET_NODES_MAX

struct cluster_node {
    char name[16];
    pid_t guard; /* the process that was started; 0: none */
    int log;     /* its standard error, appended to over all its lives */
    bool is_paused;
    bool is_founder; /* starts with the others; otherwise it joins */
};

struct cluster {
    struct net net;
    int count;
    int founders;
    char gaveld[PATH_MAX];
    char gavel[PATH_MAX];
    char beat[PATH_MAX]; /* what leader_commands runs on the leader; "": nothing */
    char directory[PATH_MAX];
    int witness; /* it votes, and must never lead; -1: none */
    FILE *deeds;
    struct cluster_node nodes[CLUSTER_MAX];
    bool is_verbose;
    struct naps naps;
};

/* What a node says about itself. */
struct cluster_status {
    bool is_leader;
    bool has_lease;
    bool is_changing;
    int64_t term;
    int64_t lease_epoch;
    int64_t generation;
    int64_t commit;
    int64_t applied;
    int64_t revision;
    int64_t members;
    int64_t now;
    char digest[40];
    char leader[64];
};

/*
 * A network of `count` nodes of which `founders` begin the cluster, their directories, certificates and
 * configurations; nothing runs yet. False, and a reason, if namespaces cannot be made here.
 */
bool cluster_make(struct cluster *cluster, int count, int founders, const char *gavel, const char *gaveld,
                  const char *beat /* may be NULL */, char *why, size_t size);

/* Makes one of the founders a witness; before anything is started. */
void cluster_set_witness(struct cluster *cluster, int node);

/* Kills whatever still runs and removes the directory, unless it is to be kept. */
void cluster_done(struct cluster *cluster, bool is_kept);

/* Starts the guard of a node; a founder bootstraps, another joins. */
void cluster_start(struct cluster *cluster, int node);

/* The node process below the guard; 0 if there is none at the moment. */
pid_t cluster_node_pid(const struct cluster *cluster, int node);

/* SIGKILL for the node process only: the guard sends its obituary and starts it again. */
void cluster_kill_node(struct cluster *cluster, int node);
/* SIGKILL for the guard, and with it the node: no obituary. Returns when both are dead. */
void cluster_kill_both(struct cluster *cluster, int node);
/* SIGSTOP and SIGCONT for the node process. */
void cluster_pause(struct cluster *cluster, int node);
void cluster_resume(struct cluster *cluster, int node);
/* SIGTERM; then its exit code, or -1 if it does not end in time. */
int cluster_stop(struct cluster *cluster, int node, int limit_ms);
/* Whether a guard that we did not stop has ended; then the exit code, as of waitpid(). */
bool cluster_has_ended(struct cluster *cluster, int node, int *ret_status);

/* Asks a node for its status, and records it for the referee. False if it does not answer. */
bool cluster_look(struct cluster *cluster, int node, struct cluster_status *ret_status);

/* Any other request. */
int cluster_ask(struct cluster *cluster, int node, const char *method, const char *path, const char *body,
                int limit_ms, json_t **ret_json);

/* The node of that set that says it has a lease, or -1. */
int cluster_leader(struct cluster *cluster, unsigned nodes);

/* Waits until one of the nodes has a lease, or none of them; -1 or false after the limit. */
int cluster_await_leader(struct cluster *cluster, unsigned nodes, int limit_ms);
bool cluster_await_nobody(struct cluster *cluster, unsigned nodes, int limit_ms);
/*
 * Waits until every node of the set follows one leader of that set, has applied
 * what it committed, and holds the same table.
 */
bool cluster_await_agreement(struct cluster *cluster, unsigned nodes, int limit_ms);

/* The set of nodes whose process runs and is not paused. */
unsigned cluster_alive(const struct cluster *cluster);

/* A line for people in the deeds, and on the terminal if it is verbose. */
__attribute__((format(printf, 2, 3))) void cluster_tell(struct cluster *cluster, const char *format, ...);

/*
 * Runs the referee over all logs and prints its findings; true if there is no
 * contradiction and there were at least claims_min claims.
 */
bool cluster_referee(struct cluster *cluster, size_t claims_min);

/*
 * Whether no log reports a failed assertion, a sanitizer, or a node that died
 * by itself; prints those that do.
 */
bool cluster_is_sane(const struct cluster *cluster);

#endif
