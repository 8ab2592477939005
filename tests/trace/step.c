/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One event for a node of the stage: the step, everything that it leaves to do,
 * and then what all of that asked for, in its order.
 */

#include "trace/client.h"

#include "wire/client.h"

#include <stdlib.h>
#include <string.h>

#define ANSWERS_OF_STEP_MAX 64
#define ORDERS_OF_STEP_MAX 8

/* Of a node before a step. */
struct host_before {
    enum raft_role role;
    raft_term term;
    raft_id leader;
    raft_index config_index;
};

static void leave(struct cluster *cluster, struct host *host, struct packets *leaving)
{
    tell_sends(cluster, host, leaving);
    for (size_t i = 0; i < leaving->count; i++)
        network_send(cluster, host->id, &leaving->items[i].message);
    packets_free(leaving);
}

/* What is told once a step, from what has changed. */
static void tell_changes(struct cluster *cluster, const struct host *host, const struct host_before *before)
{
    const struct raft *raft = &host->node.raft;

    if (raft->role != before->role || raft->state.term != before->term)
        tell(cluster, host, "is %s in term %llu", raft_role_name(raft->role),
             (unsigned long long)raft->state.term);
    else if (raft->leader == 0 && before->leader != 0)
        tell(cluster, host, "has no leader");
    if (raft->leader != before->leader && raft->leader != 0 && raft->leader != host->id)
        tell(cluster, host, "follows %c", name_of(raft->leader));
    if (raft->config_index != before->config_index)
        tell_members(cluster, host, "members from now on:");
}

/* The messages that may leave now: those that have waited for the disk, or those of this step. */
static void gather(const struct cluster *cluster, bool have_waited, struct packets *ret_packets)
{
    const struct node_actions *actions = &cluster->actions;

    for (size_t i = 0; i < actions->count; i++) {
        const struct raft_message *message = actions->items[i].message;
        const char *at = (const char *)message;
        bool is_of_step =
            at >= (const char *)&actions->raft && at < (const char *)&actions->raft + sizeof actions->raft;

        if (actions->items[i].kind == NODE_SEND && is_of_step != have_waited)
            packets_add(ret_packets, &(struct packet){.message = *message});
    }
}

/* Answers to clients and operators, kept until the story has told what led to them. */
struct answers {
    size_t count;
    uint64_t clients[ANSWERS_OF_STEP_MAX];
    Gavel__ClientFrame *frames[ANSWERS_OF_STEP_MAX]; /* owned */
    size_t order_count;
    struct {
        enum gavel_status status;
        char text[NODE_ORDER_TEXT_BYTES];
    } orders[ORDERS_OF_STEP_MAX];
};

/* What Raft said in a step, behind what it said before. */
static void keep_said(struct cluster *cluster)
{
    const struct raft_actions *raft = &cluster->actions.raft;
    struct said *said = &cluster->said;

    if (!cluster->actions.has_stepped || raft->count == 0)
        return;
    said->items = reallocarray(said->items, said->count + raft->count, sizeof *said->items);
    if (!said->items)
        abort();
    memcpy(said->items + said->count, raft->items, raft->count * sizeof *said->items);
    said->count += raft->count;
}

/* What a step asked for besides what Raft said. */
static void take_actions(struct cluster *cluster, struct host *host, struct answers *answers)
{
    for (size_t i = 0; i < cluster->actions.count; i++) {
        struct node_action *action = &cluster->actions.items[i];

        if (action->kind == NODE_FAIL)
            alarm_raise(cluster, host, "its table cannot be built");
        if (action->kind == NODE_FORWARD)
            clients_forward(cluster, host->id, &action->forward);
        if (action->kind == NODE_ORDERED && answers->order_count < ORDERS_OF_STEP_MAX) {
            answers->orders[answers->order_count].status = action->ordered.status;
            (void)snprintf(answers->orders[answers->order_count++].text, NODE_ORDER_TEXT_BYTES, "%s",
                           action->ordered.text);
        }
        if (action->kind == NODE_ANSWER && answers->count < ANSWERS_OF_STEP_MAX) {
            answers->clients[answers->count] = action->answer->client;
            answers->frames[answers->count++] = action->answer->frame;
            action->answer->frame = NULL;
        }
    }
}

enum gavel_status host_step(struct cluster *cluster, struct host *host, struct node_event event)
{
    struct packets waited = {0}, leaving = {0};
    struct answers answers = {0};
    const struct host_before before = {host->node.raft.role, host->node.raft.state.term,
                                       host->node.raft.leader, host->node.raft.config_index};
    struct node_event next = {.kind = NODE_NEXT};
    enum gavel_status status;

    event.now = next.now = host_clock(cluster, host);
    event.wall_ms = next.wall_ms = ms_from_ns(cluster->now);
    cluster->said.count = 0;
    node_step(&host->node, &event, &cluster->actions);
    status = cluster->actions.status;
    gather(cluster, true, &waited);
    gather(cluster, false, &leaving);
    leave(cluster, host, &waited);
    tell_changes(cluster, host, &before);
    keep_said(cluster);
    take_actions(cluster, host, &answers);
    while (node_has_next(&host->node)) {
        node_step(&host->node, &next, &cluster->actions);
        gather(cluster, false, &leaving);
        keep_said(cluster);
        take_actions(cluster, host, &answers);
    }
    for (size_t i = 0; i < cluster->said.count; i++)
        host_carry(cluster, host, &cluster->said.items[i]);
    leave(cluster, host, &leaving);
    referee_check(cluster, host);
    clients_look(cluster, host);
    for (size_t i = 0; i < answers.order_count; i++)
        tell(cluster, host, "answers the order: %s (%s)", answers.orders[i].text,
             gavel_status_name(answers.orders[i].status));
    for (size_t i = 0; i < answers.count; i++) {
        clients_answer(cluster, answers.clients[i], answers.frames[i]);
        client_frame_free(answers.frames[i]);
    }
    return status;
}

enum gavel_status host_feed(struct cluster *cluster, struct host *host, struct raft_event event)
{
    return host_step(cluster, host, (struct node_event){.kind = NODE_RAFT, .raft = event});
}
