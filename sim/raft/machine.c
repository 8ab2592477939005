/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The state machine of a node, which is the real table, and the clients that
 * wait for it: proposals that are acknowledged once applied, and reads that are
 * answered once their index is.
 */
#include "base/assert.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdlib.h>
#include <string.h>

void machine_restore(struct cluster *cluster, struct node *node)
{
    const struct raft_snapshot *snapshot = &node->raft.snapshot;

    if (snapshot->size == 0)
        table_done(&node->table);
    if (snapshot->size > 0 && table_snapshot_decode(&node->table, snapshot->data, snapshot->size) != GAVEL_OK)
        cluster_violate(cluster, RAFT_INVARIANT_MACHINE, "%s cannot read the snapshot at %llu", node->label,
                        (unsigned long long)snapshot->index);
    node->compacted = snapshot->index;
    node->machine_index = snapshot->index;
    if (snapshot->index > 0)
        raft_referee_restored(cluster->referee, cluster->now, node->id, snapshot->index,
                              table_digest(&node->table));
}

void machine_clear(struct node *node)
{
    table_done(&node->table);
    node->proposal_count = 0;
    node->proposal_first = 0;
    node->read_count = 0;
    node->compacted = 0;
    node->machine_index = 0;
}

/* The clients of proposals up to here are told, or hear nothing for ever if another entry took the place. */
static void acknowledge(struct cluster *cluster, struct node *node, raft_index index, raft_term term)
{
    while (node->proposal_count > 0 && node->proposals[node->proposal_first].index <= index) {
        const struct node_proposal *proposal = &node->proposals[node->proposal_first];

        if (proposal->index == index && proposal->term == term) {
            cluster->counts.acknowledged++;
            raft_referee_acknowledged(cluster->referee, cluster->now, index);
        }
        node->proposal_first = (node->proposal_first + 1) % PROPOSALS_MAX;
        node->proposal_count--;
    }
}

static void answer_reads(struct cluster *cluster, struct node *node)
{
    size_t kept = 0;

    for (size_t i = 0; i < node->read_count; i++) {
        struct node_read *read = &node->reads[i];

        if (!read->is_ready || read->index > node->machine_index) {
            node->reads[kept++] = *read;
            continue;
        }
        cluster_see(cluster, SIGHT_READS);
        raft_referee_read_answered(cluster->referee, cluster->now, node->id, read->mark, read->index);
    }
    node->read_count = kept;
}

void machine_apply(struct cluster *cluster, struct node *node, raft_index first, raft_index last)
{
    for (raft_index index = first; index <= last; index++) {
        const struct raft_entry *entry = raft_log_at(&node->raft.log, index);

        if (!entry || index != node->machine_index + 1)
            cluster_violate(cluster, RAFT_INVARIANT_MACHINE, "%s is to apply entry %llu after %llu%s",
                            node->label, (unsigned long long)index, (unsigned long long)node->machine_index,
                            entry ? "" : ", and does not have it");
        node->machine_index = index;
        if (entry->kind == RAFT_ENTRY_DATA && cluster->watch.apply)
            cluster->watch.apply(cluster->watch.context, cluster, node, index, entry);
        else if (entry->kind == RAFT_ENTRY_DATA &&
                 table_apply(&node->table, index, entry->data, entry->size) != GAVEL_OK)
            cluster_violate(cluster, RAFT_INVARIANT_MACHINE, "the table of %s refuses entry %llu",
                            node->label, (unsigned long long)index);
        raft_referee_applied(cluster->referee, cluster->now, node->id, index, entry,
                             table_digest(&node->table));
        acknowledge(cluster, node, index, entry->term);
    }
    answer_reads(cluster, node);
}

void machine_compact(struct cluster *cluster, struct node *node)
{
    struct raft_event event = {.kind = RAFT_COMPACT, .compact.index = node->machine_index};
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum gavel_status status = table_snapshot_encode(&node->table, &bytes, &size);

    ASSERT(status == GAVEL_OK);
    node->compacted = node->machine_index;
    event.compact.data = bytes;
    event.compact.size = size;
    TRACE_DETAIL(cluster, node, "compacts its log up to %llu", (unsigned long long)node->machine_index);
    (void)node_step(cluster, node, &event); /* a node may have reasons to keep its log */
    free(bytes);
}

void machine_read_ready(struct cluster *cluster, struct node *node, uint64_t id, raft_index index)
{
    for (size_t i = 0; i < node->read_count; i++) {
        if (node->reads[i].id == id) {
            node->reads[i].index = index;
            node->reads[i].is_ready = true;
        }
    }
    answer_reads(cluster, node);
}

void machine_read_lost(struct node *node, uint64_t id)
{
    for (size_t i = 0; i < node->read_count; i++) {
        if (node->reads[i].id == id) {
            node->reads[i] = node->reads[--node->read_count];
            return;
        }
    }
}
