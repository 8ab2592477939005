/* SPDX-License-Identifier: Apache-2.0 */

/* Clients: they propose, mostly at the leader, now and then at somebody who is not. */

#include "base/assert.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <string.h>

#define KEYS 24
#define PROPOSE_MAX 64
#define VALUE_MAX 2000

static void plan(struct cluster *cluster)
{
    gavel_ns delay = cluster_between(cluster, STREAM_CLIENT, 1, 2 * cluster->profile.propose_every);

    (void)cluster_push(cluster, cluster->now + delay, EVENT_PROPOSE, 0);
}

void client_begin(struct cluster *cluster) { plan(cluster); }

static struct host *pick(struct cluster *cluster)
{
    struct host *anybody = &cluster->hosts[cluster_below(cluster, STREAM_CLIENT, cluster->used)];
    bool asks_anybody = cluster_chance(cluster, STREAM_CLIENT, 50);
    struct host *leader = cluster_some_leader(cluster, STREAM_CLIENT);

    return leader && !asks_anybody ? leader : anybody;
}

/* A request to a node that is frozen or late waits for it, as all that is sent to it does. True: it waits, or
 * is lost. */
static bool is_put_off(struct cluster *cluster, const struct host *host)
{
    gavel_ns until = ns_max(host->frozen_until, host->stalled_until);

    if (!host_is_up(host))
        return true;
    if (cluster->now >= until)
        return false;
    if (until != NEVER && !host->loses_inbox)
        cluster_push(cluster, until, EVENT_PROPOSE, host->slot)->number = 1;
    return true;
}

/* One command into `bytes`; returns its length. */
static size_t write_command(struct cluster *cluster, unsigned value_size, uint8_t *bytes)
{
    uint64_t drawn = prng_next(&cluster->streams[STREAM_CLIENT]);
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

static void remember(struct host *host, raft_index first, unsigned count)
{
    for (unsigned i = 0; i < count && host->proposal_count < PROPOSALS_MAX; i++) {
        size_t slot = (host->proposal_first + host->proposal_count++) % PROPOSALS_MAX;

        host->proposals[slot] =
            (struct host_proposal){.index = first + i, .term = host->node.raft.state.term};
    }
}

/* What is no longer in the log cannot be acknowledged: the ring has rising indexes again. */
static void forget_lost(struct host *host, raft_index last)
{
    while (host->proposal_count > 0) {
        size_t newest = (host->proposal_first + host->proposal_count - 1) % PROPOSALS_MAX;

        if (host->proposals[newest].index <= last)
            return;
        host->proposal_count--;
    }
}

enum gavel_status client_propose(struct cluster *cluster, struct host *host, unsigned count, unsigned bytes)
{
    static uint8_t buffers[PROPOSE_MAX][TABLE_COMMAND_HEAD_BYTES + 2 + VALUE_MAX];
    struct raft_entry entries[PROPOSE_MAX];
    struct raft_event event = {.kind = RAFT_PROPOSE, .propose = {.entries = entries, .count = count}};
    raft_index before = raft_log_last(&host->node.raft.log);
    uint64_t life = host->life;
    enum gavel_status status;

    ASSERT(count <= PROPOSE_MAX);
    for (unsigned i = 0; i < count; i++) {
        size_t size = write_command(cluster, bytes, buffers[i]);

        entries[i] = (struct raft_entry){.kind = RAFT_ENTRY_DATA, .size = (uint32_t)size, .data = buffers[i]};
    }
    cluster->counts.proposals += count;
    forget_lost(host, before);
    status = host_step(cluster, host, &event);
    if (host->life == life && status == GAVEL_OK && raft_log_last(&host->node.raft.log) >= before + count)
        remember(host, before + 1, count);
    return status;
}

static void propose(struct cluster *cluster, struct host *host)
{
    unsigned bytes = cluster_below(cluster, STREAM_CLIENT, 64);
    unsigned burst = 1 + cluster_below(cluster, STREAM_CLIENT, PROPOSE_MAX);
    unsigned large = cluster_below(cluster, STREAM_CLIENT, VALUE_MAX);
    bool is_burst = cluster_chance(cluster, STREAM_CLIENT, 30);

    if (is_put_off(cluster, host))
        return;
    /* Clients wait for answers: what is not committed yet is bounded, and in the end small. */
    if (raft_log_last(&host->node.raft.log) > host->node.raft.commit + (cluster->healed ? 16 : 400))
        return;
    if (is_burst && cluster_has(cluster, FAULT_FLOOD))
        (void)client_propose(cluster, host, burst, large); /* clients live with refusals */
    else
        (void)client_propose(cluster, host, 1, bytes);
}

void client_take(struct cluster *cluster, const struct event *event)
{
    bool has_waited = event->number != 0; /* at the node of this slot */
    struct host *host = has_waited ? &cluster->hosts[event->slot] : pick(cluster);

    /* Before the end nothing new is begun, so that the logs can become the same. */
    if (cluster->now + cluster->rest >= cluster->quiet_at)
        return;
    if (!has_waited)
        plan(cluster);
    propose(cluster, host);
}
