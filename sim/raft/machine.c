/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The state machine of a node, which is the real table, and the clients that
 * wait for it: proposals that are acknowledged once applied.
 */
#include "base/assert.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

void machine_restored(struct cluster *cluster, struct host *host)
{
    raft_index index = host->node.raft.snapshot.index;

    host->compacted = index;
    host->machine_index = index;
    if (index > 0)
        raft_referee_restored(cluster->referee, cluster->now, host->id, index, table_digest(&host->table));
}

void machine_clear(struct host *host)
{
    table_done(&host->table);
    host->proposal_count = 0;
    host->proposal_first = 0;
    host->compacted = 0;
    host->machine_index = 0;
    node_build_free(host->build);
    host->build = NULL;
    table_done(&host->decoded);
}

/* The clients of proposals up to here are told, or hear nothing for ever if another entry took the place. */
static void acknowledge(struct cluster *cluster, struct host *host, raft_index index, raft_term term)
{
    while (host->proposal_count > 0 && host->proposals[host->proposal_first].index <= index) {
        const struct host_proposal *proposal = &host->proposals[host->proposal_first];

        if (proposal->index == index && proposal->term == term) {
            cluster->counts.acknowledged++;
            raft_referee_acknowledged(cluster->referee, cluster->now, index);
        }
        host->proposal_first = (host->proposal_first + 1) % PROPOSALS_MAX;
        host->proposal_count--;
    }
}

void machine_applied(struct cluster *cluster, struct host *host, const struct node_action *action)
{
    const struct raft_entry *entry = action->applied.entry;
    raft_index index = action->applied.index;

    if (index != host->machine_index + 1)
        cluster_violate(cluster, RAFT_INVARIANT_MACHINE, "%s applies entry %llu after %llu", host->label,
                        (unsigned long long)index, (unsigned long long)host->machine_index);
    host->machine_index = index;
    if (entry->kind == RAFT_ENTRY_DATA && cluster->watch.applied)
        cluster->watch.applied(cluster->watch.context, cluster, host, action);
    else if (action->applied.status != GAVEL_OK)
        cluster_violate(cluster, RAFT_INVARIANT_MACHINE, "the table of %s refuses entry %llu", host->label,
                        (unsigned long long)index);
    raft_referee_applied(cluster->referee, cluster->now, host->id, index, entry, table_digest(&host->table));
    acknowledge(cluster, host, index, entry->term);
}

/* A few entries at a time, so that the log changes while they are collected. */
#define SLICE_BYTES 256

void machine_build(struct cluster *cluster, struct host *host)
{
    gavel_ns longest = cluster_has(cluster, FAULT_COMPACT) ? 500 * NS_PER_MS : 20 * NS_PER_MS;
    enum gavel_status status;

    if (!host->build) {
        if (host->machine_index < host->compacted + cluster->profile.compact_after ||
            !node_may_build(&host->node))
            return;
        host->build = node_build_begin(&host->node);
        ASSERT(host->build);
        host->compacted = host->machine_index;
        host->is_collected = false;
    }
    if (host->is_collected)
        return;
    status = node_build_collect(host->build, &host->node, SLICE_BYTES, &host->is_collected);
    if (status == GAVEL_ERR_STATE) {
        cluster_see(cluster, SIGHT_OUTRUN);
        node_build_free(host->build);
        host->build = NULL;
        return;
    }
    ASSERT(status == GAVEL_OK);
    if (host->is_collected)
        (void)cluster_push(cluster, cluster->now + cluster_between(cluster, STREAM_BUILD, 0, longest),
                           EVENT_BUILT, host->slot);
}

void machine_built(struct cluster *cluster, struct host *host)
{
    struct node_build *build = host->build;
    struct raft_event event = {.kind = RAFT_COMPACT, .compact.index = build->index};

    ASSERT(host->is_collected);
    if (node_build_run(build) != GAVEL_OK)
        cluster_violate(cluster, RAFT_INVARIANT_MACHINE, "%s builds a snapshot of %llu that is not its table",
                        host->label, (unsigned long long)build->index);
    event.compact.blob = build->blob;
    event.compact.data = build->blob->bytes;
    event.compact.size = build->blob->size;
    TRACE_DETAIL(cluster, host, "compacts its log up to %llu", (unsigned long long)build->index);
    /* A node may have reasons to keep its log. */
    cluster_see(cluster, host_step(cluster, host, &event) == GAVEL_OK ? SIGHT_BUILDS : SIGHT_OUTRUN);
    if (host->build == build) { /* it is alive */
        node_build_free(build);
        host->build = NULL;
    }
}
