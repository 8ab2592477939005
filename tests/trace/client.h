/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Programs that are clients of the cluster on the stage: P, Q, … have sessions
 * and mandates, and ask the node that they are connected to. What they ask goes
 * into node_step() as NODE_CLIENT; what nodes forward to each other travels on
 * the links of the stage.
 */
#ifndef TRACE_CLIENT_H
#define TRACE_CLIENT_H

#include "trace/host.h"

#define PROGRAMS_MAX 26
#define ASKED_MAX 16
#define GROUP_WATCHES_MAX 8

/* What the answer to a question is about; by the tag of the question. */
struct asked {
    enum asked_kind {
        ASKED_SESSION,
        ASKED_ALIVE,
        ASKED_CANDIDATE,
        ASKED_RESIGN,
        ASKED_NOTE,
        ASKED_CLOSE,
        ASKED_LEADER
    } kind;
    bool is_silent; /* one of many keep-alives: told only if it went wrong */
    gavel_ns at;
    char what[64]; /* the group, or group/key */
};

struct program {
    char name; /* 'A' … 'Z'; 0: there is none */
    raft_id node;
    uint64_t session;
    gavel_ns ttl;
    uint64_t request;
    uint64_t tag;
    struct asked asked[ASKED_MAX]; /* by tag */
    gavel_ns alive_every;          /* 0: only when the story says so */
    gavel_ns alive_at;
};

/* Between nodes, on its way. */
struct parcel {
    gavel_ns at;
    uint64_t order;
    raft_id from;
    raft_id to;
    struct node_forwarded forwarded; /* bytes owned */
};

/* Who leads a group, as the table of a node says. */
struct group_watch {
    raft_id node; /* 0: none */
    char group[32];
    bool is_held;
    uint64_t epoch;
};

struct clients {
    struct program programs[PROGRAMS_MAX];
    struct group_watch watches[GROUP_WATCHES_MAX];
    struct parcel *parcels;
    size_t parcel_count;
};

/* client.c: the commands. */
bool command_session(struct cluster *cluster, char **words, size_t count);
bool command_alive(struct cluster *cluster, char **words, size_t count);
bool command_candidate(struct cluster *cluster, char **words, size_t count);
bool command_resign(struct cluster *cluster, char **words, size_t count);
bool command_note(struct cluster *cluster, char **words, size_t count);
bool command_close(struct cluster *cluster, char **words, size_t count);
bool command_leader(struct cluster *cluster, char **words, size_t count);
bool command_watch_group(struct cluster *cluster, char **words, size_t count);
void program_stay_alive(struct cluster *cluster, struct program *program);

/* answer.c: what comes back. */
void clients_answer(struct cluster *cluster, uint64_t client, const Gavel__ClientFrame *frame);
/* The table of a node may have changed: tells those who watch it. */
void clients_look(struct cluster *cluster, const struct host *host);

/* forward.c: what nodes forward to each other, and when something of the clients is due. All of it is
 * harmless in a story without clients. */
struct clients *clients_of(struct cluster *cluster); /* made when first asked for */
void clients_forward(struct cluster *cluster, raft_id from, const struct node_forwarded *forwarded);
gavel_ns clients_due_at(const struct cluster *cluster);
void clients_do_due(struct cluster *cluster);
void clients_free(struct cluster *cluster);

#endif
