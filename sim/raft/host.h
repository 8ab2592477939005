/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A host: a process with the real core and the real table, its disk, its
 * clock, its work and its guard. It can be frozen, delayed, killed anywhere
 * between two of its actions, and started again.
 *
 * The guard notices that the process is dead and tells the others a moment
 * later. While the process is only frozen, the guard says nothing, but its
 * watchdog ends the work of a leader that overruns its deadline.
 */
#ifndef SIM_RAFT_HOST_H
#define SIM_RAFT_HOST_H

#include "core/node/build.h"
#include "sim/common/clock.h"
#include "sim/raft/disk.h"
#include "sim/raft/operator.h"

struct cluster;
struct ghost;
struct event;
struct message;

enum host_state {
    HOST_UNUSED,
    HOST_DOWN,
    HOST_UP,
    HOST_DAMAGED, /* its disk can no longer be trusted: it never comes back */
};

/* What a client waits for. */
struct host_proposal {
    raft_index index;
    raft_term term;
};
#define PROPOSALS_MAX 1024

/*
 * What a node has known about the directory of another, and must not forget
 * once it has written anything since.
 */
struct ghost_known {
    struct raft_met now;  /* at last */
    struct raft_met sure; /* what was known before a write that is durable by now */
    uint64_t seq;         /* of that write; 0: there was none yet */
};

/* Whether a node does the work of a leader, and until when. */
struct host_work {
    uint64_t number;
    bool runs;
    bool is_stopping; /* it was told to stop */
    bool is_owed;     /* and its node does not know yet that it has stopped */
    raft_term term;
    uint64_t lease_epoch;
    gavel_ns deadline; /* on the clock of the node */
};

struct host {
    unsigned slot;
    raft_id id;
    char label[4];
    enum host_state state;
    bool stays_down;      /* it is not started again before the liveness phase */
    uint64_t life;        /* counts starts and ends: events for another one are void */
    struct node node;     /* while it is up */
    struct table table;   /* likewise, its */
    struct table decoded; /* of a snapshot that it is given, or what that has replaced */
    struct disk disk;
    struct disk copy; /* an older state of the disk, hot or cold; its incarnation is 0 if there is none */
    bool keeps_copy;  /* it is the one that will be put back (revenant.c) */
    struct ghost_known known[RAFT_MEMBERS_MAX]; /* of the directories of others, by their slots */
    /*
     * Runs in the name of a damaged node (ghost.h), or of one that is down and
     * was founded again; NULL: none
     */
    struct ghost *ghost;
    unsigned foundings; /* how often an empty directory was founded again in its name */
    struct clock clock;
    gavel_ns frozen_until; /* 0: it runs; NEVER: for good */
    bool loses_inbox;
    uint64_t freezes;
    gavel_ns stalled_until; /* its event loop is late */
    gavel_ns timer_at;      /* of the newest TIMER event; NEVER if there is none */
    uint64_t timer;
    gavel_ns armed_for; /* the instant that the core asked for, on its clock */
    gavel_ns woken_at;  /* the last instant, and how often at that instant */
    unsigned wakes;
    int fuse;               /* above 0: it dies after so many actions */
    uint64_t declared_dead; /* the incarnation that a forged obituary is about */
    bool is_failed;         /* its disk failed */
    struct host_work work;
    struct host_operator operator;
    uint32_t program;        /* which version of the table it knows; 0: it has never run (program.h) */
    uint32_t newest_program; /* that it has ever run */
    struct host_proposal proposals[PROPOSALS_MAX]; /* a ring */
    size_t proposal_first;
    size_t proposal_count;
    raft_index machine_index; /* of the newest entry that the table has */
    raft_index compacted;     /* up to here a snapshot is built, or was begun */
    struct node_build *build; /* a snapshot that is being built; NULL: none */
    bool is_collected;        /* and has all its entries: the rest happens beside the node */
};

static inline bool host_is_up(const struct host *host) { return host->state == HOST_UP; }
bool host_is_frozen(const struct cluster *cluster, const struct host *host);

/* Its own time. */
gavel_ns host_clock(const struct cluster *cluster, const struct host *host);

/* A slot comes into use: a member of the first configuration, or one that joins (NULL). It is down. */
void host_create(struct cluster *cluster, struct host *host, const struct raft_config *first);
void host_clear(struct cluster *cluster, struct host *host);
void host_done(struct host *host);

/* The process starts with the next incarnation and what its disk has. Harmless if it is up. */
void host_start(struct cluster *cluster, struct host *host);

/* The process dies; whether its guard tells the others is drawn if `has_guard`. `why` is for the story. */
void host_die(struct cluster *cluster, struct host *host, bool has_guard, const char *why);

/* SIGSTOP, SIGCONT. On a suspended machine the disk stops, too, and what is sent to it is lost. */
void host_freeze(struct cluster *cluster, struct host *host, gavel_ns until, bool is_suspended);
void host_resume(struct cluster *cluster, struct host *host);

/*
 * Sets its timer for when the core wants to be woken. The event may come early,
 * never late: most requests only postpone it.
 */
void host_arm(struct cluster *cluster, struct host *host);

/* step.c: an event with all that follows from it, and what Raft said to it. The node may be dead
 * afterwards. */
enum gavel_status host_feed(struct cluster *cluster, struct host *host, struct node_event event);
/* The same for an event of Raft. */
enum gavel_status host_step(struct cluster *cluster, struct host *host, const struct raft_event *event);
/* An event for the node. */
void host_take(struct cluster *cluster, const struct event *event);

/*
 * Any two rates differ by less than the bound: each deviates from 1 by at most
 * half of it. Not in runs whose rates break it.
 */
int64_t host_draw_rate(struct cluster *cluster);

/* The rate of the clock changes; what it shows does not. */
void host_set_rate(struct cluster *cluster, struct host *host, int64_t rate_ppb);

/* guard.c */
void guard_sign(const struct cluster *cluster, struct raft_certificate *certificate);
/* The process of the node has died: obituaries are on their way. */
void guard_write_obituary(struct cluster *cluster, struct host *host);
void guard_take(struct cluster *cluster, const struct event *event);
/* Sends this certificate to all nodes, from no node. */
void guard_spread(struct cluster *cluster, const struct raft_certificate *certificate, bool is_false);
/* The settings' callbacks. */
bool guard_verify_cb(void *context, const struct raft_certificate *certificate);
void guard_sign_cb(void *context, struct raft_certificate *certificate);

/* work.c */
void host_work_claim(struct cluster *cluster, struct host *host, raft_term term, uint64_t lease_epoch);
void host_work_stop(struct cluster *cluster, struct host *host);
void host_work_end(struct cluster *cluster, struct host *host);
/* A WATCHDOG event; also while the node is frozen. */
void host_work_watch(struct cluster *cluster, const struct event *event);
void host_work_take(struct cluster *cluster, const struct event *event);
void host_work_write(struct cluster *cluster, const struct event *event);

/* machine.c: the state machine of a node and its clients. */
void machine_restored(struct cluster *cluster, struct host *host);
void machine_applied(struct cluster *cluster, struct host *host, const struct node_action *action);
/* Begins a snapshot if one is due, or goes on collecting its entries. */
void machine_build(struct cluster *cluster, struct host *host);
void machine_built(struct cluster *cluster, struct host *host);
void machine_clear(struct host *host);
/* PROPOSE events. */
void client_begin(struct cluster *cluster);
void client_take(struct cluster *cluster, const struct event *event);
/* Proposes `count` commands of `bytes` bytes at a node. */
enum gavel_status client_propose(struct cluster *cluster, struct host *host, unsigned count, unsigned bytes);

#endif
