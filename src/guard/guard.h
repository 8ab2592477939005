/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The guard: a process between the elector and the command. It starts the
 * command only with a mandate, and ends its whole tree before the mandate's
 * deadline, whatever happens to the elector.
 *
 *      elector ─────── orders ───────► guard ──► command ──► …
 *         │  ◄─────── reports ───────    │
 *         └── mandate: until when ──────►│      one pidfd in each direction
 *
 * This is the elector's side; loop.c runs in the guard.
 *
 * | dies or hangs    | what happens |
 * |------------------|--------------|
 * | elector killed   | the guard kills the tree, sees that it is empty, calls release() |
 * | elector frozen   | the guard stops the tree in time; the elector finds out when it wakes |
 * | guard killed     | the kernel kills the children (PDEATHSIG), the elector whatever they leave behind |
 * | guard frozen     | the kernel kills the guard before the deadline: see above |
 * | both at once     | the kernel kills the children; nobody may lead before the lease is over |
 *
 * An epoch that is dead stays dead: the guard never starts anything for an
 * epoch that it has once reported as stopped.
 */
#ifndef GUARD_H
#define GUARD_H

#include "guard/spec.h"

#include <pthread.h>

/* What the guard needs from the owner of the mandates; all of it runs in the guard. */
struct guard_mandates {
    /* Once, when the guard starts: the time to open and to allocate. NULL: nothing to do. */
    void (*begin)(void *user);
    /* The instants of the mandate of this epoch; false if there is none any longer. Must not block. */
    bool (*read)(void *user, uint64_t epoch, gavel_ns *ret_stop_at, gavel_ns *ret_deadline);
    /* The elector is dead and nothing is left of the tree. May take its time. */
    void (*release)(void *user);
    /* Once, when the guard ends for whatever reason: the time to close. NULL: nothing to do. */
    void (*end)(void *user);
    void *user;
};

/* What the guard last reported. */
struct guard_report {
    uint64_t epoch; /* of what runs, or ran last; 0 before the first */
    enum supervisor_state state;
    enum supervisor_cause cause;
    uint32_t cause_slot;
    int32_t cause_status; /* as from waitpid(2); -1 if nothing ended */
    /* Of the first child when it last ended, likewise; -1 if it has not ended under this epoch. */
    int32_t last_status;
    uint64_t restarts; /* of all children, since the guard started */
    /* EMPTY: how long after the deadline the tree was still there; 0 if it was gone in time. */
    int32_t late_by_ms;
    uint32_t ended_slot;  /* the child that ended last, */
    int32_t ended_status; /* and how */
    /* Of the hook on_demoted, as from waitpid(2); -1 if it has not ended under this epoch. */
    int32_t demoted_status;
    int32_t spawn_error; /* errno of a process that could not be started under this epoch; 0 if all could */
};

struct guard_shared;

struct guard {
    pid_t pid; /* 0: not running */
    int pidfd; /* readable when it has died */
    int socket;
    int stopped_fd; /* an eventfd: some epoch has been stopped */
    struct guard_shared *shared;
    pthread_mutex_t cleaning;
    struct tree tree; /* for when the guard has died */
};

/*
 * Forks the guard and makes the calling process a child subreaper. The caller
 * must not have started any thread. The spec is shared with the guard by the
 * fork; what it points to must not change. Errors: those of tree_open(),
 * ERR_IO, ERR_NO_MEMORY.
 */
GAVEL_CHECKED enum gavel_status guard_start(struct guard *guard, struct guard_spec *spec,
                                            const struct guard_mandates *mandates, struct gavel_error *error);

/* Orders. Any thread. They do not wait; an order to a dead guard is lost. */
void guard_run(const struct guard *guard, uint64_t epoch); /* stops what runs for an older epoch first */
void guard_signal(const struct guard *guard, int signal_number); /* to the main process of each child */
void guard_kill(const struct guard *guard);                      /* no more grace. Async-signal-safe */

/*
 * Stops what runs for this epoch or an older one, `at_once` or in order, and
 * waits until nothing is left. False if the guard has died instead, or was
 * killed because it had not done so by `until`: the caller then calls
 * guard_clean_up().
 */
bool guard_stop(const struct guard *guard, uint64_t epoch, bool at_once, gavel_ns until);

/*
 * The same for callers that must not wait. They give the order, and return
 * false if the guard does not take it now (it is dead, or does not read: try
 * again). stopped_fd becomes readable when some epoch has been stopped.
 * guard_dead_epoch() says which: nothing runs for it or an earlier one, and
 * never will.
 */
GAVEL_CHECKED bool guard_order_run(const struct guard *guard, uint64_t epoch);
GAVEL_CHECKED bool guard_order_stop(const struct guard *guard, uint64_t epoch, bool at_once);
uint64_t guard_dead_epoch(const struct guard *guard);

/* Kills a guard that misbehaves; its children die with it. Async-signal-safe. */
void guard_abandon(const struct guard *guard);

bool guard_has_died(const struct guard *guard);

/* The newest report; false if there is no unread one. */
bool guard_read(const struct guard *guard, struct guard_report *ret_report);

/*
 * After the guard has died: kills everything below the calling process until
 * nothing is left, or until `until`. True if nothing is left. Any thread, also
 * several at once.
 */
bool guard_clean_up(struct guard *guard, gavel_ns until);

/* One pass of it, for callers that must not wait: true if nothing is left. Repeat until then. */
bool guard_clean_up_once(struct guard *guard);

/* Lets a guard that has nothing left to run end, and waits for that. Safe on a zeroed struct. */
void guard_finish(struct guard *guard);

#endif
