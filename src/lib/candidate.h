/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A struct gavel_candidate: the candidate machine of one group, what is needed
 * to drive it, and its subscribers.
 *
 * Only the loop steps the machine, with `lock` held just for the step; other
 * threads take the lock to read. The actions of a step are carried out without
 * it, in order. What they cause (the work has stopped, the watched process is
 * already dead) is fed back afterwards.
 */
#ifndef LIB_CANDIDATE_H
#define LIB_CANDIDATE_H

#include "core/candidate/candidate.h"
#include "lib/deliver.h"
#include "lib/guard/on_death.h"
#include "lib/guard/watchdog.h"
#include "lib/loop/command.h"
#include "lib/loop/precedence.h"
#include "lib/loop/timers.h"
#include "lib/loop/worker.h"
#include "lib/metrics.h"
#include "lib/publish.h"

#include <gavel/gavel.h>

#include <pthread.h>

struct gavel_candidate {
    /* fixed once joined */
    struct gavel *gavel;
    const char *group; /* as the machine has it; it does not change */
    const char *id;
    bool is_single; /* enabled = false: no election, always leader; the machine is not used */
    struct published *published;
    struct on_death_entry *on_death_entry; /* NULL without a guard; the loop writes it */

    /* under the handle's mutex; taken out of the lists only by the loop */
    struct gavel_candidate *next;
    struct gavel_candidate *previous;
    struct gavel_candidate *next_in_bucket;
    bool is_stop_asked;                   /* stop_command was queued; its sender frees this struct */
    bool is_gone;                         /* out of every list: the one who asked it to leave frees it */
    struct gavel_candidate *next_leaving; /* while the handle is closed */
    uint64_t next_subscription;
    struct command start_command;
    struct command stop_command;

    /* under `lock`; written by the loop only */
    struct precedence lock;
    struct candidate machine;
    bool has_ended;
    struct metrics metrics;

    /* loop */
    bool is_pushed; /* the store reports changes of the group */
    size_t jobs;    /* whose answers are still to come */
    struct timer timer;
    struct timer lapse; /* in the handle's list `lapsed` */
    struct timer end;   /* of a mandate of a session: in its heap */
    bool is_started;
    struct subscriptions subscriptions;
    bool work_runs;
    uint64_t work_epoch;
    uint64_t work_epoch_first; /* the one that the work started under; it may continue under later ones */
    gavel_ns single_since;     /* is_single: when it began to lead */
    struct watchdog_entry watchdog_entry;
    bool work_stopped; /* to be fed back after the actions of this step */
    bool holder_died;  /* likewise */
    bool is_leaving;   /* somebody waits for is_gone */
    bool is_departed;  /* in the handle's list `departed` */
    struct gavel_candidate *next_departed;
    struct watch *watch;
    struct nonce watched_nonce;
    struct gavel_candidate *next_waiting;
    struct gavel_candidate *previous_waiting;
};

/* Frees a candidate that is in no list. Safe on NULL. */
void lib_candidate_free(struct gavel_candidate *candidate);

/* Feeds one event; the time in it is filled in. Loop only, as is everything below. */
void lib_candidate_feed(struct gavel_candidate *candidate, struct candidate_event *event);

/* Feeds back what the last actions caused, and sets the timer. */
void lib_candidate_settle(struct gavel_candidate *candidate);

/* Sets the timer to what is due next. */
void lib_candidate_set_timer(struct gavel_candidate *candidate);

/*
 * In a store with sessions all candidates of a program may join, or be told of
 * a new session, at one instant. Their calls would wait for each other until
 * their time is over, so only some are begun with at a time.
 */
#define LIB_JOBS_WANTED 2048

/* Starts it, or lets it wait until fewer calls are under way. Once. */
void lib_candidate_start(struct gavel_candidate *candidate);

/* Starts those that have waited, as many as may. */
void lib_candidate_start_waiting(struct gavel *gavel);

/* Starts it at once, if it was not: something else is wanted of it. */
void lib_candidate_start_now(struct gavel_candidate *candidate);

void lib_candidate_stop(struct gavel_candidate *candidate);
void lib_candidate_doorbell(struct gavel_candidate *candidate);
void lib_candidate_doorbell_all(struct gavel *gavel, const char *group); /* every candidate of that group */
void lib_candidate_reply(struct gavel_candidate *candidate, struct job *job);

/* Its timer has expired. */
void lib_candidate_due(struct gavel_candidate *candidate);

/*
 * Ends the mandates whose time is over, earliest deadline first: their
 * on_demoted callbacks run one after the other and share the time.
 */
void lib_candidate_demote_lapsed(struct gavel *gavel);

/* Takes the departed out of every list and wakes those who wait for that. */
void lib_candidate_remove_departed(struct gavel *gavel);

/* The one that joined next, NULL: none; after NULL comes the first. None leaves during a pass. */
struct gavel_candidate *lib_candidate_after(struct gavel *gavel, const struct gavel_candidate *candidate);

/* The first candidate whose group shares the bucket of this one; follow next_in_bucket. Any thread. */
struct gavel_candidate *lib_candidate_first_of(struct gavel *gavel, const char *group);

/*
 * Puts a candidate in the lists. The handle's mutex is held. ERR_STATE if a
 * candidate with this group and id exists; in a store with sessions: of this
 * group.
 */
GAVEL_CHECKED enum gavel_status lib_candidate_enlist(struct gavel_candidate *candidate);

#endif
