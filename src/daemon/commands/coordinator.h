/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The coordinator: the commands of the configuration that run on the node that
 * leads, and only there. They are run by a keeper of src/guard, a process
 * below the node that has them dead before the mandate's deadline, whatever
 * happens to the node; this is what the node's consensus thread has to do
 * with it. Nothing here waits, but for start and finish.
 *
 *     coordinator_start()            before there are threads
 *     page_set_mandate()             until when, again and again while it leads
 *     coordinator_run(epoch)         at CLAIM
 *     coordinator_stop(epoch, …)     at STOP_WORK
 *     fd is readable                 coordinator_look(), whenever
 *       … has_stopped(epoch)         then WORK_STOPPED
 *     coordinator_finish()           when the node ends
 */
#ifndef DAEMON_COMMANDS_COORDINATOR_H
#define DAEMON_COMMANDS_COORDINATOR_H

#include "daemon/config/config.h"
#include "daemon/shared/page.h"
#include "guard/guard.h"

/* What the keeper is told, with what it takes. Has pointers into itself and must not be moved. */
struct coordinator_plan {
    struct arena arena;
    struct guard_spec spec;
};

/* Programs, users and folders are looked up. ERR_INVALID, ERR_NOT_FOUND, ERR_IO, ERR_NO_MEMORY, with file
 * and line. */
GAVEL_CHECKED enum gavel_status coordinator_plan_make(const struct daemon_config *config,
                                                      struct coordinator_plan *ret_plan,
                                                      struct gavel_error *error);
/* Safe on a zeroed struct. */
void coordinator_plan_done(struct coordinator_plan *plan);

/* What has happened since the last look; any number of them. */
enum coordinator_news {
    COORDINATOR_RUNS,      /* all children have started for this epoch */
    COORDINATOR_RESTARTED, /* a child ended, and was started again */
    COORDINATOR_STOPPED,   /* nothing of this epoch is left */
    COORDINATOR_GAVE_UP, /* nothing of this epoch is left, and by its own doing: step down. `text` says why */
    COORDINATOR_LOST,    /* the keeper has died, and everything below was killed: nothing will run any more */
};

struct coordinator_event {
    enum coordinator_news news;
    uint64_t epoch;
    const char *child; /* "" if it is about none; lives as long as the coordinator */
    char text[160];    /* how it ended: "exit code 3", "killed by signal 11 (Segmentation fault)", … */
    int late_by_ms; /* STOPPED, GAVE_UP: so long after the deadline something was still there; 0: in time */
};

struct coordinator {
    struct coordinator_plan plan;
    struct guard guard;
    struct guard_report report; /* the newest */
    uint64_t ordered;           /* the highest epoch that was to be run */
    gavel_ns ordered_at;
    uint64_t stopped;   /* the highest epoch that was to be stopped */
    uint64_t run_epoch; /* orders that the keeper did not take yet; 0: none */
    uint64_t stop_epoch;
    bool stops_at_once;
    uint64_t settled; /* what was told: the end of this epoch, */
    uint64_t told_running;
    uint64_t told_restarts;
    bool has_told_loss;
    bool is_dying; /* the keeper has died … */
    bool is_lost;  /* … and nothing is left of what it ran */
    int timer_fd;
    int fd; /* readable when coordinator_look() has something to do; an epoll descriptor */
};

/*
 * Forks the keeper. No thread may have been started; the page is shared with it. Errors of
 * coordinator_plan_make() and guard_start(). Not to be moved afterwards.
 */
GAVEL_CHECKED enum gavel_status coordinator_start(struct coordinator *coordinator,
                                                  const struct daemon_config *config, struct page *page,
                                                  struct gavel_error *error);

/* Orders; an epoch that was stopped once never runs again, so the order of the two cannot go wrong. */
void coordinator_run(struct coordinator *coordinator, uint64_t epoch);
void coordinator_stop(struct coordinator *coordinator, uint64_t epoch, bool at_once);

/* The next thing that has happened; false if there is nothing more now. */
bool coordinator_look(struct coordinator *coordinator, struct coordinator_event *ret_event);

/* Nothing runs for this epoch or any before it, and never will. */
bool coordinator_has_stopped(const struct coordinator *coordinator, uint64_t epoch);

/* Stops what runs, at once, and ends the keeper. Waits for it. Safe on a zeroed struct. */
void coordinator_finish(struct coordinator *coordinator);

#endif
