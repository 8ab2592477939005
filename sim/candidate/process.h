/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process of the simulated world: a real candidate, a clock, work that acts
 * on a resource while it believes it leads, and a watchdog that aborts it when
 * work has not stopped by the deadline. It can be frozen (nothing in it runs),
 * stalled (its event loop is late, its work and its watchdog are not), and
 * killed.
 */
#ifndef SIM_CANDIDATE_PROCESS_H
#define SIM_CANDIDATE_PROCESS_H

#include "core/candidate/candidate.h"
#include "sim/common/clock.h"

#include <stdbool.h>

struct event;
struct message;
struct world;

struct process {
    unsigned slot;
    bool is_alive;
    gavel_ns died_at;     /* real time, while not alive */
    uint32_t incarnation; /* grows with each start */
    int32_t pid;
    unsigned host;
    char id[8];    /* of the candidate; a twin shares it */
    char label[8]; /* in the story */
    char address[16];
    int32_t priority;
    bool is_eligible; /* as configured or last commanded */
    struct clock clock;
    gavel_ns frozen_until; /* real time; not frozen if it has passed */
    gavel_ns stalled_until;
    gavel_ns cut_from; /* the store; answers come late before that */
    gavel_ns cut_until;
    bool is_cut_one_way; /* only answers are lost */
    gavel_ns restart_at; /* real time; NEVER if it stays dead */
    bool is_stop_asked;  /* by a command */
    bool has_finished;   /* its work is done for good, and its candidate knows */

    /* the timer of the candidate */
    gavel_ns tick_at; /* real time of the event under way; NEVER if none */
    uint64_t tick_number;
    int spins; /* ticks in a row without progress */

    /* what it has published */
    uint64_t mandate_epoch; /* 0: none */
    gavel_ns stop_at;       /* local time */
    gavel_ns deadline;      /* local time */
    gavel_ns term_ends_at;  /* local time; the deadline never moves beyond */
    gavel_ns gave_up_at;    /* real time of its first release since it began to work; 0: none */
    bool work_runs;
    uint64_t work_number;
    uint64_t fenced_epoch; /* its guard has ended the work of this epoch, and starts none for it */
    bool watchdog_waits;   /* its event is under way */

    /* the process whose death it waits for */
    bool is_watching;
    int32_t watched_pid;
    struct nonce watched;

    /* its session, if the store has them: session.c */
    struct store_session session;
    uint64_t opening; /* the number that it asks for; void once it has one */
    uint64_t keep_number;
    unsigned late_keeps;   /* keep-alives that arrived when who had sent them was dead */
    uint64_t told_version; /* the highest that was pushed, or looked for */
    uint64_t told_epoch;   /* a vacancy and the election after it may have one version */
    uint64_t told_wish;
    uint64_t shown_revision; /* of the store, the highest that its candidate was shown */
    gavel_ns written_at;     /* real time: when its newest write arrives; none overtakes another */
    struct message *waiting; /* a heartbeat that goes out when a session is open */

    struct candidate candidate;
};

/* Gives each slot its id, host and clock, and plans the first starts. */
void processes_begin(struct world *world);

/* A new incarnation joins the group. */
void process_start(struct world *world, struct process *process);

/* As the records of its store name it. */
struct process_id process_identity(const struct process *process);

/* Its candidate is given up by its owner, and another takes part in its place in the same session. */
void process_rejoin(struct world *world, struct process *process);

/* Frees what a process owns; safe on a zeroed one. */
void process_done(struct process *process);

/* The process is gone at this instant; `why` is for the story. */
void process_die(struct world *world, struct process *process, const char *why);

/* Nothing in it runs until `until`. */
void process_freeze(struct world *world, struct process *process, gavel_ns until);
/* Its guard, which is not frozen, ends its work, and closes its session as that of a dead process. */
void process_fence(struct world *world, struct process *process);
void process_resume(struct world *world, struct process *process);

/* Feeds an event to its candidate and carries out the actions. */
void process_step(struct world *world, struct process *process, struct candidate_event *event);

/* An event of the world for this process; postpones it while the process cannot take it. */
void process_take(struct world *world, const struct event *event);

static inline bool process_is_cut(const struct process *process, gavel_ns now)
{
    return now >= process->cut_from && now < process->cut_until;
}

/* Its answers already come late, and soon will not come at all. */
static inline bool process_fades(const struct process *process, gavel_ns now)
{
    return now < process->cut_from && now < process->cut_until;
}

static inline bool process_is_frozen(const struct process *process, gavel_ns now)
{
    return now < process->frozen_until;
}

#endif
