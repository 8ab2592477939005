/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The guard process: a loop around the supervisor. It allocates nothing and
 * takes no lock after it has started, so that nothing keeps it from ending
 * the tree in time: all its state is in this struct.
 */
#ifndef GUARD_LOOP_H
#define GUARD_LOOP_H

#include "guard/channel.h"
#include "guard/instants.h"

#include <sys/resource.h>
#include <time.h>

/* The process of a slot. */
struct slot_process {
    pid_t pid;       /* 0: none, or reaped */
    pid_t session;   /* of the last process, its session leader; 0 before the first */
    int pidfd;       /* -1: none */
    int ready_fd;    /* the reading end of its readiness; -1: none */
    bool is_killing; /* until nothing is left of its session */
    bool has_failed; /* it could not be started; reported to the supervisor as its end */
};

struct guard_loop {
    struct guard_loop_start start;
    struct supervisor supervisor;
    struct supervisor_actions actions;
    struct tree tree;
    struct slot_process slots[SUPERVISOR_SLOTS];
    struct rlimit descriptors; /* as gavel was started with */
    int stdin_fd;              /* gavel's own, for the children; -1: still at its usual number */
    int stdout_fd;
    int timer_fd;
    int signal_fd;   /* SIGCHLD */
    timer_t suicide; /* kills the guard itself (SIGKILL) if it does not run when it has to act */

    uint64_t stopped_epoch;   /* this one and all earlier ones are over, or must be */
    uint64_t next_epoch;      /* to be run when the current one is over; 0: none */
    struct instants instants; /* of the mandate that runs */
    gavel_ns pass_at;         /* the earliest next pass of SIGKILL over the tree … */
    size_t pass_peak;         /* … and the most processes that a pass found alive */
    bool is_killing;          /* KILL_TREE */
    gavel_ns killing_since;
    bool is_orphaned;  /* the elector is dead */
    bool may_quit;     /* the elector has said so */
    bool has_closed;   /* nobody reads reports any longer */
    int last_status;   /* of the first child under this epoch; -1: it has not ended */
    size_t ended_slot; /* the child that ended last, and how */
    int ended_status;
    int demoted_status;   /* of the hook on_demoted under this epoch; -1: it has not ended */
    bool is_hook_demoted; /* the hook that runs, or ran last, is on_demoted */
    int spawn_error;      /* errno of the last process that could not be started; 0: none under this epoch */
    gavel_ns late_by;     /* how long after the deadline the tree was still there */
    struct guard_report reported;
    bool owes_report;
};

/* Feeds one event to the supervisor with the mandate as it stands, and carries out what it says. */
void guard_loop_feed(struct guard_loop *loop, enum supervisor_event_kind kind, size_t slot, int status);

/* Carries out the actions of the last step. */
void guard_loop_carry_out(struct guard_loop *loop);

/* Kills what must be killed and tells the supervisor what has died. */
void guard_loop_sweep(struct guard_loop *loop);

/* When to sweep again even if nothing happens; NEVER if there is nothing to kill. */
gavel_ns guard_loop_sweep_at(const struct guard_loop *loop);

/* Sends a signal to the process of a slot, if it has one. */
void slot_signal(const struct slot_process *process, int signal_number);

/* Its readiness was reported, or is no longer awaited. */
void slot_forget_readiness(struct slot_process *process);

/* The children are dead or about to be, so the guard's own death no longer helps: stops the suicide timer. */
void guard_loop_spare(struct guard_loop *loop);

#endif
