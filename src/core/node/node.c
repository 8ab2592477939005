/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a node, and its step: one event, or one piece of what earlier
 * ones have left to do, in this order:
 *
 *     todo           what Raft has decided: entries for the table, a snapshot, the work begins or stops
 *     own replies    of our front end, for our forwarder
 *     deliveries     of our forwarder, to our front end
 *     a batch        of commands, from the front end to the log
 *     leaving        a node that stops, or whose work has failed, steps down
 *     orders         those whose time, or what they wait for, has come
 *     members        one difference between the records and the configuration
 *
 * It comes to an end: an entry is applied once, a refused request waits before it is delivered again, and
 * what the log refuses is dropped. An order asks Raft for a change once in each event, and so does each
 * record.
 */
#include "core/node/internal.h"

#include "base/assert.h"
#include "base/error.h"

#include <stdlib.h>

/* More pieces than the forwarder and the front end can have in hand. */
#define TURNS_MAX (4u * (FORWARDER_FORWARDINGS_MAX + FRONTEND_WAITING_MAX))

enum gavel_status node_init(struct node *node, struct table *table, const struct raft_settings *settings,
                            const struct raft_restore *restore, gavel_ns now, struct gavel_error *error)
{
    enum gavel_status status;

    *node = (struct node){.table = table};
    ASSERT(table->index == 0);
    status = raft_init(&node->raft, settings, restore, now, error);
    if (status == GAVEL_OK && restore->snapshot.size > 0 &&
        table_snapshot_decode(table, restore->snapshot.data, restore->snapshot.size) != GAVEL_OK)
        status = error_set(error, GAVEL_ERR_STORE_DAMAGED, "the snapshot cannot be read");
    if (status != GAVEL_OK) {
        raft_done(&node->raft);
        *node = (struct node){0};
        return status;
    }
    forwarder_init(&node->forwarder);
    frontend_init(&node->frontend, table, settings->drift_ppm);
    node->members.knows = TABLE_VERSION;
    node_version_read(node);
    silence_init(&node->silence, settings->drift_ppm, ns_max(now, node->raft.promise_until));
    marks_init(&node->marks, &node->silence);
    node->frontend.marks = &node->marks;
    if (table->revision > 0)
        applied_mark(&node->frontend.applied, table->revision, now);
    STAILQ_INIT(&node->held);
    STAILQ_INIT(&node->own_replies);
    STAILQ_INIT(&node->orders.waiting);
    return GAVEL_OK;
}

void node_done(struct node *node)
{
    struct node_held *held;
    struct frontend_reply *reply;

    if (!node->table)
        return;
    while ((held = STAILQ_FIRST(&node->held))) {
        STAILQ_REMOVE_HEAD(&node->held, next);
        free(held);
    }
    while ((reply = STAILQ_FIRST(&node->own_replies))) {
        STAILQ_REMOVE_HEAD(&node->own_replies, next);
        frontend_reply_free(reply);
    }
    node_orders_done(node);
    frontend_done(&node->frontend);
    marks_done(&node->marks);
    silence_done(&node->silence);
    forwarder_done(&node->forwarder);
    raft_done(&node->raft);
    *node = (struct node){0};
}

bool node_has_next(const struct node *node)
{
    return node->todo_count > 0 || !STAILQ_EMPTY(&node->own_replies) ||
           forwarder_delivers_to(&node->forwarder) != 0 || node_must_leave(node) || node->orders.must_look ||
           node->members.is_due || (!node->is_gathering && frontend_has_batch(&node->frontend));
}

bool node_changes_table(const struct node *node)
{
    enum raft_action_kind kind = node->todo[node->todo_first].kind;

    return node->todo_count > 0 && (kind == RAFT_APPLY || kind == RAFT_RESTORE);
}

gavel_ns node_tick_at(const struct node *node)
{
    return ns_min(ns_min(frontend_wake_at(&node->frontend), forwarder_wake_at(&node->forwarder)),
                  node_silence_at(node));
}

static void do_next(struct node *node, const struct node_moment *moment)
{
    if (node->todo_count > 0) {
        node_do_todo(node, moment);
        return;
    }
    node->turns++;
    ASSERT(node->turns < TURNS_MAX);
    if (!node_take_own_reply(node, moment) && !node_take_own_delivery(node, moment) &&
        (node->is_gathering || !node_propose(node, moment)) && !node_leave_next(node, moment) &&
        !node_look_at_orders(node, moment))
        (void)node_reconcile(node, moment); /* there is something, or we would not be here */
}

static void tick(struct node *node, const struct node_moment *moment, bool is_stalled)
{
    frontend_tick(&node->frontend, moment->now, raft_is_working(&node->raft, moment->now), is_stalled,
                  moment->wall_ms);
    forwarder_tick(&node->forwarder, moment->now);
    silence_forget(&node->silence, node->table);
    node_leave_soon(node);
    node_orders_look_soon(node);
    node_reconcile_soon(node);
}

static void take(struct node *node, const struct node_moment *moment, const struct node_event *event)
{
    switch (event->kind) {
    case NODE_NEXT:
        do_next(node, moment);
        break;
    case NODE_RAFT:
        if (event->raft.kind == RAFT_PERSISTED) {
            ASSERT(event->raft.seq >= node->durable);
            node->durable = event->raft.seq;
            node_release_held(node);
        }
        if (event->raft.kind == RAFT_RECEIVE)
            marks_speaks(&node->marks, event->raft.message->from);
        (void)node_step_raft(node, moment, &event->raft); /* the actions have it */
        break;
    case NODE_CLIENT:
        node->is_gathering = event->client.has_more;
        node->actions->status =
            event->client.question
                ? forwarder_take_question(&node->forwarder, moment->now, event->client.id,
                                          event->client.question)
                : forwarder_take(&node->forwarder, moment->now, event->client.id, event->client.frame);
        break;
    case NODE_CLIENT_GONE:
        forwarder_forget(&node->forwarder, event->client.id);
        break;
    case NODE_FORWARDED:
        node_take_forwarded(node, moment, &event->forwarded);
        break;
    case NODE_UNSENT:
        for (size_t i = 0; i < event->unsent.count; i++)
            forwarder_unsent(&node->forwarder, moment->now, event->unsent.numbers[i]);
        break;
    case NODE_DEATHS:
        node_take_deaths(node, moment, event->deaths.ops, event->deaths.count);
        break;
    case NODE_ORDER:
        node_take_order(node, moment, event->order);
        break;
    case NODE_GREETED:
        node_take_greeting(node, event->greeting);
        break;
    case NODE_SAID:
        node_take_said(node, &event->said);
        break;
    case NODE_WORK_FAILED:
        node_work_failed(node, event->failed.term, event->failed.lease_epoch);
        break;
    case NODE_STOP:
        node_stop(node, moment, event->stop.timeout);
        break;
    case NODE_TICK:
        tick(node, moment, event->tick.is_stalled);
        break;
    }
}

void node_step(struct node *node, const struct node_event *event, struct node_actions *actions)
{
    const struct node_moment moment = {.now = event->now, .wall_ms = event->wall_ms};

    ASSERT(node->table);
    ASSERT(!node->actions);
    if (event->kind == NODE_NEXT)
        ASSERT(node_has_next(node));
    else if (event->kind == NODE_RAFT && event->raft.kind == RAFT_WORK_STOPPED)
        ASSERT(!node_has_todo(node));
    else
        ASSERT(!node_has_next(node));
    node_actions_clear(actions);
    node->actions = actions;
    if (event->kind != NODE_NEXT) {
        node->turns = 0;
        node->orders.events++;
        node->is_gathering = false;
        node->decoded = event->kind == NODE_RAFT ? event->decoded : NULL;
    }
    take(node, &moment, event);
    node_silence_tend(node, moment.now);
    node_hand_out(node, moment.now);
    node->actions = NULL;
}
