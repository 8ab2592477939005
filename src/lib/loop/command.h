/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests of callers to the loop. A command is queued and carried out between
 * two steps, never inside one, wherever it came from. That is why a callback
 * may ask for anything.
 */
#ifndef LIB_LOOP_COMMAND_H
#define LIB_LOOP_COMMAND_H

#include "base/outcome.h"
#include "base/record.h"

#include <gavel/gavel.h>

struct subscription;

enum command_kind {
    COMMAND_START,
    COMMAND_STOP,
    COMMAND_RESIGN,
    COMMAND_FINISH,
    COMMAND_OUTCOME,
    COMMAND_ENSURE,
    COMMAND_SET_ELIGIBLE,
    COMMAND_SUBSCRIBE,
    COMMAND_UNSUBSCRIBE,
};

struct command {
    struct command *next;
    enum command_kind kind;
    struct gavel_candidate *candidate;
    bool is_allocated; /* the loop frees it; otherwise its sender owns it and waits for is_done */
    bool is_done;      /* under the handle's mutex */
    enum gavel_status status;
    bool flag;                         /* ENSURE: force; SET_ELIGIBLE: eligible */
    uint64_t id;                       /* UNSUBSCRIBE */
    uint64_t epoch;                    /* ENSURE: of the leader that the caller saw; 0 if it saw none */
    struct subscription *subscription; /* SUBSCRIBE; handed over */
    /* NAME_MAX_BYTES + 1 of them. RESIGN: successor; ENSURE: desired. This and the next belong to
     * command_new(); NULL in others */
    char *name;
    struct outcome *outcome; /* OUTCOME */
};

struct command_queue {
    struct command *first;
    struct command *last;
    size_t count;
};

/* A command on the heap, with room for a name and an outcome, or NULL. */
struct command *command_new(enum command_kind kind, struct gavel_candidate *candidate);

/* Puts a command in the queue and wakes the loop. */
void command_enqueue(struct gavel *gavel, struct command *command);

/* The same with the handle's mutex held. */
void command_enqueue_locked(struct gavel *gavel, struct command *command);

/* Answers the queued commands for a departed candidate with ERR_STOPPED. The mutex is held. */
void command_drop(struct gavel *gavel, const struct gavel_candidate *candidate);

/* Removes a subscription that the loop has not seen yet; false if there is none with that id. */
bool command_withdraw(struct gavel *gavel, const struct gavel_candidate *candidate, uint64_t id);

/* Carries out the commands that are queued now; those that they cause wait for the next pass. Loop only. */
void command_run_queued(struct gavel *gavel);

#endif
