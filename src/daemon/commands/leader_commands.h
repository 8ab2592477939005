/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The leader's commands: those of `leader_commands:` in the configuration. They
 * run on the node that leads, and only there. A guard (src/guard), a process
 * below the node, runs them and makes sure that they are dead before the
 * mandate's deadline, whatever happens to the node. This is the side of the
 * node's consensus thread. Nothing here waits, except start and finish.
 *
 *     leader_commands_start()            before there are threads
 *     shared_memory_set_mandate()             until when, again and again while it leads
 *     leader_commands_run(epoch)         at CLAIM
 *     leader_commands_stop(epoch, …)     at STOP_WORK
 *     leader_commands_look()             whenever fd is readable
 *       … has_stopped(epoch)             then WORK_STOPPED
 *     leader_commands_finish()           when the node ends
 */
#ifndef DAEMON_COMMANDS_LEADER_COMMANDS_H
#define DAEMON_COMMANDS_LEADER_COMMANDS_H

#include "daemon/config/config.h"
#include "daemon/shared/shared_memory.h"
#include "guard/guard.h"

/* The instructions for the guard, with their memory. Points into itself and must not be moved. */
struct leader_commands_plan {
    struct arena arena;
    struct guard_spec spec;
};

/* Programs, users and directories are looked up. ERR_INVALID, ERR_NOT_FOUND, ERR_IO, ERR_NO_MEMORY, with file
 * and line. */
GAVEL_CHECKED enum gavel_status leader_commands_plan_make(const struct daemon_config *config,
                                                          struct leader_commands_plan *ret_plan,
                                                          struct gavel_error *error);
/* Safe on a zeroed struct. */
void leader_commands_plan_done(struct leader_commands_plan *plan);

/* What has happened since the last look; there may be several. */
enum leader_commands_news {
    LEADER_COMMANDS_RUNS,      /* all children have started for this epoch */
    LEADER_COMMANDS_RESTARTED, /* a child ended, and was started again */
    LEADER_COMMANDS_STOPPED,   /* nothing of this epoch is left */
    /* Nothing of this epoch is left, and nobody ordered that: step down. `text` says why. */
    LEADER_COMMANDS_GAVE_UP,
    /* The guard has died, and everything below it was killed: nothing will run any more. */
    LEADER_COMMANDS_LOST,
};

struct leader_commands_event {
    enum leader_commands_news news;
    uint64_t epoch;
    const char *child; /* "" if it is about none; valid as long as the struct */
    char text[160];    /* how it ended: "exit code 3", "killed by signal 11 (Segmentation fault)", … */
    int late_by_ms;    /* STOPPED, GAVE_UP: how long something outlived the deadline; 0: in time */
};

struct leader_commands {
    struct leader_commands_plan plan;
    struct guard guard;
    struct guard_report report; /* the newest */
    uint64_t ordered;           /* the highest epoch ordered to run */
    gavel_ns ordered_at;
    uint64_t stopped;   /* the highest epoch ordered to stop */
    uint64_t run_epoch; /* orders that the guard has not taken yet; 0: none */
    uint64_t stop_epoch;
    bool stops_at_once;
    uint64_t settled; /* already reported: the end of this epoch, … */
    uint64_t told_running;
    uint64_t told_restarts;
    bool has_told_loss;
    bool is_dying; /* the guard has died … */
    bool is_lost;  /* … and nothing is left of what it ran */
    int timer_fd;
    int fd; /* readable when leader_commands_look() has something to do; an epoll descriptor */
};

/*
 * Forks the guard. No thread may have been started; the guard shares the memory. Errors of
 * leader_commands_plan_make() and guard_start(). Not to be moved afterwards.
 */
GAVEL_CHECKED enum gavel_status leader_commands_start(struct leader_commands *commands,
                                                      const struct daemon_config *config,
                                                      struct shared_memory *memory,
                                                      struct gavel_error *error);

/* Orders. An epoch that was stopped once never runs again, so their sequence cannot go wrong. */
void leader_commands_run(struct leader_commands *commands, uint64_t epoch);
void leader_commands_stop(struct leader_commands *commands, uint64_t epoch, bool at_once);

/* The next thing that has happened; false if there is nothing more now. */
bool leader_commands_look(struct leader_commands *commands, struct leader_commands_event *ret_event);

/* Nothing runs for this epoch or any before it, and never will. */
bool leader_commands_has_stopped(const struct leader_commands *commands, uint64_t epoch);

/* Stops what runs, at once, and ends the guard. Waits for it. Safe on a zeroed struct. */
void leader_commands_finish(struct leader_commands *commands);

#endif
