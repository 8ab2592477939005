/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The supervisor: which child runs when, while a mandate lasts.
 *
 * A state machine without I/O, clock or memory of its own: one event goes in,
 * with the time and the limits of the mandate in it; actions come out, to be
 * carried out in order. The guard carries them out.
 *
 *   [EMPTY] ──► [HOOK_ELECTED] ──► [STARTING] ──► [RUNNING]
 *      ▲              │          in order,  │         │  told to stop, mandate lapses,
 *      │              │          each ready │         │  a child ended, too many restarts
 *      │              ▼                     ▼         ▼
 *      └────── [CLEARING] ◄──────────── [STOPPING]  in reverse order, a grace each
 *               │     ▲
 *               └► [HOOK_DEMOTED]
 *
 * What safety rests on:
 *
 *  - From `kill_at` on, whatever the state, everything is killed: CLEARING.
 *  - EMPTY is entered only after the whole tree is confirmed dead, and a
 *    START is obeyed only in EMPTY.
 *  - Nothing is spawned at or after `stop_at`, except the hook after a stop
 *    that was asked for, and nothing at all at or after `kill_at`.
 */
#ifndef CORE_SUPERVISOR_SUPERVISOR_H
#define CORE_SUPERVISOR_SUPERVISOR_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHILDREN_MAX 32

/* Slots of processes: the children, then these two. */
#define SLOT_HOOK CHILDREN_MAX        /* on_elected or on_demoted */
#define SLOT_CHECK (CHILDREN_MAX + 1) /* asks whether a child is ready */
#define SUPERVISOR_SLOTS (CHILDREN_MAX + 2)

/* What the end of a child means. */
enum on_exit {
    ON_EXIT_STOP,    /* everything stops, and `gavel run` ends with its exit code */
    ON_EXIT_RESIGN,  /* everything stops, and another candidate may lead; within the restart limit */
    ON_EXIT_RESTART, /* it is started again, within the restart limit */
};

enum ready_kind {
    READY_AT_ONCE,
    READY_BY_COMMAND, /* a command that ends with 0 */
    READY_BY_FD,      /* the child writes to a descriptor */
};

struct child_rule {
    enum on_exit on_exit;
    gavel_ns grace; /* from the term signal to SIGKILL */
    enum ready_kind ready;
    gavel_ns ready_timeout;
};

struct supervisor_rules {
    size_t child_count; /* at least 1 */
    struct child_rule children[CHILDREN_MAX];
    bool has_on_elected;
    bool has_on_demoted;
    gavel_ns hook_timeout;
    int restart_limit;       /* restarts and resignations allowed per window */
    gavel_ns restart_window; /* one more within it stops the children */
};

#define RESTART_LIMIT_MAX 100

enum supervisor_state {
    SUPERVISOR_EMPTY,        /* nothing runs, confirmed */
    SUPERVISOR_HOOK_ELECTED, /* the hook before the children */
    SUPERVISOR_STARTING,     /* children start in order */
    SUPERVISOR_RUNNING,
    SUPERVISOR_STOPPING,     /* children stop in reverse order */
    SUPERVISOR_CLEARING,     /* everything is killed until nothing is left */
    SUPERVISOR_HOOK_DEMOTED, /* the hook after the children */
};
#define SUPERVISOR_STATE_COUNT (SUPERVISOR_HOOK_DEMOTED + 1)

/* Why the children stopped, or stop. */
enum supervisor_cause {
    CAUSE_NONE,
    CAUSE_ORDERED,     /* a STOP or KILL */
    CAUSE_LAPSED,      /* the mandate came to its end */
    CAUSE_ENDED,       /* a child ended whose end stops everything */
    CAUSE_RESIGN,      /* a child ended whose end resigns */
    CAUSE_LIMIT,       /* too many restarts */
    CAUSE_NOT_READY,   /* a child was not ready in time */
    CAUSE_HOOK_FAILED, /* on_elected did not end with 0 in time */
};
#define SUPERVISOR_CAUSE_COUNT (CAUSE_HOOK_FAILED + 1)

enum supervisor_event_kind {
    SUPERVISOR_TICK,       /* supervisor_wake_at() has come, or the limits have moved */
    SUPERVISOR_START,      /* run for this epoch; obeyed in EMPTY only */
    SUPERVISOR_STOP,       /* in order */
    SUPERVISOR_KILL,       /* at once */
    SUPERVISOR_EXITED,     /* the process of a slot has ended */
    SUPERVISOR_READY,      /* a child says that it is ready */
    SUPERVISOR_SLOT_EMPTY, /* after KILL_SLOT: nothing of it is left */
    SUPERVISOR_TREE_EMPTY, /* after KILL_TREE: nothing at all is left */
};

struct supervisor_event {
    enum supervisor_event_kind kind;
    gavel_ns now;
    /* The mandate of the running epoch as it stands now; both 0 if there is none any more. */
    gavel_ns stop_at; /* begin to stop */
    gavel_ns kill_at; /* kill whatever is left */
    uint64_t epoch;   /* START */
    size_t slot;      /* EXITED, READY, SLOT_EMPTY */
    int status;       /* EXITED: as from waitpid(2) */
    bool is_orphaned; /* STOP, KILL: the elector is dead, so no hook runs any more, */
    gavel_ns grace;   /* and each child gets this grace instead of its own */
};

enum supervisor_action_kind {
    SUPERVISOR_SPAWN,     /* start the process of a slot; for hooks and checks see below */
    SUPERVISOR_TERM_SLOT, /* send its term signal to its process group */
    SUPERVISOR_KILL_SLOT, /* SIGKILL its session until nothing is left of it; answer SLOT_EMPTY */
    SUPERVISOR_KILL_TREE, /* SIGKILL everything until nothing is left; answer TREE_EMPTY */
};

struct supervisor_action {
    enum supervisor_action_kind kind;
    size_t slot;  /* not for KILL_TREE */
    size_t child; /* SPAWN of SLOT_CHECK: which child is asked about */
    bool demoted; /* SPAWN of SLOT_HOOK: on_demoted rather than on_elected */
};

/* More than any step can return; supervisor_step() asserts it. */
#define SUPERVISOR_ACTIONS_MAX (CHILDREN_MAX + 8)

struct supervisor_actions {
    size_t count;
    struct supervisor_action items[SUPERVISOR_ACTIONS_MAX];
};

struct supervisor {
    struct supervisor_rules rules;
    enum supervisor_state state;
    uint64_t epoch; /* of what runs, or ran last */
    enum supervisor_cause cause;
    size_t cause_slot; /* of ENDED, RESIGN, LIMIT, NOT_READY: the child */
    int cause_status;  /* of ENDED, RESIGN, LIMIT, HOOK_FAILED: as from waitpid(2); -1 if it did not end */

    bool is_running[SUPERVISOR_SLOTS];  /* its process has been spawned and has not ended */
    bool is_clearing[SUPERVISOR_SLOTS]; /* KILL_SLOT is not answered yet */
    bool wants_start[CHILDREN_MAX];     /* to be spawned when it is cleared */
    size_t current;                     /* STARTING: the child awaited; STOPPING: the child that stops */
    gavel_ns timeout_at;                /* of the current child, hook or stop; NEVER if none */
    gavel_ns check_at;                  /* the next readiness check; NEVER if none */
    bool has_hooked;                    /* on_elected was begun or there is none: on_demoted is due */
    bool is_graceful;                   /* there is time for on_demoted */
    bool is_orphaned;                   /* the elector is dead: every child has orphan_grace */
    gavel_ns orphan_grace;
    gavel_ns restarts[RESTART_LIMIT_MAX]; /* a ring of the last ones */
    size_t restart_next;
    uint64_t restart_total;

    struct supervisor_actions *actions; /* only during a step */
};

/* Copies the rules; the reader of the configuration has checked them. */
void supervisor_init(struct supervisor *supervisor, const struct supervisor_rules *rules);

/* Feeds one event; ret_actions is what the caller must do, in order. Time never runs backwards. */
void supervisor_step(struct supervisor *supervisor, const struct supervisor_event *event,
                     struct supervisor_actions *ret_actions);

/* When the next TICK is due, besides the mandate's own instants; NEVER if nothing is. */
gavel_ns supervisor_wake_at(const struct supervisor *supervisor);

/* "running", "stopping", …; "lapsed", "restart_limit", … */
const char *supervisor_state_name(enum supervisor_state state);
const char *supervisor_cause_name(enum supervisor_cause cause);

/* Whether the state table has this edge; for the test that compares it with the diagram. */
bool supervisor_may_move(enum supervisor_state from, enum supervisor_state to);

#endif
