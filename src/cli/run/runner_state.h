/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of the runner share. */
#ifndef CLI_RUN_RUNNER_STATE_H
#define CLI_RUN_RUNNER_STATE_H

#include "cli/run/health.h"
#include "cli/run/prefix.h"
#include "cli/run/runner.h"
#include "cli/run/runner_news.h"
#include "guard/guard.h"
#include "lib/guard/on_death.h"
#include "os/notify.h"

#include <gavel/gavel.h>

#include <signal.h>
#include <stdatomic.h>

/* Why a runner ends. */
enum runner_end {
    END_NOT,
    END_SIGNAL,    /* a signal told it to */
    END_COMMAND,   /* the command ended, and with it the run */
    END_CANDIDATE, /* the candidate stopped by itself: its id is in use, or the group is done */
    END_GUARD,     /* the guard has died */
    END_BUSY,      /* gavel once --no-wait: another runs it */
    END_FAILURE,   /* too many restarts and nobody to hand over to; or the system failed us */
};

struct runner {
    const struct cli *cli; /* our own copy, whose log never waits */
    struct cli own;
    struct run_plan *plan;
    struct guard guard;
    struct on_death *on_death;
    struct gavel *gavel; /* NULL: no election, or not yet */
    struct gavel_candidate *candidate;

    /* main thread */
    struct health health;
    struct notify notify;
    struct prefix prefix;
    bool has_prefix;
    struct news_queue news;
    sigset_t signals;
    int signal_fd;
    gavel_ns watchdog_at;
    gavel_ns cooling_until;     /* 0: not cooling down */
    bool is_eligible;           /* as last told to the library */
    bool was_healthy;           /* as last told in the log */
    struct guard_report report; /* the last one */
    uint64_t settled_epoch;     /* the epoch whose end has been handled */
    bool is_ending;
    enum runner_end end;
    bool was_running;          /* the command was running when the end began */
    int stop_signal;           /* END_SIGNAL */
    int status;                /* END_COMMAND: as from waitpid(2) */
    enum gavel_status stopped; /* why the candidate stopped, once it has */
    bool has_stopped;
    bool has_succeeded; /* gavel once: the command succeeded, which is being recorded */
    char stopped_message[256];

    /* library's thread */
    _Atomic uint64_t run_epoch; /* the newest that the guard was told to run; read by the main thread, too */
    _Atomic gavel_ns run_ordered_at;

    /* guard */
    struct store *store_for_the_dead; /* where to release; NULL: opened when needed */
};

/* The first reason stands. */
void runner_end(struct runner *runner, enum runner_end end);
int runner_exit_code(const struct runner *runner);

/* What happens, for people: runner_log.c. */
void runner_take_news(struct runner *runner);
void runner_log_health(struct runner *runner);
/* Logs what is new in the last report. */
void runner_log_report(const struct runner *runner, const struct guard_report *before, bool is_settled);
void runner_pass_signal(struct runner *runner, int number);

/* What the guard says: runner_report.c. */
void runner_take_report(struct runner *runner);
void runner_guard_died(struct runner *runner);
/* a guard that has not reported by then is in trouble */
gavel_ns runner_order_due_at(const struct runner *runner);
void runner_check_order(struct runner *runner, gavel_ns now);

/* The mandate: runner_mandate.c. */
GAVEL_CHECKED enum gavel_status runner_join(struct runner *runner, struct gavel_error *error);
void runner_leave(struct runner *runner);
void runner_update_eligibility(struct runner *runner, gavel_ns now);
void runner_finish_once(struct runner *runner); /* the command of `gavel once` succeeded */

/* In the guard. */
void runner_begin_guard(void *user);
void runner_end_guard(void *user);
bool runner_read_mandate(void *user, uint64_t epoch, gavel_ns *ret_stop_at, gavel_ns *ret_deadline);
void runner_release_for_the_dead(void *user);

#endif
