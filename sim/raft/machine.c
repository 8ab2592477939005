/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The state machine of a node, which is the real table, and the clients that
 * wait for it: proposals that are acknowledged once applied.
 */
#include "base/assert.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdlib.h>
#include <string.h>

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

void machine_compact(struct cluster *cluster, struct host *host)
{
    struct raft_event event = {.kind = RAFT_COMPACT, .compact.index = host->machine_index};
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum gavel_status status = table_snapshot_encode(&host->table, &bytes, &size);

    ASSERT(status == GAVEL_OK);
    host->compacted = host->machine_index;
    event.compact.data = bytes;
    event.compact.size = size;
    TRACE_DETAIL(cluster, host, "compacts its log up to %llu", (unsigned long long)host->machine_index);
    (void)host_step(cluster, host, &event); /* a node may have reasons to keep its log */
    free(bytes);
}
