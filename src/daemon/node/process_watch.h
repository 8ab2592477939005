/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The process watch: watches the processes of this machine that sessions, lease
 * mandates and registrations of the table name, and says so when one is
 * confirmed dead. Every node watches whom it can see; that several tell of the
 * same death does no harm.
 *
 * A process of another machine, or of another pid namespace, is nobody's
 * business here: another boot id says nothing about life and death on a
 * machine that is not ours.
 */
#ifndef DAEMON_NODE_PROCESS_WATCH_H
#define DAEMON_NODE_PROCESS_WATCH_H

#include "base/record.h"
#include "core/table/table.h"

#include <event2/event.h>

#define PROCESS_WATCH_WATCHES_MAX 4096 /* beyond that only time tells */

struct process_watch_watch;
RB_HEAD(process_watch_watches, process_watch_watch);

/* What must happen because processes died: operations, some for each; borrowed for the call. */
typedef void (*process_watch_cb)(void *user, const Gavel__Op *const *ops, size_t count);

struct process_watch {
    struct event_base *base;
    const struct table *table;
    struct process_id self;
    process_watch_cb callback;
    void *user;
    struct process_watch_watches watches;
    struct event *deaths; /* of one or more, to be told in one go; NULL: by the tick */
    size_t count;
    size_t dead_count;  /* of the watches: dead, and the table may still have something of theirs */
    bool is_rescan_due; /* the table was replaced: look at all of it */
};

/* Where processes cannot be told apart (no /proc) nobody is watched. */
void process_watch_init(struct process_watch *process_watch, struct event_base *base,
                        const struct table *table, process_watch_cb callback, void *user);
void process_watch_done(struct process_watch *process_watch); /* safe on a zeroed struct */

/* A process that the table has just been told of. */
void process_watch_meet(struct process_watch *process_watch, const struct table_process *process);

/* Now and then, from the thread of the table: looks at a table that was replaced, tells again of deaths that
 * the table does not know yet, and forgets those whom it names no more. */
void process_watch_tick(struct process_watch *process_watch);

#endif
