/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The nodes of a test: real gaveld processes in the namespaces of a network,
 * with TLS between them, and whatever is done to them. Each deed that the
 * referee has to know of is written down when it is done.
 *
 * Nodes are numbered from 0 and named n1, n2, …; sets of them are bits.
 */
#ifndef CHAOS_CREW_H
#define CHAOS_CREW_H

#include "ask.h"
#include "naps.h"
#include "net.h"

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#define CREW_MAX NET_NODES_MAX

struct crew_member {
    char name[16];
    pid_t guard; /* the process that was started; 0: none */
    int log;     /* its standard error, appended to over all its lives */
    bool is_paused;
    bool is_founder; /* begins with the others; otherwise it joins */
};

struct crew {
    struct net net;
    int count;
    int founders;
    char gaveld[PATH_MAX];
    char gavel[PATH_MAX];
    char beat[PATH_MAX]; /* what leader_commands runs on the leader; "": nothing */
    char folder[PATH_MAX];
    int witness; /* it votes, and must never lead; -1: none */
    FILE *deeds;
    struct crew_member members[CREW_MAX];
    bool is_verbose;
    struct naps naps;
};

/* What a node says of itself. */
struct crew_status {
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
 * A network of `count` nodes of which `founders` begin the cluster, their folders, certificates and
 * configurations; nothing runs yet. False, and a reason, if namespaces cannot be made here.
 */
bool crew_make(struct crew *crew, int count, int founders, const char *gavel, const char *gaveld,
               const char *beat /* may be NULL */, char *why, size_t size);

/* Makes one of the founders a witness; before anything is started. */
void crew_set_witness(struct crew *crew, int node);

/* Kills whatever still runs and removes the folder, unless it is to be kept. */
void crew_done(struct crew *crew, bool is_kept);

/* Starts the guard of a node; a founder bootstraps, another joins. */
void crew_start(struct crew *crew, int node);

/* The node process below the guard; 0 if there is none at the moment. */
pid_t crew_node_pid(const struct crew *crew, int node);

/* SIGKILL for the node process only: the guard sends its obituary and starts it again. */
void crew_kill_node(struct crew *crew, int node);
/* … for the guard, and with it the node: silence. Returns when both are dead. */
void crew_kill_both(struct crew *crew, int node);
/* SIGSTOP and SIGCONT for the node process. */
void crew_pause(struct crew *crew, int node);
void crew_resume(struct crew *crew, int node);
/* SIGTERM; then its exit code, or -1 if it does not end in time. */
int crew_stop(struct crew *crew, int node, int limit_ms);
/* Whether a guard that we did not stop has ended; then the exit code, as of waitpid(). */
bool crew_has_ended(struct crew *crew, int node, int *ret_status);

/* Asks a node for its status, and writes it down for the referee. False if it does not answer. */
bool crew_look(struct crew *crew, int node, struct crew_status *ret_status);

/* Any other question. */
int crew_ask(struct crew *crew, int node, const char *method, const char *path, const char *body,
             int limit_ms, json_t **ret_json);

/* The node of that set that says it has a lease, or -1. */
int crew_leader(struct crew *crew, unsigned nodes);

/* Until one of the nodes has a lease, or none of them; -1 or false after the limit. */
int crew_await_leader(struct crew *crew, unsigned nodes, int limit_ms);
bool crew_await_nobody(struct crew *crew, unsigned nodes, int limit_ms);
/* Until every node of the set follows one leader of that set, has applied what it committed, and holds the
 * same table. */
bool crew_await_agreement(struct crew *crew, unsigned nodes, int limit_ms);

/* The set of nodes whose process runs and is not paused. */
unsigned crew_alive(const struct crew *crew);

/* A line for people in the deeds, and on the terminal if it is verbose. */
__attribute__((format(printf, 2, 3))) void crew_tell(struct crew *crew, const char *format, ...);

/* The referee over all logs: prints, and is true if there is no contradiction and there were so many
 * claims. */
bool crew_referee(struct crew *crew, size_t claims_min);

/* Whether no log tells of a failed assertion, a sanitizer, or a node that died of itself; prints what
 * does. */
bool crew_is_sane(const struct crew *crew);

#endif
