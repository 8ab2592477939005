/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What Raft has decided, one piece at a time: an entry goes to the table, and
 * its outcome to the front end; a snapshot replaces the table; the front end
 * opens and closes with the work. All in the order in which Raft said so: the
 * front end of a new leader opens on a table that has every committed entry.
 */
#include "core/node/internal.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>

static void watch_processes(struct node *node, const struct table_outcome *outcome)
{
    for (size_t i = 0; i < outcome->process_count; i++) {
        struct node_action *action = node_act(node, NODE_WATCH);

        if (action) /* without memory only time tells of its death */
            action->watch = outcome->processes[i];
    }
}

/* The front end has what it proposed in decoded form. */
static enum gavel_status apply_entry(struct node *node, raft_index index, const struct raft_entry *entry)
{
    struct table_outcome *outcome = &node->actions->outcome;
    const Gavel__Command *command = frontend_command(&node->frontend, index, entry->term, entry->size);

    if (!command)
        return table_apply_ops(node->table, index, entry->data, entry->size, outcome);
    return table_apply_command(node->table, index, command, outcome);
}

static void apply(struct node *node, const struct node_moment *moment, raft_index index)
{
    const struct raft_entry *entry = raft_log_at(&node->raft.log, index);
    bool is_working = raft_is_working(&node->raft, moment->now);
    struct table_outcome *outcome = &node->actions->outcome;
    enum gavel_status status = GAVEL_OK;
    struct node_action *action;

    ASSERT(entry);
    ASSERT(index > node->table->index);
    ASSERT(index <= node->raft.commit);
    if (node_version_is_beyond(node, entry)) {
        node_act(node, NODE_FAIL)->failure = GAVEL_ERR_STORE_UNSUPPORTED;
        return;
    }
    if (entry->kind == RAFT_ENTRY_DATA) {
        status = apply_entry(node, index, entry);
        if (status == GAVEL_ERR_NO_MEMORY) {
            node_act(node, NODE_FAIL)->failure = status;
            return;
        }
        frontend_applied(&node->frontend, moment->now, is_working, index, entry->term, status,
                         outcome->results, outcome->count);
    }
    action = node_act(node, NODE_APPLIED);
    action->applied.index = index;
    action->applied.entry = entry;
    action->applied.status = status;
    action->applied.results = outcome->results;
    action->applied.count = outcome->count;
    watch_processes(node, outcome);
    node_applied_record(node, entry);
}

static void restore(struct node *node, const struct node_moment *moment)
{
    const struct raft_snapshot *snapshot = &node->raft.snapshot;
    struct table *decoded = node->decoded;
    enum gavel_status status = GAVEL_OK;

    node->decoded = NULL;
    if (PLANTED(SNAPSHOT_NOT_TAKEN))
        decoded = node->table;
    if (!decoded)
        status = table_snapshot_decode(node->table, snapshot->data, snapshot->size);
    else if (decoded != node->table)
        table_exchange(node->table, decoded);
    if (status != GAVEL_OK) {
        node_act(node, NODE_FAIL)->failure = status;
        return;
    }
    applied_mark(&node->frontend.applied, node->table->revision, moment->now);
    (void)node_act(node, NODE_RESTORED); /* it says all there is to say */
    node_read_records(node);
    if (!node_version_is_known(node))
        node_act(node, NODE_FAIL)->failure = GAVEL_ERR_STORE_UNSUPPORTED;
}

static void claim(struct node *node, const struct node_moment *moment, const struct node_todo *todo)
{
    struct node_action *action = node_act(node, NODE_WORK_START);

    action->work.term = todo->claim.term;
    action->work.lease_epoch = todo->claim.lease_epoch;
    ASSERT(!node->claim.is_held);
    ASSERT(todo->claim.lease_epoch > 0);
    /* A token fences only if it is new each time. */
    ASSERT(todo->claim.term > node->claim.term ||
           (todo->claim.term == node->claim.term && todo->claim.lease_epoch > node->claim.lease_epoch));
    node->claim = (struct node_claim){
        .is_held = true, .term = todo->claim.term, .lease_epoch = todo->claim.lease_epoch};
    node->frontend.generation = node->raft.state.generation;
    frontend_open(&node->frontend, todo->claim.term, moment->now);
    node_silence_open(node, moment->now);
}

void node_do_todo(struct node *node, const struct node_moment *moment)
{
    struct node_todo *todo = &node->todo[node->todo_first];

    ASSERT(node->todo_count > 0);
    switch (todo->kind) {
    case RAFT_APPLY:
        apply(node, moment, todo->apply.next);
        if (todo->apply.next++ < todo->apply.last)
            return;
        break;
    case RAFT_RESTORE:
        restore(node, moment);
        break;
    case RAFT_CLAIM:
        claim(node, moment, todo);
        break;
    default:
        ASSERT(todo->kind == RAFT_STOP_WORK);
        frontend_close(&node->frontend);
        node_silence_close(node, moment->now);
        node->claim.is_held = false;
        if (PLANTED(NODE_STAYS_OPEN)) {
            frontend_open(&node->frontend, node->frontend.term, moment->now);
            node_silence_open(node, moment->now);
        }
        node_act(node, NODE_WORK_STOP)->stop_reason = todo->stop_reason;
        break;
    }
    node->todo_first = (node->todo_first + 1) % NODE_TODO_MAX;
    node->todo_count--;
}
