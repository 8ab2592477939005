/* SPDX-License-Identifier: Apache-2.0 */

/* Clients: they propose and read, mostly at the leader, now and then at somebody who is not. */

#include "base/assert.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <string.h>

#define KEYS 24
#define PROPOSE_MAX 64
#define VALUE_MAX 2000

static void plan(struct quorum *quorum, enum event_kind kind, gavel_ns every)
{
    gavel_ns delay = quorum_between(quorum, STREAM_CLIENT, 1, 2 * every);

    (void)quorum_push(quorum, quorum->now + delay, kind, 0);
}

void client_begin(struct quorum *quorum)
{
    plan(quorum, EVENT_PROPOSE, quorum->profile.propose_every);
    plan(quorum, EVENT_READ, quorum->profile.read_every);
}

static struct node *pick(struct quorum *quorum)
{
    struct node *anybody = &quorum->nodes[quorum_below(quorum, STREAM_CLIENT, quorum->used)];
    bool asks_anybody = quorum_chance(quorum, STREAM_CLIENT, 50);
    struct node *leader = quorum_some_leader(quorum, STREAM_CLIENT);

    return leader && !asks_anybody ? leader : anybody;
}

/* A request to a node that is frozen or late waits for it, as all that is sent to it does. True: it waits, or
 * is lost. */
static bool is_put_off(struct quorum *quorum, const struct node *node, enum event_kind kind)
{
    gavel_ns until = ns_max(node->frozen_until, node->stalled_until);

    if (!node_is_up(node))
        return true;
    if (quorum->now >= until)
        return false;
    if (until != NEVER && !node->loses_inbox)
        quorum_push(quorum, until, kind, node->slot)->number = 1;
    return true;
}

/* One command into `bytes`; returns its length. */
static size_t write_command(struct quorum *quorum, unsigned value_size, uint8_t *bytes)
{
    uint64_t drawn = prng_next(&quorum->streams[STREAM_CLIENT]);
    uint8_t key[2] = {'k', (uint8_t)(drawn % KEYS)};
    uint8_t value[VALUE_MAX];
    struct table_command command = {.kind = drawn >> 60 == 0 ? TABLE_DELETE : TABLE_PUT,
                                    .key = key,
                                    .key_size = sizeof key,
                                    .value = value,
                                    .value_size = value_size};
    size_t size;

    memset(value, (int)(drawn >> 32 & 0xff), value_size);
    if (value_size >= sizeof drawn)
        memcpy(value, &drawn, sizeof drawn);
    if (command.kind == TABLE_DELETE)
        command.value_size = 0;
    size = table_command_size(&command);
    ASSERT(size > 0);
    table_command_encode(&command, bytes);
    return size;
}

static void remember(struct node *node, raft_index first, unsigned count)
{
    for (unsigned i = 0; i < count && node->proposal_count < PROPOSALS_MAX; i++) {
        size_t place = (node->proposal_first + node->proposal_count++) % PROPOSALS_MAX;

        node->proposals[place] = (struct node_proposal){.index = first + i, .term = node->raft.state.term};
    }
}

/* What is no longer in the log cannot be acknowledged: the ring has rising indexes again. */
static void forget_lost(struct node *node, raft_index last)
{
    while (node->proposal_count > 0) {
        size_t newest = (node->proposal_first + node->proposal_count - 1) % PROPOSALS_MAX;

        if (node->proposals[newest].index <= last)
            return;
        node->proposal_count--;
    }
}

enum gavel_status client_propose(struct quorum *quorum, struct node *node, unsigned count, unsigned bytes)
{
    static uint8_t buffers[PROPOSE_MAX][TABLE_COMMAND_HEAD_BYTES + 2 + VALUE_MAX];
    struct raft_entry entries[PROPOSE_MAX];
    struct raft_event event = {.kind = RAFT_PROPOSE, .propose = {.entries = entries, .count = count}};
    raft_index before = raft_log_last(&node->raft.log);
    uint64_t life = node->life;
    enum gavel_status status;

    ASSERT(count <= PROPOSE_MAX);
    for (unsigned i = 0; i < count; i++) {
        size_t size = write_command(quorum, bytes, buffers[i]);

        entries[i] = (struct raft_entry){.kind = RAFT_ENTRY_DATA, .size = (uint32_t)size, .data = buffers[i]};
    }
    quorum->counts.proposals += count;
    forget_lost(node, before);
    status = node_step(quorum, node, &event);
    if (node->life == life && status == GAVEL_OK && raft_log_last(&node->raft.log) >= before + count)
        remember(node, before + 1, count);
    return status;
}

static void propose(struct quorum *quorum, struct node *node)
{
    unsigned bytes = quorum_below(quorum, STREAM_CLIENT, 64);
    unsigned burst = 1 + quorum_below(quorum, STREAM_CLIENT, PROPOSE_MAX);
    unsigned large = quorum_below(quorum, STREAM_CLIENT, VALUE_MAX);
    bool is_burst = quorum_chance(quorum, STREAM_CLIENT, 30);

    if (is_put_off(quorum, node, EVENT_PROPOSE))
        return;
    /* Clients wait for answers: what is not committed yet is bounded, and in the end small. */
    if (raft_log_last(&node->raft.log) > node->raft.commit + (quorum->healed ? 16 : 400))
        return;
    if (is_burst && quorum_has(quorum, FAULT_FLOOD))
        (void)client_propose(quorum, node, burst, large); /* clients live with refusals */
    else
        (void)client_propose(quorum, node, 1, bytes);
}

static void read_once(struct quorum *quorum, struct node *node, bool needs_round)
{
    struct raft_event event = {.kind = RAFT_READ, .read.needs_round = needs_round};
    uint64_t life = node->life;

    if (node->read_count == READS_MAX)
        return;
    event.read.id = ++quorum->counts.reads;
    node->reads[node->read_count++] = (struct node_read){
        .id = event.read.id, .mark = raft_referee_read_begins(quorum->referee, needs_round)};
    if (node_step(quorum, node, &event) != GAVEL_OK && node->life == life)
        machine_read_lost(node, event.read.id);
}

static void read(struct quorum *quorum, struct node *node)
{
    bool needs_round = quorum_chance(quorum, STREAM_CLIENT, 500);
    bool is_burst = quorum_chance(quorum, STREAM_CLIENT, 10) && quorum_has(quorum, FAULT_FLOOD);
    uint64_t life = node->life;

    if (is_put_off(quorum, node, EVENT_READ))
        return;
    for (unsigned i = 0; i < (is_burst ? READS_MAX : 1) && node->life == life; i++)
        read_once(quorum, node, needs_round);
}

void client_take(struct quorum *quorum, const struct event *event)
{
    bool has_waited = event->number != 0; /* at the node of this slot */
    struct node *node = has_waited ? &quorum->nodes[event->slot] : pick(quorum);

    /* Before the end nothing new is begun, so that the logs can become the same. */
    if (quorum->now + quorum->rest >= quorum->quiet_at)
        return;
    if (event->kind == EVENT_PROPOSE) {
        if (!has_waited)
            plan(quorum, EVENT_PROPOSE, quorum->profile.propose_every);
        propose(quorum, node);
    } else {
        if (!has_waited)
            plan(quorum, EVENT_READ, quorum->profile.read_every);
        read(quorum, node);
    }
}
