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
    pid_t pid;       /* 0: none that was not reaped */
    pid_t session;   /* of the process that ran last, which led it; 0 before the first */
    int pidfd;       /* -1: none */
    int ready_fd;    /* the reading end of its readiness; -1: none */
    bool is_killing; /* until nothing is left of its session */
    bool has_failed; /* it could not be started; told to the supervisor as its end */
};

struct guard_loop {
    struct guard_loop_start start;
    struct supervisor supervisor;
    struct supervisor_actions actions;
    struct tree tree;
    struct slot_process slots[SUPERVISOR_SLOTS];
    struct rlimit descriptors; /* as gavel was started with */
    int stdin_fd;              /* gavel's own, for the children; -1: still where they belong */
    int stdout_fd;
    int timer_fd;
    int signal_fd;   /* SIGCHLD */
    timer_t suicide; /* kills the guard itself (SIGKILL), should it not run when it has to act */

    uint64_t stopped_epoch;   /* this one and all before it are over, or are to be */
    uint64_t next_epoch;      /* to be run when the present one is over; 0: none */
    struct instants instants; /* of the mandate that runs */
    gavel_ns pass_at;         /* not before then the next pass of SIGKILL over the tree … */
    size_t pass_peak;         /* … of which none found more alive than so many */
    bool is_killing;          /* KILL_TREE */
    gavel_ns killing_since;
    bool is_orphaned;  /* the elector is dead */
    bool may_quit;     /* the elector has said so */
    bool has_closed;   /* nobody reads reports any more */
    int last_status;   /* of the first child under this epoch; -1: it has not ended */
    size_t ended_slot; /* the child that ended last, and how */
    int ended_status;
    int demoted_status;   /* of the hook on_demoted under this epoch; -1: it has not ended */
    bool is_hook_demoted; /* the hook that runs, or ran last, is that one */
    int spawn_error;      /* errno of the last process that could not be started; 0: none under this epoch */
    gavel_ns late_by;     /* how long after the deadline the tree was still there */
    struct guard_report reported;
    bool owes_report;
};

/* Feeds one event to the supervisor with the mandate as it stands, and carries out what it says. */
void guard_loop_feed(struct guard_loop *loop, enum supervisor_event_kind kind, size_t slot, int status);

/* Carries out the actions of the last step. */
void guard_loop_carry_out(struct guard_loop *loop);

/* Kills what is to be killed and tells the supervisor what has died. */
void guard_loop_sweep(struct guard_loop *loop);

/* When to do so again, though nothing happens; NEVER if there is nothing to kill. */
gavel_ns guard_loop_sweep_at(const struct guard_loop *loop);

/* Sends a signal to the process of a process, if it has one. */
void slot_signal(const struct slot_process *process, int signal_number);

/* Its readiness is told, or not awaited any more. */
void slot_forget_readiness(struct slot_process *process);

/* The children are dead or about to be: from now on the guard's own death would help nobody. */
void guard_loop_spare(struct guard_loop *loop);

#endif
