/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/ghost.h"

#include "base/assert.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdlib.h>
#include <string.h>

/* Its disk is as fast as its memory: what it forgets it has forgotten before it began. */
struct ghost {
    struct raft raft;
    struct raft_actions actions;
};

bool ghost_may_come(const struct quorum *quorum, const struct node *node)
{
    for (unsigned i = 0; i < quorum->used; i++) {
        const struct node *other = &quorum->nodes[i];
        const struct raft_member *member;
        struct raft_config config;
        raft_index index;

        if (other == node || (other->state != NODE_UP && other->state != NODE_DOWN))
            continue;
        disk_config(&other->disk, &config, &index);
        member = raft_config_find(&config, node->id);
        if (config.count > 0 && (!member || member->directory != node->disk.state.directory))
            return false;
    }
    return true;
}

static void feed(struct quorum *quorum, struct node *node, struct raft_event event)
{
    struct ghost *ghost = node->ghost;
    bool is_stopping = false;
    uint64_t seq = 0;

    event.now = quorum->now;
    (void)raft_step(&ghost->raft, &event, &ghost->actions); /* a refusal is as good as anything */
    for (size_t i = 0; i < ghost->actions.count; i++) {
        const struct raft_action *action = &ghost->actions.items[i];

        if (action->kind == RAFT_SEND)
            net_send(quorum, net_copy(quorum, &action->send.message), node->slot);
        else if (action->kind == RAFT_PERSIST)
            seq = action->persist.seq;
        else if (action->kind == RAFT_STOP_WORK)
            is_stopping = true;
    }
    if (seq > 0)
        feed(quorum, node, (struct raft_event){.kind = RAFT_PERSISTED, .seq = seq});
    if (is_stopping)
        feed(quorum, node, (struct raft_event){.kind = RAFT_WORK_STOPPED});
}

static void arm(struct quorum *quorum, struct node *node)
{
    gavel_ns wake = raft_wake_at(&node->ghost->raft);

    if (wake != NEVER)
        quorum_push(quorum, ns_max(wake, quorum->now + NS_PER_MS), EVENT_GHOST, node->slot)->number =
            ++node->timer;
}

void ghost_begin(struct quorum *quorum, struct node *node)
{
    struct raft_settings settings = quorum->profile.settings[node->slot];
    struct raft_restore restore = {.state = node->disk.state, .seed = node->disk.state.directory};
    unsigned incarnation = quorum_below(quorum, STREAM_FAULTS + FAULT_LOST, 4);
    bool joins = quorum_below(quorum, STREAM_FAULTS + FAULT_LOST, 4) == 0;
    struct gavel_error error;

    settings.context = quorum;
    restore.state = (struct raft_state){
        .cluster = node->disk.state.cluster,
        .generation = node->disk.state.generation,
        .id = node->id,
        .directory = node->disk.state.directory + 1,
        .incarnation = incarnation == 0 ? 1 : node->disk.state.incarnation + incarnation - 1};
    if (!joins)
        restore.snapshot.config = quorum->profile.first;
    restore.snapshot.config.binds = !joins;
    node->ghost = calloc(1, sizeof *node->ghost);
    ASSERT(node->ghost);
    if (raft_init(&node->ghost->raft, &settings, &restore, quorum->now, &error) != GAVEL_OK) {
        free(node->ghost);
        node->ghost = NULL;
        return;
    }
    TRACE(quorum, node, "its directory is lost; an empty one speaks for it, incarnation %llu",
          (unsigned long long)restore.state.incarnation);
    quorum_see(quorum, SIGHT_GHOSTS);
    arm(quorum, node);
}

void ghost_end(struct node *node)
{
    if (!node->ghost)
        return;
    raft_done(&node->ghost->raft);
    free(node->ghost);
    node->ghost = NULL;
}

void ghost_receive(struct quorum *quorum, struct node *node, const struct raft_message *message)
{
    if (!node->ghost || quorum->healed != 0)
        return;
    feed(quorum, node, (struct raft_event){.kind = RAFT_RECEIVE, .message = message});
    arm(quorum, node);
}

void ghost_take(struct quorum *quorum, const struct event *event)
{
    struct node *node = &quorum->nodes[event->slot];

    if (!node->ghost || quorum->healed != 0 || event->number != node->timer)
        return;
    feed(quorum, node, (struct raft_event){.kind = RAFT_TIMER});
    arm(quorum, node);
}
